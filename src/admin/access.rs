//! Who may ask the admin listener for anything.

use crate::config::Secret;
use http::HeaderMap;
use std::net::IpAddr;

/// Why a request is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    Token,
    /// A page of another site sent it through its reader's browser.
    Elsewhere,
}

/// Checks what a request shows. Where there is no token, being on this machine is what allows it: then a browser here must
/// not be made to ask for somebody else, neither by a page of another site nor by a name that was bent to this address.
pub fn check(headers: &HeaderMap, token: Option<&Secret>) -> Result<(), Denied> {
    let header = |name| headers.get(name).map(http::HeaderValue::as_bytes);
    if let Some(token) = token {
        let wanted = format!("Bearer {}", token.expose());
        let shown = header("authorization").unwrap_or_default();
        return same(shown, wanted.as_bytes())
            .then_some(())
            .ok_or(Denied::Token);
    }
    let host = header("host").and_then(|h| std::str::from_utf8(h).ok());
    let own_page = match header("origin") {
        Some(origin) => host.is_some_and(|host| origin.ends_with(format!("://{host}").as_bytes())),
        None => true,
    };
    // browsers say so of what a page of another site makes them ask for, also where they send no origin
    let own_fetch = header("sec-fetch-site").is_none_or(|v| matches!(v, b"same-origin" | b"none"));
    let named_here = host.is_none_or(is_this_machine);
    (own_page && own_fetch && named_here)
        .then_some(())
        .ok_or(Denied::Elsewhere)
}

/// An address, or the name that every machine has for itself.
fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

/// Compared in a time that depends on the lengths alone.
fn same(shown: &[u8], wanted: &[u8]) -> bool {
    shown.len() == wanted.len()
        && shown
            .iter()
            .zip(wanted)
            .fold(0, |differs, (a, b)| differs | (a ^ b))
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &'static str)| {
            (name.parse().unwrap(), value.parse().unwrap())
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_token_is_wanted_whole() {
        let token = Secret::new("secret".to_owned());
        let with = |value| check(&headers(&[("authorization", value)]), Some(&token));
        assert_eq!(with("Bearer secret"), Ok(()));
        for wrong in ["Bearer secre", "Bearer secret2", "secret", "", "Bearer "] {
            assert_eq!(with(wrong), Err(Denied::Token), "{wrong:?}");
        }
        assert_eq!(check(&headers(&[]), Some(&token)), Err(Denied::Token));
    }

    #[test]
    fn without_a_token_other_sites_are_kept_out() {
        let from = |lines| check(&headers(lines), None);
        for own in [
            &[][..],
            &[("host", "127.0.0.1:9090")],
            &[("host", "localhost")],
            &[("host", "[::1]:9090")],
            &[
                ("host", "127.0.0.1:9090"),
                ("origin", "http://127.0.0.1:9090"),
            ],
        ] {
            assert_eq!(from(own), Ok(()), "{own:?}");
        }
        for other in [
            &[("host", "evil.example:9090")][..],
            &[
                ("host", "127.0.0.1:9090"),
                ("origin", "https://evil.example"),
            ],
            &[("host", "127.0.0.1:9090"), ("origin", "null")],
            &[("origin", "http://evil.example")],
            &[("host", "127.0.0.1:9090"), ("sec-fetch-site", "cross-site")],
        ] {
            assert_eq!(from(other), Err(Denied::Elsewhere), "{other:?}");
        }
    }
}
