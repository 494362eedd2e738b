//! A vendor's bill: a file of request ids and units, CSV or JSONL. Every line that cannot be read is named, and then
//! none is taken.

use super::{Failure, csv};
use crate::budget::Units;
use crate::ledger::store::BillLine;
use crate::record::RequestId;
use crate::tenant::TenantName;
use serde_json::Value;
use std::path::Path;

/// Findings shown of one file.
const SHOWN_MAX: usize = 20;

/// Reads a bill. `tenant` is whose the lines are that name none.
pub(super) fn read(file: &Path, tenant: Option<&TenantName>) -> Result<Vec<BillLine>, Failure> {
    let name = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::Said(format!("cannot read {name}: {e}")))?;
    parse(&text, tenant).map_err(|findings| {
        let more = findings.len().saturating_sub(SHOWN_MAX);
        let mut lines: Vec<String> = findings
            .into_iter()
            .take(SHOWN_MAX)
            .map(|(line, why)| format!("{name}:{line}: {why}"))
            .collect();
        if more > 0 {
            lines.push(format!("{name}: {more} more lines cannot be read"));
        }
        lines.push(format!("{name}: nothing was reconciled"));
        Failure::Said(lines.join("\n"))
    })
}

type Findings = Vec<(usize, String)>;

fn parse(text: &str, tenant: Option<&TenantName>) -> Result<Vec<BillLine>, Findings> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = match text.trim_start().starts_with('{') {
        true => jsonl(text),
        false => from_csv(text)?,
    };
    let (mut bill, mut findings) = (Vec::new(), Vec::new());
    for (line, cells) in lines {
        match cells.and_then(|cells| checked(line, &cells, tenant)) {
            Ok(line) => bill.push(line),
            Err(why) => findings.push((line, why)),
        }
    }
    if findings.is_empty() {
        Ok(bill)
    } else {
        Err(findings)
    }
}

/// A line as written.
struct Cells {
    id: String,
    units: String,
    tenant: String,
}

type Written = Vec<(usize, Result<Cells, String>)>;

fn from_csv(text: &str) -> Result<Written, Findings> {
    let mut rows = csv::rows(text)
        .map_err(|(line, why)| vec![(line, why.to_owned())])?
        .into_iter();
    let header = rows.next().map(|(_, row)| row).unwrap_or_default();
    let column = |name: &str| {
        header
            .iter()
            .position(|c| c.trim().eq_ignore_ascii_case(name))
    };
    let (Some(id), Some(units)) = (column("request_id"), column("units")) else {
        let why = "the first line must name the columns request_id and units";
        return Err(vec![(1, why.to_owned())]);
    };
    let tenant = column("tenant");
    let cells = |row: Vec<String>| {
        let cell = |i: usize| row.get(i).map(|c| csv::plain(c.trim()).to_owned());
        match (cell(id), cell(units)) {
            (Some(id), Some(units)) => Ok(Cells {
                id,
                units,
                tenant: tenant.and_then(cell).unwrap_or_default(),
            }),
            _ => Err(format!(
                "the line has {} of {} columns",
                row.len(),
                header.len()
            )),
        }
    };
    Ok(rows.map(|(line, row)| (line, cells(row))).collect())
}

fn jsonl(text: &str) -> Written {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(i, line)| (i + 1, object(line))).collect()
}

fn object(line: &str) -> Result<Cells, String> {
    let value: Value = serde_json::from_str(line).map_err(|e| format!("not a JSON object: {e}"))?;
    let member = |name: &str| match value.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    match value.is_object() {
        true => Ok(Cells {
            id: member("request_id"),
            units: member("units"),
            tenant: member("tenant"),
        }),
        false => Err("not a JSON object".into()),
    }
}

fn checked(line: usize, cells: &Cells, tenant: Option<&TenantName>) -> Result<BillLine, String> {
    let id = RequestId::parse(&cells.id)
        .ok_or_else(|| format!("request_id is {:?}, which is no id", cells.id))?;
    let believable = Units::BELIEVABLE_MAX.0;
    let units: u64 = cells
        .units
        .parse()
        .ok()
        .filter(|units| *units <= believable)
        .ok_or_else(|| {
            format!(
                "units is {:?}, not a whole number from 0 to {believable}",
                cells.units
            )
        })?;
    let own = Some(cells.tenant.as_str()).filter(|t| !t.is_empty());
    Ok(BillLine {
        line,
        tenant: own.map(TenantName::new).or_else(|| tenant.cloned()),
        id,
        units: Units(units),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bill(text: &str) -> Vec<(usize, Option<String>, String, u64)> {
        let lines = parse(text, None).unwrap_or_else(|e| panic!("{text:?}: {e:?}"));
        let flat = lines.into_iter().map(|l| {
            (
                l.line,
                l.tenant.map(|t| t.to_string()),
                l.id.to_string(),
                l.units.0,
            )
        });
        flat.collect()
    }

    #[test]
    fn csv_and_jsonl_say_the_same() {
        let want = vec![
            (2, None, "a".to_owned(), 37),
            (3, Some("acme".to_owned()), "b".to_owned(), 0),
        ];
        assert_eq!(bill("request_id,units,tenant\na,37,\nb,0,acme\n"), want);
        assert_eq!(
            bill("Tenant, Units ,x,REQUEST_ID\r\n,37,,a\r\nacme,0,,b\r\n"),
            want
        );
        let jsonl = "\n{\"request_id\":\"a\",\"units\":37}\n{\"tenant\":\"acme\",\"units\":\"0\",\"request_id\":\"b\",\"x\":1}";
        assert_eq!(bill(jsonl), want);
    }

    #[test]
    fn the_option_names_the_tenant_of_lines_that_name_none() {
        let acme = TenantName::new("acme");
        let lines = parse("request_id,units,tenant\na,1,\nb,1,other\n", Some(&acme)).unwrap();
        let tenants: Vec<_> = lines.into_iter().filter_map(|l| l.tenant).collect();
        assert_eq!(tenants, [acme, TenantName::new("other")]);
    }

    #[test]
    fn every_line_that_cannot_be_read_is_named() {
        let text = "request_id,units\na b,1\nok,-1\nok,1.5\nok,2000000000\nok,\nok\nfine,1\n";
        let findings = parse(text, None).unwrap_err();
        let lines: Vec<usize> = findings.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7], "{findings:?}");
        let json = parse(
            "{\"request_id\":\"a\",\"units\":1}\n{oops\n[1]\n{\"units\":1e3,\"request_id\":\"x\"}",
            None,
        );
        assert_eq!(json.unwrap_err().len(), 3);
    }

    #[test]
    fn a_file_without_the_columns_is_no_bill() {
        for text in ["", "a,1\nb,2\n", "request_id;units\na;1\n"] {
            assert_eq!(parse(text, None).unwrap_err().len(), 1, "{text:?}");
        }
    }
}
