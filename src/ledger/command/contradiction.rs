//! Bills that contradict themselves: lines that may name the same entry and give it different units. Pure.
//!
//! A line without a tenant may name any tenant's entry of its id. Which of two figures is right only the vendor can say,
//! and a reconciliation is final: nothing is settled by a line that another one contradicts.

use crate::budget::Units;
use crate::ledger::store::{BillLine, Settlement};
use crate::record::RequestId;
use crate::tenant::TenantName;
use std::collections::HashMap;

/// Which lines of an id.
#[derive(PartialEq, Eq, Hash)]
enum Lines<'a> {
    All,
    OfNobody,
    Of(&'a TenantName),
}

/// What some lines say: the first of them, and the first that says something else. No line needs more to be contradicted.
#[derive(Default)]
struct Said<'a> {
    first: Option<&'a BillLine>,
    other: Option<&'a BillLine>,
}

impl<'a> Said<'a> {
    fn note(&mut self, line: &'a BillLine) {
        let first = *self.first.get_or_insert(line);
        if first.units != line.units {
            self.other.get_or_insert(line);
        }
    }

    fn otherwise(&self, units: Units) -> Option<&'a BillLine> {
        let lines = [self.first, self.other];
        lines.into_iter().flatten().find(|line| line.units != units)
    }
}

/// What the lines of each id say, by whose they are.
#[derive(Default)]
struct Bill<'a>(HashMap<(&'a RequestId, Lines<'a>), Said<'a>>);

impl<'a> Bill<'a> {
    fn note(&mut self, line: &'a BillLine) {
        let whose = line.tenant.as_ref().map_or(Lines::OfNobody, Lines::Of);
        for lines in [Lines::All, whose] {
            self.0.entry((&line.id, lines)).or_default().note(line);
        }
    }

    /// A line that may name the same entry as this one, and says something else.
    fn against(&self, line: &'a BillLine) -> Option<&'a BillLine> {
        let otherwise = |lines| self.0.get(&(&line.id, lines))?.otherwise(line.units);
        match &line.tenant {
            None => otherwise(Lines::All),
            Some(tenant) => otherwise(Lines::Of(tenant)).or_else(|| otherwise(Lines::OfNobody)),
        }
    }
}

/// For each line that another one contradicts, what becomes of it.
pub(super) fn find(lines: &[BillLine]) -> Vec<Option<Settlement>> {
    let mut bill = Bill::default();
    lines.iter().for_each(|line| bill.note(line));
    let contradicted = |line| {
        bill.against(line).map(|by| Settlement::Contradicted {
            line: by.line,
            units: by.units,
        })
    };
    lines.iter().map(contradicted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each line, given as tenant and units, the line that contradicts it.
    fn found(lines: &[(&str, u64)]) -> Vec<Option<usize>> {
        let line = |(at, (tenant, units)): (usize, &(&str, u64))| BillLine {
            line: at,
            tenant: (!tenant.is_empty()).then(|| TenantName::new(tenant)),
            id: RequestId::parse("r").unwrap(),
            units: Units(*units),
        };
        let bill: Vec<BillLine> = lines.iter().enumerate().map(line).collect();
        let by = |settlement| match settlement {
            Some(Settlement::Contradicted { line, units }) => {
                assert_eq!(bill[line].units, units);
                Some(line)
            }
            _ => None,
        };
        find(&bill).into_iter().map(by).collect()
    }

    #[test]
    fn lines_that_agree_contradict_nothing() {
        assert_eq!(found(&[]), []);
        assert_eq!(found(&[("", 5), ("", 5), ("acme", 5)]), [None; 3]);
        assert_eq!(
            found(&[("acme", 5), ("other", 6), ("acme", 5)]),
            [None; 3],
            "an id of two tenants is two entries"
        );
    }

    #[test]
    fn lines_that_disagree_name_one_that_contradicts_each() {
        assert_eq!(found(&[("", 5), ("", 6)]), [Some(1), Some(0)]);
        assert_eq!(
            found(&[("", 5), ("", 5), ("", 7), ("", 8)]),
            [Some(2), Some(2), Some(0), Some(0)]
        );
        assert_eq!(
            found(&[("acme", 5), ("other", 6), ("acme", 7)]),
            [Some(2), None, Some(0)]
        );
    }

    #[test]
    fn a_line_without_a_tenant_may_mean_any_tenants_entry() {
        assert_eq!(found(&[("", 5), ("acme", 6)]), [Some(1), Some(0)]);
        assert_eq!(
            found(&[("acme", 5), ("other", 6), ("", 5)]),
            [None, Some(2), Some(1)]
        );
    }

    #[test]
    fn ids_are_apart() {
        let line = |line, id, units| BillLine {
            line,
            tenant: None,
            id: RequestId::parse(id).unwrap(),
            units: Units(units),
        };
        let bill = [line(1, "a", 5), line(2, "b", 6)];
        assert_eq!(find(&bill), [None, None]);
    }
}
