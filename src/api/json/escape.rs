//! An escape within a string, wherever it is cut.

/// Where an escape stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// There is none.
    None,
    /// Behind its backslash.
    Backslash,
    /// Digits of `\u` seen, and their value.
    Hex(u8, u16),
}

impl Escape {
    /// Reads on from `start` to the escape's end or the end of the bytes. Returns where it stopped, and the bytes by
    /// which the spelling is longer than what it stands for; nothing where no such escape exists.
    pub fn read(&mut self, bytes: &[u8], start: usize) -> Option<(usize, usize)> {
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            match *self {
                Escape::None => return Some((start, 0)),
                Escape::Backslash if byte == b'u' => *self = Escape::Hex(0, 0),
                Escape::Backslash => {
                    *self = Escape::None;
                    let known =
                        matches!(byte, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't');
                    return known.then_some((at, 1));
                }
                Escape::Hex(seen, value) => {
                    let digit = char::from(byte).to_digit(16)?;
                    let value = value << 4 | u16::try_from(digit).unwrap_or_default();
                    if seen == 3 {
                        *self = Escape::None;
                        return Some((at, 6 - utf8_len(value)));
                    }
                    *self = Escape::Hex(seen + 1, value);
                }
            }
        }
        Some((at, 0))
    }
}

/// Bytes in UTF-8 of a UTF-16 unit; half of a pair's four for each surrogate.
fn utf8_len(unit: u16) -> usize {
    match unit {
        0..0x80 => 1,
        0x80..0x800 | 0xd800..0xe000 => 2,
        _ => 3,
    }
}
