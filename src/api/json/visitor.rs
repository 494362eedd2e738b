//! What a reader of JSON is told: the tokens, each with its place.

use super::text::{NAME_MAX, name_of};

/// What is taken for JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grammar {
    /// RFC 8259.
    Strict,
    /// Also `NaN`, `Infinity` and bare control characters in strings, which engines have been seen to write.
    Lenient,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Object,
    Array,
}

/// A string as it stands between its quotes.
#[derive(Clone, Copy, Debug)]
pub struct Str<'a> {
    /// Its bytes as spelled, or of a string cut between two pieces the first few.
    pub raw: &'a [u8],
    /// All of its bytes as spelled.
    pub raw_len: usize,
    /// The bytes it stands for.
    pub len: usize,
    /// Some byte is spelled as an escape.
    pub escaped: bool,
}

impl Str<'_> {
    /// Hands on the text of a short string, for comparing with the names we know; too long a one gives its first bytes,
    /// which are none of them.
    #[inline]
    pub fn named<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        if self.raw.len() < self.raw_len {
            // Cut, and longer than what is kept of a cut token: longer than any name.
            look(&[])
        } else if self.escaped {
            look(name_of(self.raw, &mut [0; NAME_MAX]))
        } else {
            look(self.raw)
        }
    }
}

/// Who reads the tokens. `at` is the offset of a token's first byte (of a string: its opening quote) in the document.
pub trait Visitor {
    fn key(&mut self, key: Str<'_>, at: usize);
    fn string(&mut self, value: Str<'_>, at: usize);
    /// A number, `true`, `false`, `null`.
    fn bare(&mut self, raw: &[u8], at: usize);
    fn open(&mut self, kind: Kind, at: usize);
    fn close(&mut self, at: usize);
}
