//! Rows of named columns, written as a table, CSV, JSON or JSONL.

use super::{Failure, csv};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;

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

/// A writer of rows, each a JSON object. CSV shows all columns, a table those that fit a screen; JSON the whole row.
pub(super) struct Sheet<'a> {
    out: &'a mut dyn Write,
    format: Format,
    columns: &'static [&'static str],
    table: Vec<Vec<String>>,
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
        let failed = |e: serde_json::Error| Failure::Said(format!("a row cannot be written: {e}"));
        match self.format {
            Format::Jsonl => writeln!(self.out, "{}", serde_json::to_string(row).map_err(failed)?)?,
            Format::Json => {
                let comma = if self.rows > 0 { "," } else { "" };
                write!(
                    self.out,
                    "{comma}\n{}",
                    serde_json::to_string(row).map_err(failed)?
                )?;
            }
            Format::Csv => {
                let cells = self.cells(&serde_json::to_value(row).map_err(failed)?);
                write!(self.out, "{}", csv::line(cells.iter().map(String::as_str)))?;
            }
            Format::Table => {
                let cells = self.cells(&serde_json::to_value(row).map_err(failed)?);
                self.table.push(cells.iter().map(|c| shown(c)).collect());
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

    /// Adds a row to a table only, after a rule.
    pub fn total(&mut self, row: &Value) {
        if self.format == Format::Table && self.rows > 1 {
            let cells = self.cells(row);
            self.table.push(cells);
        }
    }

    pub fn end(self) -> Result<(), Failure> {
        match self.format {
            Format::Table => write!(self.out, "{}", aligned(&self.table))?,
            Format::Json if self.rows == 0 => writeln!(self.out, "]")?,
            Format::Json => writeln!(self.out, "\n]")?,
            Format::Csv | Format::Jsonl => {}
        }
        Ok(())
    }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

/// A cell that cannot move a terminal's cursor; one that is empty shows as a dash.
fn shown(cell: &str) -> String {
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

/// The rows as lines, each column as wide as its widest cell; numbers to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let cell = |row: &Vec<String>, i: usize| row.get(i).cloned().unwrap_or_default();
    let is_number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let width = |i: usize| {
        rows.iter()
            .map(|r| cell(r, i).chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let numbers: Vec<bool> = (0..columns)
        .map(|i| rows.len() > 1 && rows.iter().skip(1).all(|r| is_number(&cell(r, i))))
        .collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (i, (width, is_number)) in widths.iter().zip(&numbers).enumerate() {
            let gap = if i > 0 { "  " } else { "" };
            let cell = cell(row, i);
            let written = match is_number {
                true => write!(line, "{gap}{cell:>width$}"),
                false => write!(line, "{gap}{cell:<width$}"),
            };
            debug_assert!(written.is_ok(), "a string takes all that is written to it");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
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
