//! `ledger export`: every entry, oldest first, read in pages so that no gateway waits for a long reader.

use super::Failure;
use super::list::{RECORD, RECORD_IN_SHORT};
use super::options::Options;
use super::output::Sheet;
use crate::ledger::store::{Books, Order};
use std::io::Write;

const PAGE: usize = 1000;

pub(super) fn run(
    books: &dyn Books,
    options: &Options,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let mut sheet = Sheet::new(out, options.format, RECORD, RECORD_IN_SHORT)?;
    let filter = options.filter();
    let mut after = None;
    let mut unreadable = 0u64;
    loop {
        let page = books.page(&filter, Order::Oldest(after), PAGE)?;
        let is_last = page.len() < PAGE;
        for (key, record) in page {
            after = Some(key);
            match record {
                Ok(record) => sheet.row(&record)?,
                Err(e) => {
                    unreadable += 1;
                    writeln!(err, "{e}")?;
                }
            }
        }
        if is_last {
            break;
        }
    }
    sheet.end()?;
    // What is left out of an export must not go unnoticed.
    Ok(u8::from(unreadable > 0))
}
