//! Keys that nobody asked for, and what they were meant to be.

use super::super::nearest::nearest;
use super::join;
use std::collections::BTreeSet;

/// A key that its table does not know.
pub(super) struct Unknown {
    pub table: String,
    pub key: String,
    pub at: usize,
}

impl Unknown {
    /// To be asked when every known key has been asked for.
    pub fn message(&self, known: &BTreeSet<String>) -> String {
        let path = join(&self.table, &self.key);
        let here: Vec<&str> = known.iter().filter_map(|k| child(&self.table, k)).collect();
        if let Some(meant) = nearest(&self.key, here.iter().copied()) {
            return format!("unknown key {path}: did you mean {meant}?");
        }
        let elsewhere = nearest(&self.key, known.iter().map(|k| leaf(k)));
        match known.iter().find(|k| Some(leaf(k)) == elsewhere) {
            Some(meant) => format!("unknown key {path}: did you mean {meant}?"),
            None => format!("unknown key {path}: known here are {}", here.join(", ")),
        }
    }
}

fn leaf(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// The key's name, where its path is one step below the table.
fn child<'k>(table: &str, path: &'k str) -> Option<&'k str> {
    let key = if table.is_empty() {
        path
    } else {
        path.strip_prefix(table)?.strip_prefix('.')?
    };
    (!key.contains('.')).then_some(key)
}
