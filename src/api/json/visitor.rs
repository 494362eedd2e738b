//! What a reader of JSON is told: the tokens, each with its place.

use super::text::{NAME_MAX, decoded, name_of};

/// Raw bytes kept of a token that is cut between two pieces, and all that is ever looked at of a longer one, so that what
/// comes of a document does not hang on its pieces. The longest name we know fits with each of its letters escaped.
pub(super) const HELD_MAX: usize = 512;

/// As much may be missing at the end of a text that was cut anywhere: half a surrogate pair and half an escape.
const TORN_MAX: usize = 11;

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
    /// Hands on the text of a short string, for comparing with the names we know; too long a one is none of them.
    #[inline]
    pub fn named<R>(&self, look: impl FnOnce(&[u8]) -> R) -> R {
        if self.raw_len > HELD_MAX {
            look(&[])
        } else if self.escaped {
            look(name_of(self.raw, &mut [0; NAME_MAX]))
        } else {
            look(self.raw)
        }
    }

    /// The text, of a long one the beginning and an ellipsis. Nothing where it is no text.
    pub fn beginning(&self) -> Option<String> {
        if self.raw_len <= HELD_MAX {
            return decoded(self.raw);
        }
        let text = (HELD_MAX - TORN_MAX..=HELD_MAX)
            .rev()
            .find_map(|len| decoded(self.raw.get(..len)?))?;
        Some(text + "…")
    }
}

/// Who reads the tokens. `at` is the offset of a token's first byte (of a string: its opening quote) in the document.
pub trait Visitor {
    fn key(&mut self, key: Str<'_>, at: usize);
    fn string(&mut self, value: Str<'_>, at: usize);
    /// A number, `true`, `false`, `null`. Empty where it is too long to be kept when it is cut between two pieces, and in
    /// the lenient grammar whenever it is so long: what comes of a document does not hang on its pieces.
    fn bare(&mut self, raw: &[u8], at: usize);
    fn open(&mut self, kind: Kind, at: usize);
    fn close(&mut self, at: usize);
}
