//! `ledger show ID`: one record, whole.

use super::Failure;
use super::list::{RECORD, RECORD_IN_SHORT};
use super::options::Options;
use super::output::{Format, Sheet};
use crate::ledger::store::{Books, Row};
use crate::record::{Record, RequestId};
use std::io::Write;

pub(super) fn run(
    books: &dyn Books,
    options: &Options,
    id: &str,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let found = match RequestId::parse(id) {
        Some(id) => books.named(&id, options.tenant.as_ref())?,
        None => Vec::new(),
    };
    let record = the_only(found, id)?;
    if options.format == Format::Json {
        let text = serde_json::to_string_pretty(&record)
            .map_err(|e| Failure::Said(format!("the record of {id:?} cannot be written: {e}")))?;
        writeln!(out, "{text}")?;
        return Ok(0);
    }
    let mut sheet = Sheet::new(out, options.format, RECORD, RECORD_IN_SHORT)?;
    sheet.row(&record)?;
    sheet.end()?;
    Ok(0)
}

fn the_only(mut found: Vec<Row>, id: &str) -> Result<Record, Failure> {
    let Some((_, record)) = found.pop() else {
        return Err(Failure::Said(format!("no entry has the id {id:?}")));
    };
    if found.is_empty() {
        return Ok(record?);
    }
    found.push((0, record));
    let tenants = found.into_iter().filter_map(|(_, record)| record.ok());
    let tenants: Vec<String> = tenants.map(|r| r.tenant.to_string()).collect();
    Err(Failure::Said(format!(
        "the id {id:?} is of several tenants ({}), name one with --tenant",
        tenants.join(", ")
    )))
}
