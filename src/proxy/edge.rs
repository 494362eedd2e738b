//! The first look at a request: who sent it, how large its head is, what its connection may do.

use super::connection::Connection;
use super::context::Ctx;
use super::forwarded;
use super::refuse::Refusal;
use crate::api::{Call, Code};
use crate::config::HalfClose;
use http::{HeaderMap, Version};
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::time::Duration;

/// Notes the facts of the access line and sets up the connection.
pub fn begin(session: &mut Session, ctx: &mut Ctx) {
    if let Some(connection) = Connection::of(session) {
        connection.note_head();
    }
    if closes_by_default(session.req_header()) {
        session.set_keepalive(None);
    }
    let down = session.as_downstream_mut();
    // a next request that comes early is the next one's, not a disconnect
    down.set_pipelining_enabled(true);
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
    check_size(session, ctx)
}

/// HTTP/1.1 demands one Host (RFC 9112, section 3.2); two are refused before any hook runs.
fn check_host(header: &RequestHeader) -> Result<(), Refusal> {
    let missing = header.version == Version::HTTP_11 && !header.headers.contains_key("host");
    match missing {
        true => Err(Refusal::new(Code::InvalidRequest, "the Host header is missing").closing()),
        false => Ok(()),
    }
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
