//! What is wrong with a configuration file, and where: one `FILE:LINE:COL: message` each.

use std::fmt;
use std::path::{Path, PathBuf};

/// One fault of a file, in words for the one who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub file: PathBuf,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub message: String,
}

/// Every fault of a file, in the order of their places. Displays as one line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn new(mut found: Vec<Finding>) -> Findings {
        found.sort_by(|a, b| a.order().cmp(&b.order()));
        found.dedup();
        Findings(found)
    }

    /// The findings as lines of text, for the log.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(Finding::to_string)
    }

    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Finding {
    fn order(&self) -> (usize, usize, &str) {
        (self.line, self.column, &self.message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding {
            file,
            line,
            column,
            message,
        } = self;
        write!(f, "{}:{line}:{column}: {message}", file.display())
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, finding) in self.0.iter().enumerate() {
            let end = if i == 0 { "" } else { "\n" };
            write!(f, "{end}{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Findings {}

/// The text of a file, to turn byte offsets into places.
pub(super) struct Lines<'t> {
    file: &'t Path,
    text: &'t str,
    /// Where each line starts.
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(file: &'t Path, text: &'t str) -> Lines<'t> {
        let next = text.match_indices('\n').map(|(newline, _)| newline + 1);
        let starts = std::iter::once(0).chain(next).collect();
        Lines { file, text, starts }
    }

    pub(super) fn finding(&self, at: usize, message: String) -> Finding {
        let (line, column) = self.place(at);
        Finding {
            file: self.file.to_owned(),
            line,
            column,
            message: on_one_line(message),
        }
    }

    /// The line of a byte offset, from 1.
    pub(super) fn line(&self, at: usize) -> usize {
        self.place(at).0
    }

    /// The text of a byte range, where it is one.
    pub(super) fn slice(&self, span: std::ops::Range<usize>) -> &'t str {
        self.text.get(span).unwrap_or_default()
    }

    fn place(&self, at: usize) -> (usize, usize) {
        let at = at.min(self.text.len());
        let line = self.starts.partition_point(|start| *start <= at);
        let start = self.starts.get(line.saturating_sub(1)).copied();
        let column = self.slice(start.unwrap_or(at)..at);
        // A byte order mark stands before the first character and is not one.
        (
            line,
            column.trim_start_matches('\u{feff}').chars().count() + 1,
        )
    }
}

/// What a file quotes cannot break the line it is quoted in, nor speak to a terminal.
fn on_one_line(message: String) -> String {
    if !message.contains(char::is_control) {
        return message;
    }
    let mut line = String::with_capacity(message.len());
    for c in message.chars() {
        if c.is_control() {
            line.extend(c.escape_debug());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let lines = Lines::new(Path::new("f"), "é = 1\nab = 'ü' x\n");
        assert_eq!(lines.place(0), (1, 1));
        assert_eq!(lines.place(3), (1, 3));
        assert_eq!(lines.place(7), (2, 1));
        assert_eq!(lines.place(17), (2, 10));
        assert_eq!(lines.place(99), (3, 1));
    }

    #[test]
    fn a_byte_order_mark_is_not_counted() {
        let lines = Lines::new(Path::new("f"), "\u{feff}a = 1");
        assert_eq!(lines.place(3), (1, 1));
    }

    #[test]
    fn findings_stand_in_the_order_of_their_places_one_a_line() {
        let lines = Lines::new(Path::new("a.toml"), "x\ny\n");
        let found = vec![
            lines.finding(2, "second".to_owned()),
            lines.finding(0, "first".to_owned()),
        ];
        let findings = Findings::new(found);
        assert_eq!(
            findings.to_string(),
            "a.toml:1:1: first\na.toml:2:1: second"
        );
        assert_eq!(findings.lines().count(), 2);
    }
}
