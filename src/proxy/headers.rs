//! Headers that must not pass, in either direction.

use http::{HeaderMap, HeaderName};
use pingora_core::Result;
use pingora_http::{RequestHeader, ResponseHeader};

/// Headers that belong to one connection (RFC 9110, section 7.6.1).
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Where a client may carry the key it has here. None of them goes upstream, in any spelling.
const CREDENTIALS: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "xi-api-key",
];

/// What only the gateway may say.
const OURS: &[&str] = &[
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
];
const OUR_PREFIX: &str = "x-streamgate-";

/// Query members that carry a key with some vendors.
const QUERY_KEYS: &[&str] = &["key", "api_key", "api-key", "apikey", "access_token"];

/// The headers that `Connection` names, beside those that always belong to the connection.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all("connection")
        .iter()
        .flat_map(|v| v.as_bytes().split(|b| *b == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .collect()
}

pub fn strip_hop_by_hop(header: &mut ResponseHeader) -> Result<()> {
    for name in named_by_connection(&header.headers) {
        header.remove_header(&name);
    }
    for name in HOP_BY_HOP {
        header.remove_header(*name);
    }
    Ok(())
}

/// Takes everything off a client's head that is not for the upstream.
pub fn clean(header: &mut RequestHeader) {
    for name in named_by_connection(&header.headers) {
        header.remove_header(&name);
    }
    let unwanted: Vec<HeaderName> = header
        .headers
        .keys()
        .filter(|name| is_unwanted(name.as_str()))
        .cloned()
        .collect();
    for name in unwanted {
        header.remove_header(&name);
    }
}

/// Backends of the CGI kind read `_` and `-` as the same: a look-alike counts as the name itself.
fn is_unwanted(name: &str) -> bool {
    let plain = name.replace('_', "-");
    let listed = |list: &[&str]| list.contains(&plain.as_str());
    listed(HOP_BY_HOP)
        || listed(CREDENTIALS)
        || listed(OURS)
        || plain.starts_with(OUR_PREFIX)
        || matches!(
            plain.as_str(),
            "expect" | "host" | "content-length" | "accept-encoding"
        )
}

/// The query without what carries a key.
pub fn clean_query(query: &str) -> String {
    query
        .split('&')
        .filter(|member| {
            let name = member.split('=').next().unwrap_or("");
            !QUERY_KEYS.iter().any(|k| name.eq_ignore_ascii_case(k))
        })
        .collect::<Vec<_>>()
        .join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hop_by_hop_headers_and_their_look_alikes_do_not_pass() {
        let mut header = RequestHeader::build("POST", b"/", None).unwrap();
        let gone = [
            ("Authorization", "Bearer x"),
            ("X_Api_Key", "x"),
            ("X-Streamgate-Tenant", "x"),
            ("x_streamgate_tenant", "x"),
            ("Connection", "x-hop, close"),
            ("X-Hop", "1"),
            ("TE", "trailers"),
            ("Accept-Encoding", "gzip"),
            ("X-Forwarded-For", "1.2.3.4"),
        ];
        let kept = [
            ("X-Request-Id", "t"),
            ("OpenAI-Beta", "x"),
            ("X-Sim", "crlf"),
        ];
        for (name, value) in gone.into_iter().chain(kept) {
            header.append_header(name, value).unwrap();
        }
        clean(&mut header);
        let left: Vec<_> = header.headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left.len(), kept.len(), "{left:?}");
    }

    #[test]
    fn a_key_in_the_query_does_not_pass() {
        assert_eq!(clean_query("beta=true&key=s&API_KEY=t"), "beta=true");
        assert_eq!(clean_query("key=s"), "");
    }
}
