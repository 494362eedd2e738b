//! The scanner: a state machine over JSON tokens that can stop at any byte.

use super::escape::Escape;
use super::spans::{is_bare, is_json, plain_run};
use super::visitor::{Grammar, HELD_MAX, Kind, Str, Visitor};

/// Containers within containers. Deeper documents are not read on.
pub const DEPTH_MAX: usize = 128;

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
    /// Behind a whole document there is more.
    Behind,
    Failed,
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
    held_len: u16,
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
                State::Behind | State::Failed => return,
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

    /// One whole document has been read, and nothing behind it.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// One whole document has been read, whatever came behind it.
    pub fn has_document(&self) -> bool {
        matches!(self.state, State::Done | State::Behind)
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
        let is_value = matches!(self.state, State::Value | State::FirstItem);
        let in_object = self.objects & 1 == 1;
        match (byte, self.state) {
            (b'"', State::FirstKey | State::Key) => self.token(State::InKey, at),
            (b'"', _) if is_value => self.token(State::InString, at),
            (b':', State::Colon) => self.state = State::Value,
            (b',', State::Comma) if in_object => self.state = State::Key,
            (b',', State::Comma) => self.state = State::Value,
            (b'{', _) if is_value => self.open(Kind::Object, at, visitor),
            (b'[', _) if is_value => self.open(Kind::Array, at, visitor),
            (b'}', State::Comma | State::FirstKey) if in_object => self.close(at, visitor),
            (b']', State::Comma | State::FirstItem) if !in_object => self.close(at, visitor),
            _ if is_value && is_bare(byte) => {
                self.token(State::InBare, at);
                return at;
            }
            (_, State::Done) => self.state = State::Behind,
            _ => self.state = State::Failed,
        }
        at + 1
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
                let Some((next, saved)) = self.escape.read(bytes, at) else {
                    self.state = State::Failed;
                    return at;
                };
                at = next;
                self.saved += saved;
            }
            let rest = bytes.get(at..).unwrap_or_default();
            at += plain_run(rest);
            match bytes.get(at) {
                Some(b'"') => {
                    self.string_ends(bytes.get(start..at).unwrap_or_default(), visitor);
                    return self.go_on(bytes, at + 1);
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

    #[inline]
    fn string_ends(&mut self, last: &[u8], visitor: &mut impl Visitor) {
        if self.token_before > 0 {
            return self.cut_string_ends(last, visitor);
        }
        let text = Str {
            raw: last,
            raw_len: last.len(),
            len: last.len() - self.saved,
            escaped: self.escaped,
        };
        self.hand_on(text, visitor);
    }

    #[cold]
    fn cut_string_ends(&mut self, last: &[u8], visitor: &mut impl Visitor) {
        self.hold(last);
        let held = self.held;
        let text = Str {
            raw: held.get(..usize::from(self.held_len)).unwrap_or_default(),
            raw_len: self.token_before,
            len: self.token_before - self.saved,
            escaped: self.escaped,
        };
        self.held_len = 0;
        self.token_before = 0;
        self.hand_on(text, visitor);
    }

    #[inline]
    fn hand_on(&mut self, text: Str<'_>, visitor: &mut impl Visitor) {
        if self.state == State::InKey {
            self.state = State::Colon;
            visitor.key(text, self.token_at);
        } else {
            self.value_ends();
            visitor.string(text, self.token_at);
        }
    }

    /// Within a number or a literal.
    fn bare(&mut self, bytes: &[u8], start: usize, visitor: &mut impl Visitor) -> usize {
        let rest = bytes.get(start..).unwrap_or_default();
        let len = rest.iter().position(|b| !is_bare(*b)).unwrap_or(rest.len());
        let (token, after) = rest.split_at(len);
        if after.is_empty() {
            self.hold(token);
            return start + len;
        }
        self.bare_ends(token, visitor);
        self.go_on(bytes, start + len)
    }

    /// Takes a step ahead where the next bytes are the usual ones: `:` behind a key, `,"` behind a member.
    #[inline]
    fn go_on(&mut self, bytes: &[u8], at: usize) -> usize {
        match (self.state, bytes.get(at..).unwrap_or_default()) {
            (State::Colon, [b':', b'"', ..]) => {
                self.token(State::InString, at + 1);
                at + 2
            }
            (State::Colon, [b':', ..]) => {
                self.state = State::Value;
                at + 1
            }
            (State::Comma, [b',', b'"', ..]) if self.objects & 1 == 1 => {
                self.token(State::InKey, at + 1);
                at + 2
            }
            _ => at,
        }
    }

    #[inline]
    fn bare_ends(&mut self, last: &[u8], visitor: &mut impl Visitor) {
        let mut raw = last;
        let held;
        let mut whole = self.grammar == Grammar::Strict || raw.len() <= HELD_MAX;
        if self.token_before > 0 {
            self.hold(last);
            held = self.held;
            raw = held.get(..usize::from(self.held_len)).unwrap_or_default();
            whole = raw.len() == self.token_before;
            self.held_len = 0;
            self.token_before = 0;
        }
        self.value_ends();
        if self.grammar == Grammar::Strict && !(whole && is_json(raw)) {
            self.state = State::Failed;
        }
        visitor.bare(if whole { raw } else { &[] }, self.token_at);
    }

    /// Keeps what a cut token has in this piece.
    #[cold]
    fn hold(&mut self, bytes: &[u8]) {
        let room = HELD_MAX - usize::from(self.held_len);
        let kept = bytes.get(..bytes.len().min(room)).unwrap_or(bytes);
        for (place, byte) in self
            .held
            .iter_mut()
            .skip(usize::from(self.held_len))
            .zip(kept)
        {
            *place = *byte;
        }
        self.held_len += u16::try_from(kept.len()).unwrap_or_default();
        self.token_before += bytes.len();
    }
}
