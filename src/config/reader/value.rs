//! A value with its place, and the forms its findings take.

use super::{Reader, Table, join};
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value of the file, with its place and the dotted path of its key.
#[derive(Clone)]
pub(in crate::config) struct Value<'r> {
    pub reader: &'r Reader<'r>,
    pub path: String,
    pub at: usize,
    pub raw: &'r DeValue<'r>,
    end: usize,
}

impl<'r> Value<'r> {
    pub(super) fn new(
        reader: &'r Reader<'r>,
        path: String,
        value: &'r Spanned<DeValue<'r>>,
    ) -> Value<'r> {
        let span = value.span();
        Value {
            reader,
            path,
            at: span.start,
            raw: value.get_ref(),
            end: span.end,
        }
    }

    /// The value as a table; anything else is refused.
    pub fn table<T>(&self, read: impl FnOnce(&Table<'r>) -> T) -> Option<T> {
        let entries = self.as_table()?;
        let path = self.path.clone();
        Some(Table::open(self.reader, path, self.at, Some(entries), read))
    }

    /// The value's elements, without those that `read` refused; anything but a list is refused.
    pub fn list<T>(&self, mut read: impl FnMut(&Value<'r>) -> Option<T>) -> Option<Vec<T>> {
        let elements = self.wants(self.raw.as_array(), "a list")?;
        let element = |value| Value::new(self.reader, self.path.clone(), value);
        Some(
            elements
                .iter()
                .filter_map(|value| read(&element(value)))
                .collect(),
        )
    }

    /// The same for a list that must not be empty.
    pub fn filled_list<T>(
        &self,
        wanted: &str,
        read: impl FnMut(&Value<'r>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let list = self.list(read)?;
        let filled = self.raw.as_array().is_some_and(|raw| !raw.is_empty());
        self.wants(filled.then_some(list), wanted)
    }

    /// The entries of a table whose keys are names and no keywords, with the place of each name.
    pub fn entries(&self) -> Option<Vec<(&'r str, usize, Value<'r>)>> {
        let entry = |(key, value): (&'r Spanned<_>, _)| {
            let name: &Cow<'r, str> = key.get_ref();
            let path = join(&self.path, name);
            let at = key.span().start;
            (name.as_ref(), at, Value::new(self.reader, path, value))
        };
        Some(self.as_table()?.iter().map(entry).collect())
    }

    pub fn text(&self) -> Option<&'r str> {
        self.raw.as_str()
    }

    /// Passes on what was made of the value, or refuses it where nothing was.
    pub fn wants<T>(&self, made: Option<T>, wanted: &str) -> Option<T> {
        if made.is_none() {
            self.refuse(wanted);
        }
        made
    }

    /// `KEY = FOUND: give WANTED`.
    pub fn refuse(&self, wanted: &str) {
        self.refuse_because(&format!("give {wanted}"));
    }

    /// `KEY = FOUND: WHY`.
    pub fn refuse_because(&self, why: &str) {
        let message = format!("{} = {}: {why}", self.path, self.found());
        self.reader.report(self.at, message);
    }

    /// `KEY: WHY`, for a value that is not to be shown.
    pub fn refuse_hidden(&self, why: &str) {
        self.reader.report(self.at, format!("{}: {why}", self.path));
    }

    pub(super) fn as_table(&self) -> Option<&'r DeTable<'r>> {
        self.wants(self.raw.as_table(), "a table")
    }

    /// The value as written, cut where it is long.
    fn found(&self) -> String {
        match self.raw {
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => self.written(),
        }
    }

    fn written(&self) -> String {
        const LONGEST: usize = 60;
        let text = self.reader.lines.slice(self.at..self.end);
        let line = text.lines().next().unwrap_or_default();
        if line.chars().count() > LONGEST || line.len() < text.len() {
            let start: String = line.chars().take(LONGEST).collect();
            return format!("{start}…");
        }
        line.to_owned()
    }
}
