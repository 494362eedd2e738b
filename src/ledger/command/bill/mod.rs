//! A vendor's bill: a file of request ids and units, CSV or JSONL. Every line that cannot be read is named, and then
//! none is taken.
//!
//! Names of columns and members are taken in either case and with blanks around them, and so are values; other columns
//! and members are let be. A name that is read may stand once.

mod columns;
mod members;
#[cfg(test)]
mod tests;

use super::Failure;
use crate::budget::Units;
use crate::ledger::store::BillLine;
use crate::record::RequestId;
use crate::tenant::TenantName;
use std::path::Path;

/// Findings shown of one file.
const SHOWN_MAX: usize = 20;

/// Reads a bill. `tenant` is whose the lines are that name none.
pub(super) fn read(file: &Path, tenant: Option<&TenantName>) -> Result<Vec<BillLine>, Failure> {
    let name = file.display();
    let bytes = std::fs::read(file).map_err(|e| {
        Failure::Said(format!(
            "cannot read {name}: {e}; nothing was reconciled, name a bill that can be read"
        ))
    })?;
    let bill = text(&bytes).and_then(|text| parse(text, tenant));
    bill.map_err(|findings| {
        let more = findings.len().saturating_sub(SHOWN_MAX);
        let mut lines: Vec<String> = findings
            .into_iter()
            .take(SHOWN_MAX)
            .map(|(line, why)| format!("{name}:{line}: {why}"))
            .collect();
        if more > 0 {
            lines.push(format!("{name}: {more} more lines cannot be read"));
        }
        lines.push(format!(
            "{name}: nothing was reconciled; correct the bill and bring it again"
        ));
        Failure::Said(lines.join("\n"))
    })
}

/// Lines that cannot be read, by their numbers, and why.
type Findings = Vec<(usize, String)>;

fn text(bytes: &[u8]) -> Result<&str, Findings> {
    std::str::from_utf8(bytes).map_err(|e| {
        let whole = bytes.get(..e.valid_up_to()).unwrap_or_default();
        let line = 1 + whole.iter().filter(|byte| **byte == b'\n').count();
        vec![(line, "the line is not UTF-8, save the file as UTF-8".into())]
    })
}

/// A line as written. What is not there is empty.
#[derive(Debug, Default)]
struct Cells {
    id: String,
    units: String,
    tenant: String,
}

/// What stands in the lines that are not blank.
type Written = Vec<(usize, Result<Cells, String>)>;

fn parse(text: &str, tenant: Option<&TenantName>) -> Result<Vec<BillLine>, Findings> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = match text.trim_start().starts_with(['{', '[']) {
        true => members::lines(text),
        false => columns::lines(text)?,
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

/// The place of a name among those of columns or members.
fn place<'a>(
    names: impl Iterator<Item = &'a str>,
    wanted: &str,
) -> Result<Option<usize>, &'static str> {
    let is_wanted = |name: &str| name.trim().eq_ignore_ascii_case(wanted);
    let mut found = names.enumerate().filter(|(_, name)| is_wanted(name));
    let first = found.next().map(|(at, _)| at);
    match found.next() {
        Some(_) => Err("stands more than once, leave the one that is right"),
        None => Ok(first),
    }
}

fn checked(line: usize, cells: &Cells, tenant: Option<&TenantName>) -> Result<BillLine, String> {
    let own = cells.tenant.trim();
    let own = (!own.is_empty()).then(|| TenantName::new(own));
    Ok(BillLine {
        line,
        tenant: own.or_else(|| tenant.cloned()),
        id: id(cells.id.trim())?,
        units: units(cells.units.trim())?,
    })
}

fn id(text: &str) -> Result<RequestId, String> {
    RequestId::parse(text).ok_or_else(|| match text {
        "" => "request_id is missing".to_owned(),
        _ => format!(
            "request_id is {text:?}, which is no id: 1 to {} of A-Za-z0-9._:-",
            RequestId::LEN_MAX
        ),
    })
}

fn units(text: &str) -> Result<Units, String> {
    let max = Units::BELIEVABLE_MAX.0;
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let believable = |units: &u64| is_whole && *units <= max;
    match text.parse().ok().filter(believable) {
        Some(units) => Ok(Units(units)),
        None if text.is_empty() => Err("units is missing".to_owned()),
        None => Err(format!(
            "units is {text:?}, not a whole number from 0 to {max}"
        )),
    }
}
