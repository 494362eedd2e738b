//! Who asked: the client's address, by what trusted proxies say of it, and what the upstream is told.

use super::context::Ctx;
use crate::config::Network;
use http::HeaderMap;
use pingora_core::Result;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use std::net::{IpAddr, SocketAddr};

/// The address of a request's sender: of its connection, or where that is a trusted proxy's, the last address before it
/// in `X-Forwarded-For` that is not.
pub fn client(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let is_trusted = |ip: IpAddr| trusted.iter().any(|n| n.contains(ip));
    let mut client = peer;
    for hop in hops(headers).into_iter().rev() {
        if !is_trusted(client) {
            break;
        }
        match parse(&hop) {
            Some(ip) => client = ip,
            None => break,
        }
    }
    client
}

/// The connection's own address.
pub fn peer(session: &Session) -> Option<IpAddr> {
    session
        .client_addr()
        .and_then(|a| a.as_inet())
        .map(|a| a.ip().to_canonical())
}

/// Tells the upstream who asked. What a client that is not trusted claims is replaced by its address.
pub fn tell(session: &Session, ctx: &Ctx, header: &mut RequestHeader) -> Result<()> {
    let Some(peer) = peer(session) else {
        return Ok(());
    };
    let came = &session.req_header().headers;
    let trusted = ctx.rules.config.server.trusted_proxies.as_slice();
    let believed = trusted.iter().any(|n| n.contains(peer));
    let mut chain = if believed { hops(came) } else { Vec::new() };
    chain.push(peer.to_string());
    header.insert_header("X-Forwarded-For", chain.join(", "))?;
    let told = |name: &str| {
        let value = came.get(name).filter(|_| believed)?;
        value.to_str().ok()
    };
    let scheme = told("x-forwarded-proto").filter(|v| matches!(*v, "http" | "https"));
    header.insert_header("X-Forwarded-Proto", scheme.unwrap_or(own_scheme(session)))?;
    match told("x-forwarded-host") {
        Some(host) => header.insert_header("X-Forwarded-Host", host),
        None => Ok(()),
    }
}

fn own_scheme(session: &Session) -> &'static str {
    let tls = session.digest().is_some_and(|d| d.ssl_digest.is_some());
    if tls { "https" } else { "http" }
}

/// The addresses of all `X-Forwarded-For` headers, the first hop first.
fn hops(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all("x-forwarded-for")
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .map(|hop| hop.trim().to_owned())
        .filter(|hop| !hop.is_empty())
        .collect()
}

/// An address, with or without a port.
fn parse(hop: &str) -> Option<IpAddr> {
    hop.parse::<IpAddr>()
        .or_else(|_| hop.parse::<SocketAddr>().map(|a| a.ip()))
        .ok()
        .map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(peer: &str, forwarded: &str) -> String {
        let trusted = [Network {
            address: "10.0.0.0".parse().unwrap(),
            prefix: 8,
        }];
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", forwarded.parse().unwrap());
        client(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed_and_only_up_to_the_first_stranger() {
        assert_eq!(seen("192.0.2.1", "6.6.6.6"), "192.0.2.1");
        assert_eq!(seen("10.1.1.1", "6.6.6.6"), "6.6.6.6");
        assert_eq!(seen("10.1.1.1", "7.7.7.7, 6.6.6.6, 10.2.2.2"), "6.6.6.6");
        assert_eq!(seen("10.1.1.1", "nonsense, 6.6.6.6:80"), "6.6.6.6");
        assert_eq!(seen("10.1.1.1", "nonsense"), "10.1.1.1");
        assert_eq!(seen("10.1.1.1", "10.3.3.3"), "10.3.3.3");
    }
}
