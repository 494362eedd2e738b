//! The scanner: a state machine over JSON tokens that can stop at any byte.

use super::text::{NAME_MAX, name_of};

/// Containers within containers. Deeper documents are not read on.
pub const DEPTH_MAX: usize = 128;

/// Raw bytes kept of a token that is cut between two pieces.
const HELD_MAX: usize = 64;

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

impl<'a> Str<'a> {
    /// The text of a short string, for comparing with the names we know; too long a one gives its first bytes, which
    /// are none of them.
    pub fn name<'b>(&'b self, room: &'b mut [u8; NAME_MAX]) -> &'b [u8]
    where
        'a: 'b,
    {
        if self.escaped {
            name_of(self.raw, room)
        } else if self.raw.len() == self.raw_len {
            self.raw
        } else {
            // Cut, and longer than what is kept of a cut token: longer than any name.
            &[]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Value,
    /// Behind `[`: a value or the end.
    FirstItem,
    /// Behind `{`: a key or the end.
    FirstKey,
    Key,
    Colon,
    /// Behind a value in a container.
    Comma,
    InKey,
    InString,
    InBare,
    Done,
    Failed,
}

/// Where a string cut between two pieces goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Escape {
    None,
    Backslash,
    /// Hex digits of `\u` seen, and their value.
    Hex(u8, u16),
}

#[derive(Clone, Debug)]
pub struct Scanner {
    state: State,
    grammar: Grammar,
    escape: Escape,
    escaped: bool,
    depth: u8,
    /// A bit per open container, the innermost lowest: set for an object.
    objects: u128,
    /// Bytes of the document in earlier pieces.
    before: usize,
    /// Offset of the current token.
    token_at: usize,
    /// Bytes of the current string that escapes spell beyond those they stand for.
    saved: usize,
    held: [u8; HELD_MAX],
    held_len: u8,
    /// Raw bytes of the current token in earlier pieces; zero where it began in this piece.
    token_before: usize,
}

impl Scanner {
    pub fn new(grammar: Grammar) -> Scanner {
        Scanner {
            state: State::Value,
            grammar,
            escape: Escape::None,
            escaped: false,
            depth: 0,
            objects: 0,
            before: 0,
            token_at: 0,
            saved: 0,
            held: [0; HELD_MAX],
            held_len: 0,
            token_before: 0,
        }
    }

    /// Forgets the document.
    pub fn reset(&mut self) {
        self.state = State::Value;
        self.escape = Escape::None;
        self.depth = 0;
        self.before = 0;
        self.held_len = 0;
        self.token_before = 0;
    }

    /// Reads the next piece of the document.
    pub fn feed(&mut self, bytes: &[u8], visitor: &mut impl Visitor) {
        let mut at = 0;
        while at < bytes.len() {
            at = match self.state {
                State::InKey | State::InString => self.string(bytes, at, visitor),
                State::InBare => self.bare(bytes, at, visitor),
                State::Failed => return,
                State::Value
                | State::FirstItem
                | State::FirstKey
                | State::Key
                | State::Colon
                | State::Comma
                | State::Done => self.structure(bytes, at, visitor),
            };
        }
        self.before += bytes.len();
    }

    /// The document is over. Whether it was whole, and all of it was JSON.
    pub fn finish(&mut self, visitor: &mut impl Visitor) -> bool {
        if self.state == State::InBare && self.depth == 0 {
            self.bare_ends(&[], visitor);
        }
        self.state == State::Done
    }

    /// One whole document has been read.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// White space and one structural byte, or the first byte of a token.
    fn structure(&mut self, bytes: &[u8], start: usize, visitor: &mut impl Visitor) -> usize {
        let mut at = start;
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
            at += 1;
        }
        let Some(&byte) = bytes.get(at) else {
            return at;
        };
        let next = at + 1;
        match (self.state, byte) {
            (State::FirstKey | State::Key, b'"') => self.token(State::InKey, at),
            (State::Value | State::FirstItem, b'"') => self.token(State::InString, at),
            (State::Colon, b':') => self.state = State::Value,
            (State::Comma, b',') if self.objects & 1 == 1 => self.state = State::Key,
            (State::Comma, b',') => self.state = State::Value,
            (State::Value | State::FirstItem, b'{') => self.open(Kind::Object, at, visitor),
            (State::Value | State::FirstItem, b'[') => self.open(Kind::Array, at, visitor),
            (State::Comma | State::FirstKey, b'}') if self.objects & 1 == 1 => {
                self.close(at, visitor);
            }
            (State::Comma | State::FirstItem, b']') if self.objects & 1 == 0 => {
                self.close(at, visitor);
            }
            (State::Value | State::FirstItem, _) if is_bare(byte) => {
                self.token(State::InBare, at);
                return at;
            }
            _ => self.state = State::Failed,
        }
        next
    }

    fn token(&mut self, state: State, at: usize) {
        self.state = state;
        self.token_at = self.before + at;
        self.escaped = false;
        self.saved = 0;
    }

    fn open(&mut self, kind: Kind, at: usize, visitor: &mut impl Visitor) {
        if usize::from(self.depth) >= DEPTH_MAX {
            self.state = State::Failed;
            return;
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(kind == Kind::Object);
        self.state = match kind {
            Kind::Object => State::FirstKey,
            Kind::Array => State::FirstItem,
        };
        visitor.open(kind, self.before + at);
    }

    fn close(&mut self, at: usize, visitor: &mut impl Visitor) {
        self.depth -= 1;
        self.objects >>= 1;
        visitor.close(self.before + at);
        self.value_ends();
    }

    fn value_ends(&mut self) {
        self.state = if self.depth == 0 {
            State::Done
        } else {
            State::Comma
        };
    }

    /// Within a string: on to its closing quote or the end of the piece.
    fn string(&mut self, bytes: &[u8], start: usize, visitor: &mut impl Visitor) -> usize {
        let mut at = start;
        loop {
            if self.escape != Escape::None {
                at = self.within_escape(bytes, at);
                if self.state == State::Failed {
                    return at;
                }
            }
            let rest = bytes.get(at..).unwrap_or_default();
            at += plain_run(rest);
            match bytes.get(at) {
                Some(b'"') => {
                    self.string_ends(bytes.get(start..at).unwrap_or_default(), visitor);
                    return at + 1;
                }
                Some(b'\\') => {
                    self.escape = Escape::Backslash;
                    self.escaped = true;
                    at += 1;
                }
                Some(_) if self.grammar == Grammar::Lenient => at += 1,
                Some(_) => {
                    self.state = State::Failed;
                    return at;
                }
                None => {
                    self.hold(bytes.get(start..).unwrap_or_default());
                    return bytes.len();
                }
            }
        }
    }

    /// Behind a backslash: on to the escape's end or the end of the piece.
    fn within_escape(&mut self, bytes: &[u8], start: usize) -> usize {
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match self.escape {
                Escape::None => return at,
                Escape::Backslash if byte == b'u' => self.escape = Escape::Hex(0, 0),
                Escape::Backslash => {
                    self.escape = Escape::None;
                    self.saved += 1;
                    if !matches!(byte, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') {
                        self.state = State::Failed;
                    }
                    return at;
                }
                Escape::Hex(seen, value) => {
                    let Some(digit) = char::from(byte).to_digit(16) else {
                        self.state = State::Failed;
                        return at;
                    };
                    let value = value << 4 | u16::try_from(digit).unwrap_or_default();
                    if seen < 3 {
                        self.escape = Escape::Hex(seen + 1, value);
                        continue;
                    }
                    self.escape = Escape::None;
                    self.saved += 6 - utf8_len(value);
                    return at;
                }
            }
        }
        at
    }

    fn string_ends(&mut self, last: &[u8], visitor: &mut impl Visitor) {
        let raw_len = self.token_before + last.len();
        self.hold_rest(last);
        let text = Str {
            raw: if self.token_before == 0 {
                last
            } else {
                self.held.get(..usize::from(self.held_len)).unwrap_or_default()
            },
            raw_len,
            len: raw_len.saturating_sub(self.saved),
            escaped: self.escaped,
        };
        if self.state == State::InKey {
            self.state = State::Colon;
            visitor.key(text, self.token_at);
        } else {
            visitor.string(text, self.token_at);
            self.value_ends();
        }
        self.held_len = 0;
        self.token_before = 0;
    }

    /// Within a number or a literal.
    fn bare(&mut self, bytes: &[u8], start: usize, visitor: &mut impl Visitor) -> usize {
        let rest = bytes.get(start..).unwrap_or_default();
        let len = rest.iter().position(|b| !is_bare(*b)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(len);
        if after.is_empty() {
            self.hold(token);
        } else {
            self.bare_ends(token, visitor);
        }
        start + len
    }

    fn bare_ends(&mut self, last: &[u8], visitor: &mut impl Visitor) {
        let raw_len = self.token_before + last.len();
        self.hold_rest(last);
        let raw = if self.token_before == 0 {
            last
        } else {
            self.held.get(..usize::from(self.held_len)).unwrap_or_default()
        };
        let fits = match self.grammar {
            Grammar::Strict => raw.len() == raw_len && is_json(raw),
            Grammar::Lenient => true,
        };
        visitor.bare(raw, self.token_at);
        self.held_len = 0;
        self.token_before = 0;
        self.value_ends();
        if !fits {
            self.state = State::Failed;
        }
    }

    /// Keeps what a cut token has in this piece.
    fn hold(&mut self, bytes: &[u8]) {
        let room = HELD_MAX - usize::from(self.held_len);
        let kept = bytes.get(..bytes.len().min(room)).unwrap_or(bytes);
        for (place, byte) in self.held.iter_mut().skip(usize::from(self.held_len)).zip(kept) {
            *place = *byte;
        }
        self.held_len += u8::try_from(kept.len()).unwrap_or_default();
        self.token_before += bytes.len();
    }

    /// The same with the last piece of a token, where it has earlier ones.
    fn hold_rest(&mut self, last: &[u8]) {
        if self.token_before > 0 {
            self.hold(last);
        }
    }
}

/// A byte that numbers and literals are made of.
fn is_bare(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
}

fn is_json(raw: &[u8]) -> bool {
    matches!(raw, b"true" | b"false" | b"null") || super::Number::of(raw).is_some()
}

/// Bytes in UTF-8 of a UTF-16 unit; half of a pair's four for each surrogate.
fn utf8_len(unit: u16) -> usize {
    match unit {
        0..0x80 => 1,
        0x80..0x800 | 0xd800..0xe000 => 2,
        _ => 3,
    }
}

/// How many bytes come before the first quote, backslash or control character: eight at a time.
fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero_in = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut run = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quote = zero_in(word ^ (ONES * u64::from(b'"')));
        let backslash = zero_in(word ^ (ONES * u64::from(b'\\')));
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let special = quote | backslash | control;
        if special != 0 {
            return run + special.trailing_zeros() as usize / 8;
        }
        run += 8;
    }
    let special = |b: &u8| matches!(b, b'"' | b'\\' | 0..0x20);
    run + rest.iter().position(special).unwrap_or(rest.len())
}
