//! Where a request's head and body end among the bytes of an HTTP/1 connection.
//!
//! Pingora is given the bytes of one part at a time: a head to its blank line, a body to its end. What is behind stays
//! with the connection, so that the next request is read from there whatever became of this one.

use super::chunks::Chunks;
use http::HeaderMap;

/// The bytes are not framed as the head said.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed;

/// The part of a request that is read.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    Head(Head),
    /// A body of which so many bytes are still to come; never none.
    Length(u64),
    Chunks(Chunks),
    /// A body that cannot be followed any further.
    Malformed,
    /// The request was read whole.
    Over,
}

impl Part {
    /// The next bytes are a head.
    pub fn head() -> Part {
        Part::Head(Head::default())
    }

    /// The body of a request with these headers, which Pingora has found to agree with each other (RFC 9112, section 6.3).
    pub fn body(headers: &HeaderMap) -> Part {
        if headers.contains_key("transfer-encoding") {
            return Part::Chunks(Chunks::new());
        }
        // several equal ones count as one
        let length = headers
            .get("content-length")
            .and_then(|v| v.to_str().ok())
            .and_then(|v| v.split(',').next()?.trim().parse().ok());
        match length {
            None | Some(0) => Part::Over,
            Some(n) => Part::Length(n),
        }
    }

    /// How many of these bytes belong to the part; at least one where there are any and it is not over.
    pub fn take(&mut self, bytes: &[u8]) -> Result<usize, Malformed> {
        match self {
            Part::Head(head) => Ok(head.take(bytes)),
            Part::Length(left) => {
                let given = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                let taken = given.min(*left);
                *self = match *left - taken {
                    0 => Part::Over,
                    left => Part::Length(left),
                };
                Ok(usize::try_from(taken).unwrap_or(bytes.len()))
            }
            Part::Chunks(chunks) => {
                let taken = chunks.take(bytes);
                match &taken {
                    Ok(_) if chunks.has_ended() => *self = Part::Over,
                    Ok(_) => {}
                    Err(_) => *self = Part::Malformed,
                }
                taken
            }
            Part::Malformed => Err(Malformed),
            Part::Over => Ok(0),
        }
    }
}

/// Looks for the blank line behind a head, as Pingora's parser does: a line ends with LF, before which a CR may stand,
/// and blank lines before the first are not its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head {
    begun: bool,
    /// What the current line holds so far.
    line: Line,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Line {
    #[default]
    Empty,
    Return,
    Text,
}

impl Head {
    /// How many of these bytes belong to the head. Behind its end another one begins.
    fn take(&mut self, bytes: &[u8]) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            self.line = match (byte, self.line) {
                (b'\n', Line::Text) => Line::Empty,
                (b'\n', _) if self.begun => {
                    *self = Head::default();
                    return at + 1;
                }
                (b'\n', _) => Line::Empty,
                (b'\r', Line::Empty) => Line::Return,
                _ => {
                    self.begun = true;
                    Line::Text
                }
            };
        }
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn body(name: &'static str, value: &'static str) -> Part {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        Part::body(&headers)
    }

    #[test]
    fn a_head_ends_with_its_blank_line_however_it_is_cut() {
        let heads = [
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\n\r\n",
            "\r\n\n\r\nGET / HTTP/1.1\r\n\r\n",
        ];
        for head in heads {
            let bytes = format!("{head}\r\nPOST / HTTP/1.1\r\n\r\n");
            for at in 0..=head.len() {
                let mut part = Part::head();
                let (a, b) = bytes.as_bytes().split_at(at);
                let first = part.take(a).unwrap();
                assert_eq!(first, a.len(), "{head:?} cut at {at}");
                if at < head.len() {
                    assert_eq!(first + part.take(b).unwrap(), head.len(), "{head:?}");
                }
            }
        }
    }

    #[test]
    fn a_body_takes_its_length_and_no_more() {
        let mut part = body("content-length", "5, 5");
        assert_eq!(part.take(b"abc"), Ok(3));
        assert_eq!(part.take(b"defGET"), Ok(2));
        assert!(matches!(part, Part::Over));
        assert_eq!(part.take(b"GET"), Ok(0));
    }

    #[test]
    fn a_request_without_a_body_is_over_with_its_head() {
        assert!(matches!(body("content-length", "0"), Part::Over));
        assert!(matches!(body("host", "a"), Part::Over));
    }

    #[test]
    fn chunks_that_are_malformed_stay_so() {
        let mut part = body("transfer-encoding", "chunked");
        assert_eq!(part.take(b"1\r\na"), Ok(4));
        assert_eq!(part.take(b"bc"), Err(Malformed));
        assert_eq!(part.take(b"\r\n0\r\n\r\n"), Err(Malformed));
        let mut part = body("transfer-encoding", "chunked");
        assert_eq!(part.take(b"1\r\na\r\n0\r\n\r\nGET"), Ok(11));
        assert!(matches!(part, Part::Over));
    }
}
