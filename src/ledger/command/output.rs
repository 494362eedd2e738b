//! Rows of named columns, written as a table, CSV, JSON or JSONL.

use super::{Failure, csv};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Table,
    Csv,
    Json,
    Jsonl,
}

impl Format {
    pub fn from_word(word: &str) -> Option<Format> {
        match word {
            "table" => Some(Format::Table),
            "csv" => Some(Format::Csv),
            "json" => Some(Format::Json),
            "jsonl" => Some(Format::Jsonl),
            _ => None,
        }
    }
}

/// Rows of a table that are laid out together. A long table is not held whole: its columns may grow from one block to
/// the next.
const BLOCK: usize = 1000;

/// A writer of rows, each a JSON object. CSV shows all columns, a table those that fit a screen; JSON the whole row.
pub(super) struct Sheet<'a> {
    out: &'a mut dyn Write,
    format: Format,
    columns: &'static [&'static str],
    table: Vec<Vec<String>>,
    layout: Layout,
    rows: usize,
}

impl<'a> Sheet<'a> {
    pub fn new(
        out: &'a mut dyn Write,
        format: Format,
        columns: &'static [&'static str],
        table_columns: &'static [&'static str],
    ) -> Result<Sheet<'a>, Failure> {
        let columns = if format == Format::Table {
            table_columns
        } else {
            columns
        };
        let mut sheet = Sheet {
            out,
            format,
            columns,
            table: Vec::new(),
            layout: Layout::default(),
            rows: 0,
        };
        match format {
            Format::Table => sheet.table.push(texts(columns)),
            Format::Csv => write!(sheet.out, "{}", csv::line(columns.iter().copied()))?,
            Format::Json => write!(sheet.out, "[")?,
            Format::Jsonl => {}
        }
        Ok(sheet)
    }

    /// Adds a row. `text` is the row as JSON.
    pub fn row(&mut self, row: &impl serde::Serialize) -> Result<(), Failure> {
        match self.format {
            Format::Jsonl => {
                let text = serde_json::to_string(row).map_err(unwritable)?;
                writeln!(self.out, "{text}")?;
            }
            Format::Json => {
                let comma = if self.rows > 0 { "," } else { "" };
                let text = serde_json::to_string(row).map_err(unwritable)?;
                write!(self.out, "{comma}\n{text}")?;
            }
            Format::Csv => {
                let cells = self.cells(&value(row)?);
                write!(self.out, "{}", csv::line(cells.iter().map(String::as_str)))?;
            }
            Format::Table => {
                let cells = self.cells(&value(row)?);
                self.table.push(cells.iter().map(|c| shown(c)).collect());
                if self.table.len() >= BLOCK {
                    self.write_block()?;
                }
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn cells(&self, row: &Value) -> Vec<String> {
        let cell = |column: &&str| match row.get(column) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        self.columns.iter().map(cell).collect()
    }

    /// Adds a row that sums up the others, where there are several, to a table only.
    pub fn total(&mut self, row: &impl serde::Serialize) -> Result<(), Failure> {
        if self.format == Format::Table && self.rows > 1 {
            let cells = self.cells(&value(row)?);
            self.table.push(cells);
        }
        Ok(())
    }

    fn write_block(&mut self) -> io::Result<()> {
        self.layout.fit(&self.table);
        for row in self.table.drain(..) {
            self.out.write_all(self.layout.line(&row).as_bytes())?;
        }
        Ok(())
    }

    pub fn end(mut self) -> Result<(), Failure> {
        match self.format {
            Format::Table => self.write_block()?,
            Format::Json if self.rows == 0 => writeln!(self.out, "]")?,
            Format::Json => writeln!(self.out, "\n]")?,
            Format::Csv | Format::Jsonl => {}
        }
        Ok(())
    }
}

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::Said(format!("a row cannot be written: {error}"))
}

fn value(row: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(row).map_err(unwritable)
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

/// A cell that cannot move a terminal's cursor; one that is empty shows as a dash.
pub(super) fn shown(cell: &str) -> String {
    if cell.is_empty() {
        return "-".into();
    }
    let mut text = String::with_capacity(cell.len());
    for c in cell.chars() {
        match c.is_control() {
            true => text.extend(c.escape_default()),
            false => text.push(c),
        }
    }
    text
}

/// How a table's columns stand: each as wide as its widest cell so far, numbers to the right.
#[derive(Default)]
struct Layout(Vec<Column>);

struct Column {
    width: usize,
    is_number: bool,
}

impl Layout {
    /// Makes room for more rows. The first of all is the header; whether a column is one of numbers the first block says.
    fn fit(&mut self, rows: &[Vec<String>]) {
        if self.0.is_empty() {
            let count = rows.first().map_or(0, Vec::len);
            self.0.extend((0..count).map(|i| Column {
                width: 0,
                is_number: holds_numbers(rows, i),
            }));
        }
        for row in rows {
            for (column, cell) in self.0.iter_mut().zip(row) {
                column.width = column.width.max(cell.chars().count());
            }
        }
    }

    fn line(&self, row: &[String]) -> String {
        let mut line = String::new();
        for (i, (column, cell)) in self.0.iter().zip(row).enumerate() {
            let gap = if i > 0 { "  " } else { "" };
            let width = column.width;
            let written = match column.is_number {
                true => write!(line, "{gap}{cell:>width$}"),
                false => write!(line, "{gap}{cell:<width$}"),
            };
            debug_assert!(written.is_ok(), "a string takes all that is written to it");
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// Whether all of a column's cells below its header are numbers.
fn holds_numbers(rows: &[Vec<String>], column: usize) -> bool {
    let is_number = |cell: &String| !cell.is_empty() && cell.bytes().all(|b| b.is_ascii_digit());
    let mut cells = rows.iter().skip(1).map(|row| row.get(column));
    rows.len() > 1 && cells.all(|cell| cell.is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(format: Format, rows: &[Value]) -> String {
        let mut out = Vec::new();
        let mut sheet = Sheet::new(&mut out, format, &["a", "n"], &["n", "a"]).unwrap();
        for row in rows {
            sheet.row(row).unwrap();
        }
        sheet.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_format_writes_the_same_rows() {
        let rows = [json!({"a": "x,y", "n": 7}), json!({"a": null, "n": 12})];
        assert_eq!(written(Format::Csv, &rows), "a,n\r\n\"x,y\",7\r\n,12\r\n");
        assert_eq!(written(Format::Table, &rows), " n  a\n 7  x,y\n12  -\n");
        assert_eq!(written(Format::Jsonl, &rows).lines().count(), 2);
        let doc: Vec<Value> = serde_json::from_str(&written(Format::Json, &rows)).unwrap();
        assert_eq!(doc, rows);
    }

    #[test]
    fn a_long_table_is_laid_out_in_blocks_and_grows_where_it_must() {
        let mut rows = vec![json!({"a": "x", "n": 1}); BLOCK];
        rows.push(json!({"a": "wide", "n": 1_000_000}));
        let text = written(Format::Table, &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), rows.len() + 1);
        assert_eq!(lines[..2], ["n  a", "1  x"]);
        assert_eq!(lines.last(), Some(&"1000000  wide"));
    }

    #[test]
    fn no_rows_are_still_a_document() {
        assert_eq!(written(Format::Json, &[]), "[]\n");
        assert_eq!(written(Format::Csv, &[]), "a,n\r\n");
        assert_eq!(written(Format::Table, &[]), "n  a\n");
    }

    #[test]
    fn a_table_shows_control_characters_harmlessly() {
        let text = written(Format::Table, &[json!({"a": "x\u{1b}[2Jy", "n": 1})]);
        assert!(text.contains("x\\u{1b}[2Jy"), "{text}");
    }
}
