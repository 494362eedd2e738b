//! Reads tables key by key: a table knows which keys were asked of it, so what nobody asked for is unknown.
//!
//! What a section's reader asks for is the one list of its keys: it feeds the values, the findings on unknown keys,
//! the suggestions and the list of keys that are not in effect yet.

mod table;
mod unknown;
mod value;

use super::findings::{Finding, Lines};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::de::DeTable;
use unknown::Unknown;

pub(super) use table::Table;
pub(super) use value::Value;

/// How the environment is looked up.
pub(super) type Env<'r> = &'r dyn Fn(&str) -> Option<String>;

/// What all tables of one file share: where they stand, and what was found.
pub(super) struct Reader<'r> {
    pub lines: &'r Lines<'r>,
    /// Where relative paths start.
    pub folder: PathBuf,
    pub env: Env<'r>,
    /// Part of the file could not be read, so nothing can be said of what is missing.
    pub partial: bool,
    findings: RefCell<Vec<Finding>>,
    /// What to say of keys that are not in effect, and where each of them stands first.
    pending: RefCell<BTreeMap<String, usize>>,
    known: RefCell<BTreeSet<String>>,
    unknown: RefCell<Vec<Unknown>>,
}

/// What a reader leaves behind when the whole file has been read.
pub(super) struct Outcome {
    pub findings: Vec<Finding>,
    pub pending: Vec<Finding>,
    /// Every key that was asked for, as a dotted path.
    #[cfg(test)]
    pub known: BTreeSet<String>,
}

impl<'r> Reader<'r> {
    pub fn new(lines: &'r Lines<'r>, folder: PathBuf, env: Env<'r>, partial: bool) -> Reader<'r> {
        Reader {
            lines,
            folder,
            env,
            partial,
            findings: RefCell::default(),
            pending: RefCell::default(),
            known: RefCell::default(),
            unknown: RefCell::default(),
        }
    }

    /// Reads the file's own table.
    pub fn root<T>(&'r self, root: &'r DeTable<'r>, read: impl FnOnce(&Table<'r>) -> T) -> T {
        Table::open(self, String::new(), 0, Some(root), read)
    }

    pub fn report(&self, at: usize, message: String) {
        let finding = self.lines.finding(at, message);
        self.findings.borrow_mut().push(finding);
    }

    /// Reports what is not there, unless part of the file could not be read.
    pub fn missing(&self, at: usize, message: String) {
        if !self.partial {
            self.report(at, message);
        }
    }

    /// A path of the file as the process needs it.
    pub fn resolve(&self, path: &str) -> PathBuf {
        self.folder.join(Path::new(path))
    }

    /// Names the unknown keys, now that all known ones have been asked for.
    pub fn finish(self) -> Outcome {
        let known = self.known.take();
        for unknown in self.unknown.take() {
            self.report(unknown.at, unknown.message(&known));
        }
        let pending = self.pending.take().into_iter();
        Outcome {
            findings: self.findings.take(),
            pending: pending
                .map(|(remark, at)| self.lines.finding(at, remark))
                .collect(),
            #[cfg(test)]
            known,
        }
    }
}

fn join(table: &str, key: &str) -> String {
    if table.is_empty() {
        return key.to_owned();
    }
    format!("{table}.{key}")
}
