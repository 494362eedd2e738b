//! A bill as CSV: a header, and columns in any order.

use super::{Cells, Findings, Written, place};
use crate::ledger::command::csv;

/// Where the columns stand that are read.
struct Columns {
    id: usize,
    units: usize,
    tenant: Option<usize>,
    count: usize,
}

pub(super) fn lines(text: &str) -> Result<Written, Findings> {
    let rows = csv::rows(text).map_err(|(line, why)| vec![(line, why.to_owned())])?;
    let mut rows = rows.into_iter().filter(|(_, row)| !is_blank(row));
    let (line, header) = rows.next().unwrap_or((1, Vec::new()));
    let columns = Columns::of(&header).map_err(|why| vec![(line, why)])?;
    Ok(rows
        .map(|(line, row)| (line, columns.cells(&row)))
        .collect())
}

/// A line without any text, which spreadsheets leave at the end, is no line of the bill.
fn is_blank(row: &[String]) -> bool {
    row.iter().all(|cell| cell.trim().is_empty())
}

impl Columns {
    fn of(header: &[String]) -> Result<Columns, String> {
        let column = |wanted| {
            let names = header.iter().map(String::as_str);
            place(names, wanted).map_err(|why| format!("the column {wanted} {why}"))
        };
        match (column("request_id")?, column("units")?) {
            (Some(id), Some(units)) => Ok(Columns {
                id,
                units,
                tenant: column("tenant")?,
                count: header.len(),
            }),
            _ => Err(
                "the first line must name the columns request_id and units, divided by commas"
                    .to_owned(),
            ),
        }
    }

    fn cells(&self, row: &[String]) -> Result<Cells, String> {
        // `1,000` without quotes is two cells, and its units are not 1.
        let has_more = row.iter().skip(self.count).any(|c| !c.trim().is_empty());
        let cell = |at: usize| row.get(at).map(|c| csv::plain(c.trim()).to_owned());
        match (cell(self.id), cell(self.units)) {
            (Some(id), Some(units)) if !has_more => Ok(Cells {
                id,
                units,
                tenant: self.tenant.and_then(cell).unwrap_or_default(),
            }),
            _ => Err(format!(
                "the line has {} columns, the first line {}; a value with a comma in it needs quotes",
                row.len(),
                self.count
            )),
        }
    }
}
