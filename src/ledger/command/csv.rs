//! CSV as RFC 4180 has it: written so that no spreadsheet takes a value for a formula, read from any program.

/// A line of cells, with its line end.
pub(super) fn line<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let cells: Vec<String> = cells.into_iter().map(cell).collect();
    format!("{}\r\n", cells.join(","))
}

/// What a formula may begin with, for one spreadsheet or another: also in full width, and after what is skipped.
const RUNS: [char; 11] = [
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// What ends a cell, also for a program that divides by semicolons or tabs.
const DIVIDES: [char; 6] = ['"', ',', ';', '\t', '\n', '\r'];

/// A cell, quoted where it must be. A text that a spreadsheet would run as a formula gets an apostrophe in front.
fn cell(text: &str) -> String {
    let runs = text.starts_with(RUNS);
    let safe = if runs {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    match safe.contains(DIVIDES) {
        true => format!("\"{}\"", safe.replace('"', "\"\"")),
        false => safe,
    }
}

/// A cell's own text again, where `cell` put an apostrophe in front.
pub(super) fn plain(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if rest.starts_with(RUNS) => rest,
        _ => cell,
    }
}

/// The cells of a row, and the line it begins in.
pub(super) type Row = (usize, Vec<String>);

/// The rows of a file, without its blank lines; or the line where it is no CSV, and why.
pub(super) fn rows(text: &str) -> Result<Vec<Row>, (usize, &'static str)> {
    let mut reader = Reader::default();
    let mut rest = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .chars()
        .peekable();
    while let Some(c) = rest.next() {
        let doubled = c == '"' && reader.quoted && rest.next_if_eq(&'"').is_some();
        match c {
            '"' if doubled => reader.cell.push('"'),
            '"' if reader.quoted => reader.close_quote(),
            '"' if reader.cell.is_empty() && !reader.was_quoted => reader.quoted = true,
            _ if reader.quoted => reader.push(c),
            ',' => reader.end_cell(),
            '\n' => reader.end_row(),
            '\r' if matches!(rest.peek(), None | Some('\n')) => {}
            _ if reader.was_quoted => return Err((reader.at, "text after a closing quote")),
            _ => reader.push(c),
        }
    }
    match reader.quoted {
        true => Err((reader.row_at, "a quote is never closed")),
        false => {
            reader.end_row();
            Ok(reader.rows)
        }
    }
}

#[derive(Debug)]
struct Reader {
    rows: Vec<Row>,
    row: Vec<String>,
    cell: String,
    quoted: bool,
    was_quoted: bool,
    at: usize,
    row_at: usize,
}

impl Default for Reader {
    fn default() -> Reader {
        Reader {
            rows: Vec::new(),
            row: Vec::new(),
            cell: String::new(),
            quoted: false,
            was_quoted: false,
            at: 1,
            row_at: 1,
        }
    }
}

impl Reader {
    fn push(&mut self, c: char) {
        self.cell.push(c);
        if c == '\n' {
            self.at += 1;
        }
    }

    fn close_quote(&mut self) {
        self.quoted = false;
        self.was_quoted = true;
    }

    fn end_cell(&mut self) {
        self.row.push(std::mem::take(&mut self.cell));
        self.was_quoted = false;
    }

    fn end_row(&mut self) {
        let blank = self.row.is_empty() && self.cell.is_empty() && !self.was_quoted;
        self.end_cell();
        let row = std::mem::take(&mut self.row);
        if !blank {
            self.rows.push((self.row_at, row));
        }
        self.at += 1;
        self.row_at = self.at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(text: &str) -> Vec<Vec<String>> {
        let rows = rows(text).unwrap_or_else(|e| panic!("{text:?}: {e:?}"));
        rows.into_iter().map(|(_, row)| row).collect()
    }

    #[test]
    fn a_value_that_a_spreadsheet_would_run_is_disarmed() {
        assert_eq!(
            line(["=1+1", "+1", "-a", "@x", "a=b"]),
            "'=1+1,'+1,'-a,'@x,a=b\r\n"
        );
        assert_eq!(
            line(["a;=1+1", "\t=1", "\u{ff1d}1"]),
            "\"a;=1+1\",\"'\t=1\",'\u{ff1d}1\r\n"
        );
        assert_eq!(plain("'-a"), "-a");
        assert_eq!(plain("'a"), "'a");
    }

    #[test]
    fn what_is_written_reads_back() {
        let written = [
            "plain",
            "a,b",
            "say \"x\"",
            "two\nlines",
            "",
            "cr\rin",
            "a;b",
        ];
        assert_eq!(cells(&line(written)), [written.map(str::to_owned).to_vec()]);
    }

    #[test]
    fn line_ends_marks_and_blank_lines_of_other_programs_are_taken() {
        let text = "\u{feff}a,b\r\n\r\n1,2\n3,";
        assert_eq!(cells(text), [["a", "b"], ["1", "2"], ["3", ""]]);
    }

    #[test]
    fn rows_know_the_line_they_begin_in() {
        let rows = rows("a\n\n\"x\ny\"\nb\n").unwrap();
        let at: Vec<usize> = rows.iter().map(|(n, _)| *n).collect();
        assert_eq!(at, [1, 3, 5]);
    }

    #[test]
    fn broken_quotes_are_named_with_their_line() {
        assert_eq!(rows("a\n\"b\nc"), Err((2, "a quote is never closed")));
        assert_eq!(rows("\"a\"b"), Err((1, "text after a closing quote")));
    }
}
