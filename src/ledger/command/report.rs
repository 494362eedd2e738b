//! `ledger report`: sums by day, tenant and model, of all requests that ever ended, whether or not their entries are
//! still kept.

use super::Failure;
use super::options::Options;
use super::output::Sheet;
use crate::ledger::store::Books;
use crate::ledger::sums::Usage;
use serde::Serialize;
use std::io::Write;

const COLUMNS: &[&str] = &[
    "day",
    "tenant",
    "model",
    "requests",
    "completed",
    "cancelled",
    "failed",
    "unknown",
    "input_units",
    "generated_units",
    "delivered_units",
    "charged_units",
];

/// A row, its members in the order of the columns.
#[derive(Serialize)]
struct Row<'a> {
    day: &'a str,
    tenant: &'a str,
    model: &'a str,
    requests: i64,
    completed: i64,
    cancelled: i64,
    failed: i64,
    unknown: i64,
    input_units: i64,
    generated_units: i64,
    delivered_units: i64,
    charged_units: i64,
}

pub(super) fn run(
    books: &dyn Books,
    options: &Options,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let mut sheet = Sheet::new(out, options.format, COLUMNS, COLUMNS)?;
    let mut total = Usage::default();
    for (key, usage) in books.usage(options.tenant.as_ref())? {
        if usage != Usage::default() {
            let day = key.day.to_string();
            sheet.row(&row([&day, key.tenant.as_str(), &key.model], &usage))?;
            total = total.plus(usage);
        }
    }
    sheet.total(&row(["total", "", ""], &total))?;
    sheet.end()?;
    Ok(0)
}

fn row<'a>([day, tenant, model]: [&'a str; 3], usage: &Usage) -> Row<'a> {
    Row {
        day,
        tenant,
        model,
        requests: usage.requests,
        completed: usage.completed,
        cancelled: usage.cancelled,
        failed: usage.failed,
        unknown: usage.unknown,
        input_units: usage.input_units,
        generated_units: usage.generated_units,
        delivered_units: usage.delivered_units,
        charged_units: usage.charged_units,
    }
}
