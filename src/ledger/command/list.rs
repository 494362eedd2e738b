//! `ledger list`: the newest entries first.

use super::Failure;
use super::options::Options;
use super::output::Sheet;
use crate::ledger::store::{Books, Order};
use std::io::Write;

/// The columns of a record, in its own order.
pub(super) const RECORD: &[&str] = &[
    "request_id",
    "client_request_id",
    "upstream_request_id",
    "tenant",
    "api",
    "model",
    "pool",
    "backend",
    "node",
    "state",
    "ended_by",
    "upstream_end",
    "error",
    "admitted_at",
    "started_at",
    "first_output_at",
    "cancel_requested_at",
    "client_gone_at",
    "upstream_ended_at",
    "released_at",
    "ended_at",
    "reserved_units",
    "input_units",
    "input_cached_units",
    "input_cache_write_units",
    "generated_units",
    "delivered_units",
    "charged_units",
    "usage_source",
    "attempts",
];

/// Those that fit a screen.
pub(super) const RECORD_IN_SHORT: &[&str] = &[
    "admitted_at",
    "tenant",
    "request_id",
    "model",
    "state",
    "ended_by",
    "usage_source",
    "reserved_units",
    "generated_units",
    "charged_units",
];

const PAGE: usize = 500;

pub(super) fn run(
    books: &dyn Books,
    options: &Options,
    limit: usize,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let mut sheet = Sheet::new(out, options.format, RECORD, RECORD_IN_SHORT)?;
    let filter = options.filter();
    let (mut after, mut left) = (None, limit);
    while left > 0 {
        let page = books.page(&filter, Order::Newest(after), left.min(PAGE))?;
        let is_last = page.len() < left.min(PAGE);
        left -= page.len().min(left);
        for (key, record) in page {
            after = Some(key);
            match record {
                Ok(record) => sheet.row(&record)?,
                Err(e) => writeln!(err, "{e}")?,
            }
        }
        if is_last {
            break;
        }
    }
    sheet.end()?;
    let is_cut = left == 0 && !books.page(&filter, Order::Newest(after), 1)?.is_empty();
    if is_cut {
        writeln!(
            err,
            "only the newest {limit} are listed, there are more: --limit N lists N, `ledger export` all"
        )?;
    }
    Ok(0)
}
