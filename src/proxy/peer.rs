//! The upstream's side of a request: which backend, over what connection, with which head.

use super::context::Ctx;
use super::forwarded;
use super::headers;
use crate::config::{self, Protocol};
use pingora_core::upstreams::peer::{ALPN, HttpPeer, Peer};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::net::SocketAddr;
use std::time::Duration;

/// Kept connections are closed before the common engines close them: uvicorn does after 5 seconds, and a request that
/// meets its close is lost.
pub const KEEP_IDLE: Duration = Duration::from_secs(4);

/// Picks the next backend of the pool and takes a slot of it; called by `upstream_peer`.
pub fn pick(ctx: &mut Ctx) -> Result<Box<HttpPeer>> {
    let (Some(exchange), Some(relay)) = (&mut ctx.exchange, &mut ctx.relay) else {
        return Error::e_explain(ErrorType::InternalError, "no request to pick a backend for");
    };
    let picked = match relay.pool.pick(&relay.tried) {
        Ok(picked) => picked,
        Err(no_pick) => {
            ctx.no_pick = Some(no_pick);
            return Error::e_explain(ErrorType::ConnectNoRoute, "no backend to try");
        }
    };
    relay.tried.push(picked.member.addr.clone());
    exchange.begin_attempt(&picked.member.addr, picked.slot);
    let peer = peer(
        &relay.pool.rules,
        picked.addr,
        &picked.member.addr,
        ctx.rules.config.server.socket_buffer,
    );
    ctx.member = Some(picked.member);
    Ok(Box::new(peer))
}

fn peer(rules: &config::Pool, addr: SocketAddr, name: &str, socket_buffer: u64) -> HttpPeer {
    let host = host_of(name);
    let sni = rules
        .tls
        .as_ref()
        .map(|t| t.sni.clone().unwrap_or_else(|| host.to_owned()));
    let mut peer = HttpPeer::new(addr, sni.is_some(), sni.unwrap_or_default());
    if let Some(options) = peer.get_mut_peer_options() {
        options.alpn = ALPN::H1;
        options.idle_timeout = Some(KEEP_IDLE);
        options.tcp_recv_buf = usize::try_from(socket_buffer / 2).ok();
        let verify = rules.tls.as_ref().is_none_or(|t| t.verify);
        options.verify_cert = verify;
        options.verify_hostname = verify;
    }
    peer
}

fn host_of(addr: &str) -> &str {
    addr.rsplit_once(':').map_or(addr, |(host, _)| host)
}

/// Makes the client's head the upstream's; called by `upstream_request_filter`. What the gateway says is set last, so
/// that nothing a client sends can take it away.
pub fn request_head(session: &Session, ctx: &Ctx, header: &mut RequestHeader) -> Result<()> {
    let Some(relay) = &ctx.relay else {
        return Ok(());
    };
    let rules = &relay.pool.rules;
    headers::clean(header);
    header.set_version(http::Version::HTTP_11);
    header.set_raw_path(path(session, relay.request.call.upstream_path()).as_bytes())?;
    let length = relay.body.as_ref().map_or(0, |b| b.bytes.len());
    header.insert_header("Content-Length", length.to_string())?;
    header.insert_header("Host", host(ctx, rules))?;
    header.insert_header("Accept-Encoding", "identity")?;
    if !header.headers.contains_key("x-request-id") {
        header.insert_header("X-Request-Id", ctx.request_id.as_str())?;
    }
    forwarded::tell(session, ctx, header)?;
    if let Some(key) = &rules.api_key {
        match rules.protocol {
            Protocol::OpenAi => {
                header.insert_header("Authorization", format!("Bearer {}", key.expose()))?;
            }
            Protocol::Anthropic => header.insert_header("x-api-key", key.expose())?,
        }
    }
    Ok(())
}

fn path(session: &Session, upstream: &str) -> String {
    match session.req_header().uri.query().map(headers::clean_query) {
        Some(query) if !query.is_empty() => format!("{upstream}?{query}"),
        _ => upstream.to_owned(),
    }
}

/// The name the upstream is asked by: its TLS name, else its configured address.
fn host(ctx: &Ctx, rules: &config::Pool) -> String {
    let sni = rules.tls.as_ref().and_then(|t| t.sni.clone());
    sni.unwrap_or_else(|| {
        ctx.member
            .as_ref()
            .map(|m| m.addr.clone())
            .unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_is_without_its_port() {
        assert_eq!(host_of("api.example.com:443"), "api.example.com");
        assert_eq!(host_of("[::1]:443"), "[::1]");
    }
}
