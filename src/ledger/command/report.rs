//! `ledger report`: sums by day, tenant and model, of all requests that ever ended, whether or not their entries are
//! still kept.

use super::Failure;
use super::options::Options;
use super::output::Sheet;
use crate::ledger::store::Books;
use crate::ledger::sums::{Usage, UsageKey};
use serde_json::{Value, json};
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

pub(super) fn run(
    books: &dyn Books,
    options: &Options,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let mut sheet = Sheet::new(out, options.format, COLUMNS, COLUMNS)?;
    let mut total = Usage::default();
    for (key, usage) in books.usage(options.tenant.as_ref())? {
        if usage != Usage::default() {
            sheet.row(&row(&key, &usage))?;
            total = total.plus(usage);
        }
    }
    let mut sum = sums(&total);
    if let Some(sum) = sum.as_object_mut() {
        sum.insert("day".into(), json!("total"));
    }
    sheet.total(&sum);
    sheet.end()?;
    Ok(0)
}

fn row(key: &UsageKey, usage: &Usage) -> Value {
    let mut row = sums(usage);
    if let Some(row) = row.as_object_mut() {
        row.insert("day".into(), json!(key.day.to_string()));
        row.insert("tenant".into(), json!(key.tenant.as_str()));
        row.insert("model".into(), json!(key.model));
    }
    row
}

fn sums(usage: &Usage) -> Value {
    json!({
        "requests": usage.requests,
        "completed": usage.completed,
        "cancelled": usage.cancelled,
        "failed": usage.failed,
        "unknown": usage.unknown,
        "input_units": usage.input_units,
        "generated_units": usage.generated_units,
        "delivered_units": usage.delivered_units,
        "charged_units": usage.charged_units,
    })
}
