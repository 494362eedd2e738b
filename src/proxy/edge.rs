//! The first look at a request: who sent it, how large its head is, what its connection may do.

use super::context::Ctx;
use super::refuse::Refusal;
use crate::api::{Call, Code};
use crate::config::HalfClose;
use http::{HeaderMap, Version};
use pingora_proxy::Session;
use std::time::Duration;

/// Notes the facts of the access line and sets up the connection.
pub fn begin(session: &mut Session, ctx: &mut Ctx) {
    let keepalive = ctx.rules.config.server.timeouts.keepalive;
    let seconds = keepalive.as_secs().max(1);
    session.set_keepalive(Some(seconds));
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
    let client = session
        .client_addr()
        .and_then(|a| a.as_inet())
        .map_or_else(|| "-".to_owned(), |a| a.ip().to_string());
    let wire = ctx.wire();
    wire.method = method;
    wire.path = path;
    wire.version = version;
    wire.user_agent = user_agent;
    wire.client = client;
}

/// What a half-closed connection of this request means.
pub fn set_half_close(session: &mut Session, half_close: HalfClose) {
    session
        .as_downstream_mut()
        .set_abort_on_close(half_close == HalfClose::Abort);
}

/// Refuses a head that is too large.
pub fn check(session: &Session, ctx: &Ctx) -> Result<(), Refusal> {
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
