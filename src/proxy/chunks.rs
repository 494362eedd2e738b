//! A request's body in chunks (RFC 9112, section 7.1), followed byte by byte to its very end.
//!
//! Pingora undoes the chunks. Its parser takes more than the grammar allows, an empty size for a zero among it, and where
//! two readers find different ends of a body, one takes a part of it for a request. Here every byte must be in its place.

use super::framing::Malformed;

/// Sizes of more digits are none that anyone means.
const DIGITS_MAX: u8 = 15;

/// What must come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Digits of a size, of which there were so many.
    Size(u8),
    /// Spaces between a size and its extension, and the extension itself.
    Spaces,
    Extension,
    SizeFeed,
    Data,
    DataReturn,
    DataFeed,
    /// A trailer, or the line that ends the body.
    Line,
    Trailer,
    TrailerFeed,
    LastFeed,
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    next: Next,
    /// What is left of the chunk.
    left: u64,
}

impl Chunks {
    pub fn new() -> Chunks {
        Chunks {
            next: Next::Size(0),
            left: 0,
        }
    }

    pub fn has_ended(&self) -> bool {
        self.next == Next::Nothing
    }

    /// How many of these bytes belong to the body: all of them, unless it ends among them.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        let mut rest = bytes;
        while !self.has_ended() {
            rest = match rest {
                [] => break,
                _ if self.next == Next::Data => self.skip_data(rest),
                [byte, behind @ ..] => {
                    self.next = self.step(*byte).ok_or(Malformed)?;
                    behind
                }
            };
        }
        Ok(bytes.len() - rest.len())
    }

    fn skip_data<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (data, behind) = bytes.split_at(left.min(bytes.len()));
        self.left -= u64::try_from(data.len()).unwrap_or(self.left);
        if self.left == 0 {
            self.next = Next::DataReturn;
        }
        behind
    }

    fn step(&mut self, byte: u8) -> Option<Next> {
        let next = match (self.next, byte) {
            (Next::Size(digits), _) if byte.is_ascii_hexdigit() => return self.digit(digits, byte),
            (Next::Size(1..) | Next::Extension, b'\r') => Next::SizeFeed,
            (Next::Size(1..) | Next::Spaces, b' ' | b'\t') => Next::Spaces,
            (Next::Size(1..) | Next::Spaces, b';') => Next::Extension,
            (Next::SizeFeed, b'\n') => match self.left {
                0 => Next::Line,
                _ => Next::Data,
            },
            (Next::DataReturn, b'\r') => Next::DataFeed,
            (Next::DataFeed, b'\n') => Next::Size(0),
            (Next::Line, b'\r') => Next::LastFeed,
            (Next::Trailer, b'\r') => Next::TrailerFeed,
            (Next::TrailerFeed, b'\n') => Next::Line,
            (Next::LastFeed, b'\n') => Next::Nothing,
            (Next::Extension, _) if is_text(byte) => Next::Extension,
            (Next::Line | Next::Trailer, _) if is_text(byte) => Next::Trailer,
            _ => return None,
        };
        Some(next)
    }

    fn digit(&mut self, digits: u8, byte: u8) -> Option<Next> {
        let value = char::from(byte).to_digit(16)?;
        self.left = self.left * 16 + u64::from(value);
        (digits < DIGITS_MAX).then_some(Next::Size(digits + 1))
    }
}

/// What may stand in a line: anything but the control characters.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || !byte.is_ascii_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes belong to the body, cut at every place: each way must say the same.
    fn end(bytes: &str) -> Option<usize> {
        let whole = read(&[bytes.as_bytes()]);
        for at in 0..=bytes.len() {
            let (a, b) = bytes.as_bytes().split_at(at);
            assert_eq!(read(&[a, b]), whole, "{bytes:?} cut at {at}");
        }
        let single: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
        assert_eq!(read(&single), whole, "{bytes:?} byte by byte");
        whole
    }

    fn read(pieces: &[&[u8]]) -> Option<usize> {
        let mut chunks = Chunks::new();
        let mut taken = 0;
        for piece in pieces {
            taken += chunks.take(piece).ok()?;
        }
        chunks.has_ended().then_some(taken)
    }

    #[test]
    fn a_body_ends_where_its_last_chunk_and_trailers_do() {
        for good in [
            "0\r\n\r\n",
            "000\r\n\r\n",
            "3\r\nabc\r\n0\r\n\r\n",
            "3;name=value\r\nabc\r\n0;x\r\n\r\n",
            "3 ; a=\"b;c\"\r\nabc\r\n0\r\n\r\n",
            "9\r\n0\r\n\r\n0\r\n\r\r\n0\r\n\r\n",
            "3\r\nabc\r\n0\r\nX-Sum: 1\r\nContent-Length: 5\r\n\r\n",
        ] {
            assert_eq!(end(good), Some(good.len()), "{good:?}");
            let behind = format!("{good}GET / HTTP/1.1\r\n\r\n");
            assert_eq!(end(&behind), Some(good.len()), "{behind:?}");
        }
    }

    #[test]
    fn what_is_not_in_its_place_is_malformed() {
        for bad in [
            "\r\n\r\n",
            "3\r\nabc\r\n\r\n\r\n",
            ";x\r\n\r\n",
            " 0\r\n\r\n",
            "+0\r\n\r\n",
            "0x0\r\n\r\n",
            "0 \r\n\r\n",
            "0 0\r\n\r\n",
            "0\n\r\n",
            "0\r\n\n",
            "0\r\r\n\r\n",
            "0;a\nb\r\n\r\n",
            "0;a\rb\r\n\r\n",
            "0;\0\r\n\r\n",
            "3\r\nabcd\r\n0\r\n\r\n",
            "3\r\nabc0\r\n\r\n",
            "3\r\nabc\n0\r\n\r\n",
            "0\r\nX: a\nY: b\r\n\r\n",
            "0\r\nX: a\rb\r\n\r\n",
            "fffffffffffffffff\r\n",
            "10000000000000000\r\n",
        ] {
            let mut chunks = Chunks::new();
            assert!(chunks.take(bad.as_bytes()).is_err(), "{bad:?}");
            assert_eq!(end(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn half_a_body_has_not_ended() {
        let whole = "3;x\r\nabc\r\n0\r\nX: 1\r\n\r\n";
        for at in 0..whole.len() {
            let mut chunks = Chunks::new();
            assert!(matches!(chunks.take(&whole.as_bytes()[..at]), Ok(n) if n == at));
            assert!(!chunks.has_ended(), "at {at}");
        }
    }
}
