//! What a string stands for: its escapes decoded.

/// Longer names are none of those we know.
pub const NAME_MAX: usize = 64;

/// The text of a string as spelled between its quotes. Nothing where it is not UTF-8 or holds half a surrogate pair.
pub fn decoded(raw: &[u8]) -> Option<String> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((piece, after)) = next_piece(rest) {
        match piece {
            Piece::Plain(bytes) => out.extend_from_slice(bytes),
            Piece::Char(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Piece::Broken => return None,
        }
        rest = after;
    }
    String::from_utf8(out).ok()
}

/// The same for a name to compare: its first bytes, without an allocation.
pub fn name_of<'a>(raw: &[u8], room: &'a mut [u8; NAME_MAX]) -> &'a [u8] {
    let mut len = 0;
    let mut rest = raw;
    while let Some((piece, after)) = next_piece(rest) {
        let mut utf8 = [0; 4];
        let bytes = match piece {
            Piece::Plain(bytes) => bytes,
            Piece::Char(c) => c.encode_utf8(&mut utf8).as_bytes(),
            Piece::Broken => return &[],
        };
        for (place, byte) in room.iter_mut().skip(len).zip(bytes) {
            *place = *byte;
        }
        len += bytes.len();
        rest = after;
    }
    room.get(..len.min(NAME_MAX)).unwrap_or_default()
}

enum Piece<'a> {
    Plain(&'a [u8]),
    Char(char),
    Broken,
}

/// The bytes up to the first escape, or one escape.
fn next_piece(raw: &[u8]) -> Option<(Piece<'_>, &[u8])> {
    let [first, rest @ ..] = raw else {
        return None;
    };
    if *first != b'\\' {
        let len = memchr::memchr(b'\\', raw).unwrap_or(raw.len());
        let (plain, after) = raw.split_at(len);
        return Some((Piece::Plain(plain), after));
    }
    let (kind, rest) = rest.split_first()?;
    let plain = match kind {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let (c, rest) = unicode(rest);
            return Some((c.map_or(Piece::Broken, Piece::Char), rest));
        }
        other => char::from(*other),
    };
    Some((Piece::Char(plain), rest))
}

/// The character of `\u`, of two such where they are a pair.
fn unicode(hex: &[u8]) -> (Option<char>, &[u8]) {
    let Some((first, rest)) = unit(hex) else {
        return (None, &[]);
    };
    if let Some(c) = char::from_u32(u32::from(first)) {
        return (Some(c), rest);
    }
    let second = rest.strip_prefix(b"\\u").and_then(unit);
    let Some((second, rest)) = second else {
        return (None, rest);
    };
    let pair = char::decode_utf16([first, second]).next();
    (pair.and_then(Result::ok), rest)
}

fn unit(hex: &[u8]) -> Option<(u16, &[u8])> {
    let (digits, rest) = hex.split_at_checked(4)?;
    let mut value = 0;
    for digit in digits {
        let digit = char::from(*digit).to_digit(16)?;
        value = value << 4 | u16::try_from(digit).ok()?;
    }
    Some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded() {
        for (raw, text) in [
            (r"model", "model"),
            (r"mod\u0065l", "model"),
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r"\u5317\ud83d\ude00x", "北😀x"),
            ("", ""),
        ] {
            assert_eq!(decoded(raw.as_bytes()).as_deref(), Some(text), "{raw}");
            assert_eq!(name_of(raw.as_bytes(), &mut [0; NAME_MAX]), text.as_bytes());
        }
    }

    #[test]
    fn half_a_surrogate_pair_or_broken_utf8_is_no_text() {
        for raw in [
            &br"\ud83d"[..],
            br"\ud83dx",
            br"\ude00\ud83d",
            br"\u12",
            b"\xff",
        ] {
            assert_eq!(decoded(raw), None, "{raw:?}");
        }
    }

    #[test]
    fn a_name_that_is_too_long_keeps_its_first_bytes() {
        let long = r"\u0061".repeat(100);
        assert_eq!(
            name_of(long.as_bytes(), &mut [0; NAME_MAX]),
            [b'a'; NAME_MAX]
        );
    }
}
