//! Names that may stand only once in a file.

use super::reader::{Reader, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The names seen so far, with their places.
pub(super) struct Unique<'r> {
    reader: &'r Reader<'r>,
    rule: &'static str,
    seen: RefCell<BTreeMap<String, usize>>,
}

impl<'r> Unique<'r> {
    /// `rule` says in a finding why a name may not come again.
    pub fn new(reader: &'r Reader<'r>, rule: &'static str) -> Unique<'r> {
        Unique {
            reader,
            rule,
            seen: RefCell::default(),
        }
    }

    /// Takes the name, or refuses the value where it is taken.
    pub fn claim(&self, v: &Value, name: &str) {
        if let Some(why) = self.taken(v.at, name) {
            v.refuse_because(&why);
        }
    }

    /// The same for a value that is not to be shown.
    pub fn claim_hidden(&self, v: &Value, name: &str) {
        if let Some(why) = self.taken(v.at, name) {
            v.refuse_hidden(&why);
        }
    }

    /// The same for a table as a whole.
    pub fn claim_table(&self, at: usize, table: &str, name: &str) {
        if let Some(why) = self.taken(at, name) {
            self.reader.report(at, format!("{table}: {why}"));
        }
    }

    fn taken(&self, at: usize, name: &str) -> Option<String> {
        let first = *self.seen.borrow_mut().entry(name.to_owned()).or_insert(at);
        let line = || self.reader.lines.line(first);
        (first != at).then(|| format!("it repeats line {}, but {}", line(), self.rule))
    }
}
