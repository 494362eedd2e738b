//! Writes TOML: enough of it to show a configuration.

use std::fmt::Write;

/// A document under construction.
#[derive(Default)]
pub(super) struct Document(String);

/// A value as text.
pub(super) struct Shown(String);

impl Document {
    /// `[name]` or `[[name]]`, after an empty line.
    pub fn header(&mut self, header: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        self.push(&format!("{gap}{header}\n"));
    }

    pub fn key(&mut self, key: &str, value: impl Into<Shown>) {
        let Shown(value) = value.into();
        self.push(&format!("{key} = {value}\n"));
    }

    /// A key that has no value where it is left out: said in a comment.
    pub fn option(&mut self, key: &str, value: Option<impl Into<Shown>>, without: &str) {
        match value {
            Some(value) => self.key(key, value),
            None => self.push(&format!("# {key}: {without}\n")),
        }
    }

    pub fn finish(self) -> String {
        self.0
    }

    fn push(&mut self, text: &str) {
        self.0.push_str(text);
    }
}

impl Shown {
    pub fn list<T: Into<Shown>>(values: impl IntoIterator<Item = T>) -> Shown {
        let values: Vec<String> = values.into_iter().map(|v| v.into().0).collect();
        Shown(format!("[{}]", values.join(", ")))
    }

    /// An inline table.
    pub fn table<K: AsRef<str>>(entries: impl IntoIterator<Item = (K, Shown)>) -> Shown {
        let entry = |(key, value): (K, Shown)| format!("{} = {}", key_text(key.as_ref()), value.0);
        let entries: Vec<String> = entries.into_iter().map(entry).collect();
        if entries.is_empty() {
            return Shown("{}".to_owned());
        }
        Shown(format!("{{ {} }}", entries.join(", ")))
    }

    /// An inline table without what has no value.
    pub fn some_of<const N: usize>(entries: [(&str, Option<Shown>); N]) -> Shown {
        Shown::table(entries.into_iter().filter_map(|(k, v)| Some((k, v?))))
    }
}

impl From<&str> for Shown {
    fn from(text: &str) -> Shown {
        Shown(quoted(text))
    }
}

impl From<&String> for Shown {
    fn from(text: &String) -> Shown {
        Shown(quoted(text))
    }
}

impl From<String> for Shown {
    fn from(text: String) -> Shown {
        Shown(quoted(&text))
    }
}

impl From<bool> for Shown {
    fn from(flag: bool) -> Shown {
        Shown(flag.to_string())
    }
}

/// With a fraction always, so that it reads as the same type again.
impl From<f64> for Shown {
    fn from(number: f64) -> Shown {
        Shown(format!("{number:?}"))
    }
}

macro_rules! whole {
    ($($number:ty)+) => {
        $(impl From<$number> for Shown {
            fn from(number: $number) -> Shown {
                Shown(number.to_string())
            }
        })+
    };
}

whole! { u16 u32 u64 usize }

fn key_text(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) {
        return key.to_owned();
    }
    quoted(key)
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                // Writing to a `String` cannot fail.
                write!(quoted, "\\u{:04X}", u32::from(c)).unwrap_or_default();
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::de::DeTable;

    #[test]
    fn any_text_reads_back_as_it_was() {
        for text in [
            "",
            "a\"b\\c",
            "tab\tnl\nnul\0del\u{7f}",
            "é 🙂 \u{85}",
            "'#=",
        ] {
            let mut doc = Document::default();
            doc.key("k", text);
            doc.key("t", Shown::table([(text, Shown::from(1u64))]));
            let shown = doc.finish();
            let table = DeTable::parse(&shown).unwrap().into_inner();
            assert_eq!(table["k"].get_ref().as_str(), Some(text));
            assert!(table["t"].get_ref().as_table().unwrap().contains_key(text));
        }
    }
}
