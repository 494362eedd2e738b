//! The text of a file as a tree of values with their places, and its syntax errors.
//!
//! A file with syntax errors is checked as far as it can be understood, so that one run names all that is wrong: the
//! lines that hold the errors are left out, and where one of them opens a table, everything after it too, as nobody
//! can say which table it belongs to. What is then missing may only be left out, so nothing is reported as missing.

use super::findings::{Finding, Lines};
use toml::Spanned;
use toml::de::{DeTable, Error};

/// A file as written.
pub(super) struct Source<'t> {
    pub root: DeTable<'t>,
    pub errors: Vec<Finding>,
}

/// Reads the text; `spare` holds what is left of it where it has syntax errors.
pub(super) fn read<'t>(text: &'t str, spare: &'t mut String, lines: &Lines<'t>) -> Source<'t> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Source {
            root: tree.into_inner(),
            errors: Vec::new(),
        };
    }
    let bad: Vec<usize> = errors.iter().map(|e| lines.line(offset(e, text))).collect();
    *spare = without(text, &bad);
    let (rest, again) = DeTable::parse_recoverable(spare);
    let root = if again.is_empty() {
        Spanned::into_inner(rest)
    } else {
        DeTable::new()
    };
    let errors = errors.iter().map(|e| finding(e, text, lines)).collect();
    Source { root, errors }
}

fn offset(error: &Error, text: &str) -> usize {
    error.span().map_or(text.len(), |span| span.start)
}

fn finding(error: &Error, text: &str, lines: &Lines<'_>) -> Finding {
    let message = format!("syntax error: {}", error.message());
    lines.finding(offset(error, text), message)
}

/// The text with the bad lines blanked, every other byte at its place.
fn without(text: &str, bad: &[usize]) -> String {
    let mut lost = false;
    let mut kept = String::with_capacity(text.len());
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let is_bad = bad.contains(&(i + 1));
        lost |= is_bad && line.trim_start().starts_with('[');
        if is_bad || lost {
            kept.extend(line.bytes().map(|b| if b == b'\n' { '\n' } else { ' ' }));
        } else {
            kept.push_str(line);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_line_is_blanked_and_the_rest_keeps_its_place() {
        assert_eq!(
            without("a = 1\nb = é\nc = 3\n", &[2]),
            "a = 1\n      \nc = 3\n"
        );
    }

    #[test]
    fn all_that_follows_a_bad_table_header_is_left_out() {
        assert_eq!(without("a = 1\n[b\nc = 3", &[2]), "a = 1\n  \n     ");
    }
}
