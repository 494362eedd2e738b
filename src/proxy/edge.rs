//! The first look at a request: who sent it, how large its head is, what its connection may do.

use super::connection::Connection;
use super::context::Ctx;
use super::forwarded;
use super::framing::Part;
use super::refuse::Refusal;
use crate::api::{Call, Code};
use crate::config::HalfClose;
use http::{HeaderMap, HeaderValue, Version};
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::time::Duration;

/// Notes the facts of the access line and sets up the connection.
pub fn begin(session: &mut Session, ctx: &mut Ctx) {
    if let Some(connection) = Connection::of(session) {
        connection.note_head(Part::body(&session.req_header().headers));
    }
    if closes_by_default(session.req_header()) {
        session.set_keepalive(None);
    }
    let down = session.as_downstream_mut();
    down.set_total_drain_timeout(Some(Duration::from_secs(5)));
    let header = session.req_header();
    ctx.call = Call::of_path(header.uri.path());
    let method = header.method.as_str().to_owned();
    let path = header.uri.path().to_owned();
    let version = match header.version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2.0",
        _ => "HTTP/1.1",
    };
    let user_agent = header.headers.get("user-agent").map(|v| {
        String::from_utf8_lossy(v.as_bytes())
            .chars()
            .take(256)
            .collect()
    });
    let trusted = ctx.rules.config.server.trusted_proxies.as_slice();
    let client = forwarded::peer(session).map_or_else(
        || "-".to_owned(),
        |peer| forwarded::client(peer, &header.headers, trusted).to_string(),
    );
    let wire = ctx.wire();
    wire.method = method;
    wire.path = path;
    wire.version = version;
    wire.user_agent = user_agent;
    wire.client = client;
}

/// An HTTP/1.0 client keeps its connection only where it says so (RFC 9112, section 9.3).
fn closes_by_default(header: &RequestHeader) -> bool {
    let asked = header.headers.get("connection").is_some_and(|v| {
        v.as_bytes()
            .split(|b| *b == b',')
            .any(|token| token.trim_ascii().eq_ignore_ascii_case(b"keep-alive"))
    });
    header.version == Version::HTTP_10 && !asked
}

/// What a half-closed connection of this request means.
pub fn set_half_close(session: &mut Session, half_close: HalfClose) {
    let abort = half_close == HalfClose::Abort;
    session.as_downstream_mut().set_abort_on_close(abort);
    if let Some(connection) = Connection::of(session) {
        connection.set_abort_on_close(abort);
    }
}

/// Refuses a head that is too large, or that does not say whom it asks.
pub fn check(session: &Session, ctx: &Ctx) -> Result<(), Refusal> {
    check_host(session.req_header())?;
    check_coding(session.req_header())?;
    check_framing(session)?;
    check_size(session, ctx)
}

/// A body is framed by its length or in chunks; a coding on top of that is none that is undone here (RFC 9112, section 6.1).
fn check_coding(header: &RequestHeader) -> Result<(), Refusal> {
    let mut codings = header.headers.get_all("transfer-encoding").iter();
    let chunked = |v: &HeaderValue| v.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(one), None) if chunked(one) => Ok(()),
        _ => Err(Refusal::new(
            Code::InvalidRequest,
            "the Transfer-Encoding is not `chunked` alone; send the body without another coding",
        )
        .closing()),
    }
}

/// A length beside chunks tells two ends of one body (RFC 9112, section 6.1). Pingora drops it before any hook runs: only
/// the head as it came still has it.
fn check_framing(session: &Session) -> Result<(), Refusal> {
    let chunked = session
        .req_header()
        .headers
        .contains_key("transfer-encoding");
    if chunked && names_length(&session.as_downstream().to_h1_raw()) {
        return Err(Refusal::new(
            Code::InvalidRequest,
            "both Content-Length and Transfer-Encoding were sent; send one of them",
        )
        .closing());
    }
    Ok(())
}

/// Whether a line of a head as it came is a Content-Length.
fn names_length(head: &[u8]) -> bool {
    head.split(|b| *b == b'\n').any(|line| {
        line.split(|b| *b == b':')
            .next()
            .is_some_and(|name| name.trim_ascii().eq_ignore_ascii_case(b"content-length"))
    })
}

/// HTTP/1.1 demands one Host (RFC 9112, section 3.2); two are refused before any hook runs.
fn check_host(header: &RequestHeader) -> Result<(), Refusal> {
    match header.headers.get("host") {
        Some(host) if is_host(host.as_bytes()) => Ok(()),
        Some(_) => {
            Err(Refusal::new(Code::InvalidRequest, "the Host header names no host").closing())
        }
        None if header.version == Version::HTTP_11 => {
            Err(Refusal::new(Code::InvalidRequest, "the Host header is missing").closing())
        }
        None => Ok(()),
    }
}

/// A name or address, and a port (RFC 9110, section 7.2).
fn is_host(host: &[u8]) -> bool {
    // the colons of an IPv6 address stand in brackets
    let (name, port) = match host.iter().rposition(|b| *b == b':') {
        Some(at) if !host.ends_with(b"]") => (&host[..at], &host[at + 1..]),
        _ => (host, &b""[..]),
    };
    let plain = |b: &u8| {
        b.is_ascii_alphanumeric()
            || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']' | b'%' | b'~')
    };
    name.iter().all(plain) && port.iter().all(u8::is_ascii_digit)
}

fn check_size(session: &Session, ctx: &Ctx) -> Result<(), Refusal> {
    let max = &ctx.rules.config.server.max_headers;
    let headers = &session.req_header().headers;
    let (count, size) = (headers.len(), size(headers));
    if count <= max.count && size <= max.size {
        return Ok(());
    }
    Err(Refusal::new(
        Code::HeadersTooLarge,
        format!(
            "{count} headers of {size} bytes were sent; {} of {} bytes are the most",
            max.count, max.size
        ),
    )
    .closing())
}

/// As on the wire: name, colon, space, value, line end.
fn size(headers: &HeaderMap) -> u64 {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(fields: &[(&'static str, &'static str)]) -> RequestHeader {
        let mut header = RequestHeader::build("POST", b"/", None).unwrap();
        for (name, value) in fields {
            header.append_header(*name, *value).unwrap();
        }
        header
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for good in ["localhost", "a-b.example:8080", "[::1]:80", "127.0.0.1"] {
            assert!(check_host(&header(&[("Host", good)])).is_ok(), "{good}");
        }
        for bad in ["local host", "a/b", "a@b", "a,b", "localhost:port"] {
            assert!(check_host(&header(&[("Host", bad)])).is_err(), "{bad}");
        }
        assert!(check_host(&header(&[])).is_err());
    }

    #[test]
    fn a_length_is_found_in_a_head_as_it_came() {
        assert!(names_length(
            b"POST / HTTP/1.1\r\ncontent-LENGTH: 5\r\n\r\n"
        ));
        assert!(!names_length(
            b"POST / HTTP/1.1\r\nX-Content-Length: 5\r\n\r\n"
        ));
        assert!(!names_length(
            b"POST / HTTP/1.1\r\nX: content-length: 5\r\n\r\n"
        ));
    }

    #[test]
    fn chunks_are_the_only_coding() {
        assert!(check_coding(&header(&[])).is_ok());
        assert!(check_coding(&header(&[("Transfer-Encoding", "Chunked")])).is_ok());
        for bad in ["gzip, chunked", "chunked, chunked", "identity"] {
            assert!(
                check_coding(&header(&[("Transfer-Encoding", bad)])).is_err(),
                "{bad}"
            );
        }
        let twice = [
            ("Transfer-Encoding", "gzip"),
            ("Transfer-Encoding", "chunked"),
        ];
        assert!(check_coding(&header(&twice)).is_err());
    }
}
