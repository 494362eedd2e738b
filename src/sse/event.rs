//! The fields of one event, read from the lines of its block.

use memchr::{memchr, memchr2};

/// One event as a client's parser would dispatch it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event<'a> {
    /// The last `event` field.
    pub name: Option<&'a [u8]>,
    /// The `data` fields, joined with LF. Nothing where the block has none: comments, ids, `retry`.
    pub data: Option<&'a [u8]>,
}

impl<'a> Event<'a> {
    /// Reads a block of lines. `joined` gives room for data of more than one line.
    pub fn parse(block: &'a [u8], joined: &'a mut Vec<u8>) -> Event<'a> {
        let (mut name, mut data, mut several) = (None, None, false);
        let mut rest = block;
        while let Some((line, after)) = next_line(rest) {
            rest = after;
            match field(line) {
                (b"data", value) => match data {
                    None => data = Some(value),
                    Some(first) => {
                        if !several {
                            joined.clear();
                            joined.extend_from_slice(first);
                            several = true;
                        }
                        joined.push(b'\n');
                        joined.extend_from_slice(value);
                    }
                },
                (b"event", value) => name = Some(value),
                _ => {}
            }
        }
        let joined: &'a [u8] = joined;
        Event {
            name,
            data: if several { Some(joined) } else { data },
        }
    }
}

/// The first line without its end, and what follows. A last line need not have an end.
fn next_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if bytes.is_empty() {
        return None;
    }
    let Some(end) = memchr2(b'\n', b'\r', bytes) else {
        return Some((bytes, &[]));
    };
    let (line, ending) = bytes.split_at(end);
    let ending = match ending {
        [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
        [] => &[],
    };
    Some((line, ending))
}

/// A line's field name and value; one space after the colon is no part of the value. A comment's name is empty.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    let Some(colon) = memchr(b':', line) else {
        return (line, &[]);
    };
    let (name, value) = line.split_at(colon);
    match value {
        [b':', b' ', value @ ..] | [b':', value @ ..] => (name, value),
        _ => (name, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(block: &str, name: Option<&str>, data: Option<&str>) {
        let mut room = Vec::new();
        let event = Event::parse(block.as_bytes(), &mut room);
        let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8(b.to_vec()).unwrap());
        assert_eq!(
            text(event.name),
            name.map(str::to_owned),
            "name of {block:?}"
        );
        assert_eq!(
            text(event.data),
            data.map(str::to_owned),
            "data of {block:?}"
        );
    }

    #[test]
    fn one_space_after_the_colon_is_no_data() {
        check("data:x\n\n", None, Some("x"));
        check("data: x\n\n", None, Some("x"));
        check("data:  x\n\n", None, Some(" x"));
        check("data\n\n", None, Some(""));
        check("data:\n\n", None, Some(""));
    }

    #[test]
    fn several_data_lines_are_joined_with_line_feeds() {
        check("data: a\r\ndata: b\rdata:c\n\n", None, Some("a\nb\nc"));
        check("data\ndata\n\n", None, Some("\n"));
    }

    #[test]
    fn names_comments_and_unknown_fields_are_told_apart() {
        check(
            ": data: x\nevent: a\nevent:b\nid: 7\nfoo\ndatax: y\n\n",
            Some("b"),
            None,
        );
        check("event: error\ndata: a: b\n\n", Some("error"), Some("a: b"));
        check("", None, None);
        check("\n", None, None);
    }

    #[test]
    fn a_block_cut_off_before_its_blank_line_still_reads() {
        check("data: [DONE]", None, Some("[DONE]"));
        check("data: [DONE]\r", None, Some("[DONE]"));
    }
}
