//! `ledger reconcile FILE`: settles what awaits its bill, and says what the bill and the ledger do not agree on.

use super::output::shown;
use super::{Failure, contradiction, unless_left};
use crate::ledger::error::LedgerError;
use crate::ledger::store::{BillLine, Books, Settlement};
use std::io::{self, Write};
use std::path::Path;

/// How many lines of the bill came to what.
#[derive(Debug, Default)]
struct Tally {
    reconciled: u64,
    already: u64,
    known: u64,
    unsettled: u64,
    contradicted: u64,
    failed: u64,
}

/// `file` is where the bill stands; with `dry`, nothing is changed.
pub(super) fn run(
    books: &mut dyn Books,
    bill: &[BillLine],
    file: &Path,
    dry: bool,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let settlements = settle(books, bill, dry)?;
    let mut tally = Tally::default();
    settlements.iter().for_each(|s| tally.count(s));
    let lines = bill.iter().zip(&settlements);
    let told = tell(lines, file, dry, out).and_then(|()| tally.tell(dry, out));
    // What was done is done, also where nobody reads to its end.
    unless_left(told)?;
    Ok(u8::from(tally.contradicted + tally.failed > 0))
}

/// A line for each line of the bill that there is something to say of.
fn tell<'a>(
    lines: impl Iterator<Item = (&'a BillLine, &'a Settlement)>,
    file: &Path,
    dry: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (line, settlement) in lines {
        if let Some(words) = words(line, settlement, dry) {
            let (file, at) = (file.display(), line.line);
            writeln!(out, "{file}:{at}: {}: {words}", name(line))?;
        }
    }
    Ok(())
}

impl Tally {
    fn tell(&self, dry: bool, out: &mut dyn Write) -> io::Result<()> {
        let (done, after) = match dry {
            true => ("would be reconciled", "; nothing was changed"),
            false => ("reconciled", ""),
        };
        writeln!(
            out,
            "{} {done}, {} were before, {} known without a bill, {} still running, {} contradicted, {} not matched{after}",
            self.reconciled,
            self.already,
            self.known,
            self.unsettled,
            self.contradicted,
            self.failed,
        )
    }

    fn count(&mut self, settlement: &Settlement) {
        let place = match settlement {
            Settlement::Reconciled { .. } => &mut self.reconciled,
            Settlement::Already => &mut self.already,
            Settlement::Known { .. } => &mut self.known,
            Settlement::Running => &mut self.unsettled,
            Settlement::Contradicted { .. } => &mut self.contradicted,
            Settlement::AlreadyOtherwise { .. }
            | Settlement::NotFound
            | Settlement::Ambiguous(_)
            | Settlement::Unreadable(_) => &mut self.failed,
        };
        *place += 1;
    }
}

/// What becomes of each line. The ledger gets to see only those that no other line contradicts.
fn settle(
    books: &mut dyn Books,
    bill: &[BillLine],
    dry: bool,
) -> Result<Vec<Settlement>, LedgerError> {
    let contradicted = contradiction::find(bill);
    let lines = bill.iter().zip(&contradicted);
    let clear = lines.filter(|(_, contradicted)| contradicted.is_none());
    let clear: Vec<BillLine> = clear.map(|(line, _)| line.clone()).collect();
    let mut settled = books.reconcile(&clear, dry)?.into_iter();
    let settlement = |contradicted: Option<Settlement>| contradicted.or_else(|| settled.next());
    Ok(contradicted.into_iter().filter_map(settlement).collect())
}

fn name(line: &BillLine) -> String {
    match &line.tenant {
        Some(tenant) => format!("{} of {}", line.id, shown(tenant.as_str())),
        None => line.id.to_string(),
    }
}

/// What there is to say of a line; nothing where bill and ledger agree already.
fn words(line: &BillLine, settlement: &Settlement, dry: bool) -> Option<String> {
    let units = line.units;
    let words = match settlement {
        Settlement::Reconciled { before, held } => {
            let verb = if dry { "would be charged" } else { "charged" };
            format!("{verb} {units} units (charged {before} and held {held} before)")
        }
        Settlement::Already => return None,
        Settlement::Known { charged } if *charged == units => return None,
        Settlement::Known { charged } => {
            format!("charged {charged} units by known usage, the bill says {units}; not changed")
        }
        Settlement::AlreadyOtherwise { charged } => {
            format!("reconciled before with {charged} units, the bill says {units}; not changed")
        }
        Settlement::Running => "still running; not changed".into(),
        Settlement::Contradicted { line, units: other } => {
            format!(
                "contradictory: {units} units here, {other} in line {line}; not changed, keep the line that is right"
            )
        }
        Settlement::NotFound => match &line.tenant {
            Some(_) => "no entry of this tenant has this id".into(),
            None => "no entry has this id".into(),
        },
        Settlement::Ambiguous(tenants) => {
            let tenants: Vec<&str> = tenants.iter().map(|t| t.as_str()).collect();
            let tenants = tenants.join(", ");
            format!(
                "several tenants have this id ({tenants}); not changed, name one in a column tenant or with --tenant"
            )
        }
        Settlement::Unreadable(error) => error.to_string(),
    };
    Some(words)
}
