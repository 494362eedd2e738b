//! A table that knows which keys were asked of it.

use super::super::pending;
use super::unknown::Unknown;
use super::{Reader, Value, join};
use std::cell::RefCell;
use toml::de::DeTable;

/// A table of the file, or one that was left out.
pub(in crate::config) struct Table<'r> {
    pub reader: &'r Reader<'r>,
    /// The dotted path of the table; empty for the file's own.
    path: String,
    /// Where to say that something is missing.
    at: usize,
    entries: Option<&'r DeTable<'r>>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'r> Table<'r> {
    /// Reads a table; what was not asked for then is unknown.
    pub fn open<T>(
        reader: &'r Reader<'r>,
        path: String,
        at: usize,
        entries: Option<&'r DeTable<'r>>,
        read: impl FnOnce(&Table<'r>) -> T,
    ) -> T {
        let table = Table {
            reader,
            path,
            at,
            entries,
            asked: RefCell::default(),
        };
        let read = read(&table);
        table.close();
        read
    }

    /// The value of a key, where it stands in the file.
    pub fn get(&self, key: &'static str) -> Option<Value<'r>> {
        self.asked.borrow_mut().push(key);
        let path = join(&self.path, key);
        self.reader.known.borrow_mut().insert(path.clone());
        let (name, value) = self.entries?.get_key_value(key)?;
        if let Some(remark) = pending::remark(&path, value.get_ref().as_str()) {
            let at = name.span().start;
            self.reader.pending.borrow_mut().entry(remark).or_insert(at);
        }
        Some(Value::new(self.reader, path, value))
    }

    /// A key's value as `read` makes it; `None` where it is left out or refused.
    pub fn value<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Value<'r>) -> Option<T>,
    ) -> Option<T> {
        self.get(key).and_then(|value| read(&value))
    }

    /// The same for a key that must be there; `wanted` says what to give.
    pub fn required<T>(
        &self,
        key: &'static str,
        wanted: &str,
        read: impl FnOnce(&Value<'r>) -> Option<T>,
    ) -> Option<T> {
        let value = self.get(key);
        if value.is_none() {
            self.missing(key, wanted);
        }
        value.and_then(|value| read(&value))
    }

    /// A table with a default for each of its keys: read as empty where it is left out.
    pub fn section<T>(&self, key: &'static str, read: impl FnOnce(&Table<'r>) -> T) -> T {
        let path = join(&self.path, key);
        let value = self.get(key);
        let entries = value.as_ref().and_then(Value::as_table);
        let at = value.map_or(self.at, |v| v.at);
        Table::open(self.reader, path, at, entries, read)
    }

    /// A table whose absence means something of its own.
    pub fn table<T>(&self, key: &'static str, read: impl FnOnce(&Table<'r>) -> T) -> Option<T> {
        self.value(key, |value| value.table(read))
    }

    /// Each element of a list as `read` makes it, without those it refused; empty where it is left out.
    pub fn list<T>(&self, key: &'static str, read: impl FnMut(&Value<'r>) -> Option<T>) -> Vec<T> {
        self.value(key, |value| value.list(read))
            .unwrap_or_default()
    }

    /// Each table of a list of tables, `[[key]]`.
    pub fn tables<T>(&self, key: &'static str, mut read: impl FnMut(&Table<'r>) -> T) -> Vec<T> {
        self.list(key, |value| value.table(&mut read))
    }

    /// Whether a key stands in the file, without asking for it.
    pub fn has(&self, key: &str) -> bool {
        self.entries
            .is_some_and(|entries| entries.contains_key(key))
    }

    /// Whether a key is left out for certain.
    pub fn left_out(&self, key: &str) -> bool {
        !self.has(key) && !self.reader.partial
    }

    /// Whether a key is left out, or an empty list.
    pub fn lacks(&self, key: &str) -> bool {
        let value = self.entries.and_then(|entries| entries.get(key));
        value.is_none_or(|v| v.get_ref().as_array().is_some_and(|list| list.is_empty()))
    }

    /// Counts keys as known that cannot be read, as it is not clear what they belong to.
    pub fn known(&self, keys: impl Iterator<Item = &'static str>) {
        self.asked.borrow_mut().extend(keys);
    }

    /// Says that a key must be there.
    pub fn missing(&self, key: &str, wanted: &str) {
        let path = join(&self.path, key);
        let message = format!("{path} is missing: give {wanted}");
        self.reader.missing(self.at, message);
    }

    /// Refuses a key that is known but has no place beside the others of its table.
    pub fn misplaced(&self, key: &'static str, why: &str) {
        if let Some(value) = self.get(key) {
            value.refuse_because(why);
        }
    }

    /// Where the table stands.
    pub fn at(&self) -> usize {
        self.at
    }

    fn close(self) {
        let asked = self.asked.into_inner();
        for (key, _) in self.entries.into_iter().flatten() {
            if !asked.contains(&key.get_ref().as_ref()) {
                self.reader.unknown.borrow_mut().push(Unknown {
                    table: self.path.clone(),
                    key: key.get_ref().to_string(),
                    at: key.span().start,
                });
            }
        }
    }
}
