//! Reads requests from a connection: heads, bodies by length and by chunks, all bounded.

use bytes::{Bytes, BytesMut};
use httparse::{Header, Status};
use std::io;
use tokio::net::TcpStream;

const HEAD_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 128;
const BODY_MAX: usize = 64 << 20;
/// Bytes of one line of a chunked body that is not content: a chunk's size, a trailer.
const LINE_MAX: usize = 8 << 10;
const READ_LEN: usize = 16 << 10;

/// A request, read whole.
#[derive(Debug)]
pub struct Request {
    pub head: Head,
    pub body: Bytes,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    pub method: String,
    /// Without the query.
    pub path: String,
    /// Whether the client understands chunks.
    pub http11: bool,
    pub keep_alive: bool,
    /// All `X-Sim` headers in one.
    pub faults: String,
    expects_continue: bool,
    framing: Framing,
}

#[derive(Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked,
}

/// Why there is no request.
#[derive(Debug)]
pub enum Trouble {
    /// The client closed, between two requests or within one.
    Closed,
    /// What it sent cannot be read on: answer with this status and message, and close.
    Bad(u16, String),
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Trouble {
        Trouble::Closed
    }
}

/// Reads the next request. `buffer` holds what was read beyond the one before.
pub async fn read(stream: &TcpStream, buffer: &mut BytesMut) -> Result<Request, Trouble> {
    let head = read_head(stream, buffer).await?;
    if head.expects_continue && buffer.is_empty() && head.framing != Framing::Length(0) {
        super::wire::write_all(stream, b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let body = match head.framing {
        Framing::Length(length) => read_length(stream, buffer, length).await?,
        Framing::Chunked => read_chunks(stream, buffer).await?,
    };
    Ok(Request { head, body })
}

/// Reads some bytes onto the buffer; 0 at the client's FIN. Loses nothing where it is dropped.
pub async fn fill(stream: &TcpStream, buffer: &mut BytesMut) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        buffer.reserve(READ_LEN);
        match stream.try_read_buf(buffer) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            other => return other,
        }
    }
}

async fn more(stream: &TcpStream, buffer: &mut BytesMut) -> Result<(), Trouble> {
    match fill(stream, buffer).await? {
        0 => Err(Trouble::Closed),
        _ => Ok(()),
    }
}

async fn read_head(stream: &TcpStream, buffer: &mut BytesMut) -> Result<Head, Trouble> {
    loop {
        if let Some((head, length)) = parse_head(buffer)? {
            drop(buffer.split_to(length));
            return Ok(head);
        }
        if buffer.len() > HEAD_MAX {
            return Err(too_large_head());
        }
        more(stream, buffer).await?;
    }
}

/// The head at the start of the bytes and its length, or nothing where it is not whole yet.
fn parse_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, Trouble> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let length = match parsed.parse(bytes) {
        Ok(Status::Complete(length)) if length <= HEAD_MAX => length,
        Ok(Status::Partial) => return Ok(None),
        Ok(Status::Complete(_)) | Err(httparse::Error::TooManyHeaders) => {
            return Err(too_large_head());
        }
        Err(e) => return Err(bad(format!("the request's head cannot be read: {e}"))),
    };
    let target = parsed.path.unwrap_or_default();
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    let http11 = parsed.version == Some(1);
    let connection = joined(parsed.headers, "connection").to_ascii_lowercase();
    let closes = connection.split(',').any(|word| word.trim() == "close");
    let head = Head {
        method: parsed.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        http11,
        keep_alive: http11 && !closes,
        faults: joined(parsed.headers, "x-sim"),
        expects_continue: joined(parsed.headers, "expect").eq_ignore_ascii_case("100-continue"),
        framing: framing(parsed.headers)?,
    };
    Ok(Some((head, length)))
}

/// The values of all headers of a name, divided by commas.
fn joined(headers: &[Header<'_>], name: &str) -> String {
    let named = headers.iter().filter(|h| h.name.eq_ignore_ascii_case(name));
    let values: Vec<_> = named.map(|h| String::from_utf8_lossy(h.value)).collect();
    values.join(",")
}

/// How the body is delimited; refuses what two readers might understand differently.
fn framing(headers: &[Header<'_>]) -> Result<Framing, Trouble> {
    let named = |name: &str| headers.iter().any(|h| h.name.eq_ignore_ascii_case(name));
    let length = joined(headers, "content-length");
    match (named("transfer-encoding"), named("content-length")) {
        (true, true) => Err(bad(
            "Content-Length and Transfer-Encoding stand side by side".to_owned(),
        )),
        (true, false) => {
            let coding = joined(headers, "transfer-encoding");
            match coding.eq_ignore_ascii_case("chunked") {
                true => Ok(Framing::Chunked),
                false => Err(bad(format!(
                    "Transfer-Encoding is {coding:?}; it must be chunked"
                ))),
            }
        }
        (false, true) => body_length(&length).map(Framing::Length),
        (false, false) => Ok(Framing::Length(0)),
    }
}

fn body_length(text: &str) -> Result<usize, Trouble> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad(format!(
            "Content-Length is {text:?}; it must be one number"
        )));
    }
    match text.parse() {
        Ok(length) if length <= BODY_MAX => Ok(length),
        _ => Err(too_large_body()),
    }
}

async fn read_length(
    stream: &TcpStream,
    buffer: &mut BytesMut,
    length: usize,
) -> Result<Bytes, Trouble> {
    while buffer.len() < length {
        more(stream, buffer).await?;
    }
    Ok(buffer.split_to(length).freeze())
}

async fn read_chunks(stream: &TcpStream, buffer: &mut BytesMut) -> Result<Bytes, Trouble> {
    let mut body = BytesMut::new();
    loop {
        let size = chunk_size(&read_line(stream, buffer).await?)?;
        if size == 0 {
            break;
        }
        if size > BODY_MAX.saturating_sub(body.len()) {
            return Err(too_large_body());
        }
        body.extend_from_slice(&read_length(stream, buffer, size).await?);
        if !read_line(stream, buffer).await?.is_empty() {
            return Err(bad("a chunk is longer than it says".to_owned()));
        }
    }
    let mut trailers_len = 0;
    loop {
        let line = read_line(stream, buffer).await?;
        trailers_len += line.len();
        if line.is_empty() {
            return Ok(body.freeze());
        }
        if trailers_len > HEAD_MAX {
            return Err(too_large_head());
        }
    }
}

/// A line without its CRLF.
async fn read_line(stream: &TcpStream, buffer: &mut BytesMut) -> Result<Bytes, Trouble> {
    loop {
        if let Some(end) = buffer.iter().position(|b| *b == b'\n') {
            let line = buffer.split_to(end + 1).freeze();
            let text = line.strip_suffix(b"\r\n").map(|text| line.slice_ref(text));
            return text.ok_or_else(|| bad("a chunk's line does not end in CRLF".to_owned()));
        }
        if buffer.len() > LINE_MAX {
            return Err(bad("a chunk's line is too long".to_owned()));
        }
        more(stream, buffer).await?;
    }
}

fn chunk_size(line: &[u8]) -> Result<usize, Trouble> {
    let text = String::from_utf8_lossy(line);
    let digits = text.split(';').next().unwrap_or_default().trim_end();
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    match usize::from_str_radix(digits, 16) {
        Ok(size) if plain => Ok(size),
        _ if plain => Err(too_large_body()),
        _ => Err(bad(format!("a chunk's size is {digits:?}"))),
    }
}

fn bad(message: String) -> Trouble {
    Trouble::Bad(400, message)
}

fn too_large_head() -> Trouble {
    Trouble::Bad(
        431,
        format!("the head is over {HEAD_MAX} bytes or {HEADERS_MAX} headers"),
    )
}

fn too_large_body() -> Trouble {
    Trouble::Bad(413, format!("the body is over {BODY_MAX} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(head: &str) -> Head {
        let text = format!("{head}\r\n\r\n");
        let (head, length) = parse_head(text.as_bytes()).expect(head).expect(head);
        assert_eq!(length, text.len());
        head
    }

    fn refused(head: &str) -> u16 {
        match parse_head(format!("{head}\r\n\r\n").as_bytes()) {
            Err(Trouble::Bad(status, _)) => status,
            other => panic!("{head:?} gives {other:?}"),
        }
    }

    #[test]
    fn a_head_says_path_faults_framing_and_whether_to_go_on() {
        let head = parsed(
            "POST /v1/messages?beta=true HTTP/1.1\r\nHost: a\r\nX-Sim: crlf\r\nx-sim: no-done\r\ntransfer-encoding: Chunked\r\nExpect: 100-Continue",
        );
        assert_eq!(head.path, "/v1/messages");
        assert_eq!(head.faults, "crlf,no-done");
        assert_eq!(head.framing, Framing::Chunked);
        assert!(head.http11 && head.keep_alive && head.expects_continue);
        assert!(!parsed("GET / HTTP/1.1\r\nConnection: X, Close").keep_alive);
        assert!(!parsed("GET / HTTP/1.0").keep_alive);
    }

    #[test]
    fn a_head_that_is_not_whole_is_waited_for() {
        assert!(matches!(parse_head(b"POST /v1/mess"), Ok(None)));
        assert!(matches!(parse_head(b""), Ok(None)));
    }

    #[test]
    fn heads_that_are_broken_ambiguous_or_too_large_are_refused() {
        let many = format!("GET / HTTP/1.1{}", "\r\nA: b".repeat(129));
        let long = format!("GET /{} HTTP/1.1", "a".repeat(70_000));
        for (head, status) in [
            ("\x16\x03\x01", 400),
            ("GET / HTTP/3.0", 400),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
                400,
            ),
            (
                "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1",
                400,
            ),
            ("POST / HTTP/1.1\r\nContent-Length: -1", 400),
            ("POST / HTTP/1.1\r\nContent-Length:", 400),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked", 400),
            ("POST / HTTP/1.1\r\nContent-Length: 67108865", 413),
            (
                "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999",
                413,
            ),
            (&many, 431),
            (&long, 431),
        ] {
            assert_eq!(refused(head), status, "{head:.80}");
        }
    }

    #[test]
    fn a_chunks_size_is_plain_hexadecimal() {
        for (line, size) in [
            ("0", Some(0)),
            ("1a;x=y", Some(26)),
            ("FF ", Some(255)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("0x1", None),
            ("g", None),
            ("\u{fffd}", None),
            ("ffffffffffffffffff", None),
        ] {
            assert_eq!(chunk_size(line.as_bytes()).ok(), size, "{line:?}");
        }
    }
}
