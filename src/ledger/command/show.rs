//! `ledger show ID`: one record, whole.

use super::Failure;
use super::list::{RECORD, RECORD_IN_SHORT};
use super::options::Options;
use super::output::{Format, Sheet};
use crate::ledger::store::{Books, Row};
use crate::record::{Record, RequestId};
use crate::tenant::TenantName;
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
    let record = the_only(found, id, options.tenant.as_ref())?;
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

fn the_only(mut found: Vec<Row>, id: &str, tenant: Option<&TenantName>) -> Result<Record, Failure> {
    let last = found.pop();
    match last {
        Some((_, record)) if found.is_empty() => Ok(record?),
        Some(last) => {
            found.push(last);
            Err(several_have(found, id))
        }
        None => Err(nobody_has(id, tenant)),
    }
}

fn nobody_has(id: &str, tenant: Option<&TenantName>) -> Failure {
    let of = tenant.map_or(String::new(), |t| format!(" of tenant {:?}", t.as_str()));
    Failure::Said(format!(
        "no entry{of} has the id {id:?}; `streamgate ledger list` names the newest"
    ))
}

fn several_have(found: Vec<Row>, id: &str) -> Failure {
    let records = found.into_iter().filter_map(|(_, record)| record.ok());
    let mut tenants: Vec<TenantName> = records.map(|r| r.tenant).collect();
    tenants.sort();
    let tenants: Vec<&str> = tenants.iter().map(TenantName::as_str).collect();
    Failure::Said(format!(
        "the id {id:?} is of several tenants ({}), name one with --tenant",
        tenants.join(", ")
    ))
}
