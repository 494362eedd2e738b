//! Addresses and what else names a place on the network. Only their form is checked: nothing is looked up.

use super::reader::Value;
use super::{ListenAddr, Network};
use std::net::{IpAddr, Ipv6Addr};

/// `host:port` to listen on, or `unix:PATH`. Port 0 takes any free one.
pub(super) fn listen(v: &Value) -> Option<ListenAddr> {
    if let Some(path) = v.text().and_then(|t| t.strip_prefix("unix:")) {
        let path = (!path.is_empty()).then(|| v.reader.resolve(path));
        let wanted = "a path after unix:, as \"unix:/run/streamgate/web.sock\"";
        return v.wants(path, wanted).map(ListenAddr::Unix);
    }
    let addr = v.text().filter(|t| split(t).is_some());
    let wanted = "\"HOST:PORT\", \"[IPV6]:PORT\" or \"unix:PATH\"";
    v.wants(addr.map(str::to_owned), wanted)
        .map(ListenAddr::Tcp)
}

/// `host:port` to listen on.
pub(super) fn listen_tcp(v: &Value) -> Option<String> {
    let addr = v.text().filter(|t| split(t).is_some());
    v.wants(addr.map(str::to_owned), "\"HOST:PORT\" or \"[IPV6]:PORT\"")
}

/// `host:port` to connect to.
pub(super) fn connect(v: &Value) -> Option<String> {
    let addr = v
        .text()
        .filter(|t| split(t).is_some_and(|(_, port)| port != 0));
    let wanted = "\"HOST:PORT\" or \"[IPV6]:PORT\", with a port from 1 to 65535";
    v.wants(addr.map(str::to_owned), wanted)
}

/// Whether only this machine can reach a listener at this address.
pub(super) fn is_loopback(addr: &str) -> bool {
    let Some((host, _)) = split(addr) else {
        return false;
    };
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    ip.map_or(host == "localhost", |ip| ip.is_loopback())
}

/// An address range, `10.0.0.0/8`, or a plain address.
pub(super) fn network(v: &Value) -> Option<Network> {
    let wanted = "an address or a range as \"10.0.0.0/8\" or \"fd00::/8\"";
    v.wants(v.text().and_then(parse_network), wanted)
}

/// A host name or address, in lower case, without a port.
pub(super) fn host(v: &Value) -> Option<String> {
    let host = v.text().filter(|t| is_host(t)).map(str::to_ascii_lowercase);
    v.wants(host, "a host name without scheme and port")
}

/// A URL of the web; `wanted` says what for.
pub(super) fn web(v: &Value, wanted: &str) -> Option<String> {
    let url = v.text().filter(|t| is_url(t, &["http", "https"]));
    v.wants(url.map(str::to_owned), wanted)
}

pub(super) fn is_url(text: &str, schemes: &[&str]) -> bool {
    let parts = text.split_once("://");
    parts.is_some_and(|(scheme, rest)| schemes.contains(&scheme) && is_authority(rest))
}

/// What a browser sends as `Origin`: scheme, host and port, and nothing behind them.
pub(super) fn origin(v: &Value) -> Option<String> {
    let wanted = "\"*\" or an origin as \"https://app.example\", without a path";
    let good = |t: &&str| {
        let bare = |rest: &str| is_authority(rest) && !rest.contains('/');
        *t == "*"
            || t.split_once("://")
                .is_some_and(|(s, rest)| is_scheme(s) && bare(rest))
    };
    v.wants(v.text().filter(good).map(str::to_owned), wanted)
}

/// Something before the path, and nothing that cannot stand in a URL.
fn is_authority(rest: &str) -> bool {
    !rest.is_empty() && !rest.starts_with('/') && rest.chars().all(|c| c.is_ascii_graphic())
}

fn is_scheme(scheme: &str) -> bool {
    !scheme.is_empty()
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

fn parse_network(text: &str) -> Option<Network> {
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let widest = if address.is_ipv4() { 32 } else { 128 };
    let prefix = prefix.map_or(Some(widest), |p| p.parse().ok())?;
    (prefix <= widest).then_some(Network { address, prefix })
}

/// Host and port; the host of an IPv6 address keeps its brackets.
fn split(addr: &str) -> Option<(&str, u16)> {
    let (host, port) = addr.rsplit_once(':')?;
    let digits = port.chars().all(|c| c.is_ascii_digit());
    let port = port.parse().ok().filter(|_| digits)?;
    let inside = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let good = match inside {
        Some(v6) => v6.parse::<Ipv6Addr>().is_ok(),
        None => is_host(host),
    };
    good.then_some((host, port))
}

fn is_host(host: &str) -> bool {
    let label = |l: &str| {
        let inner = l
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        (1..=63).contains(&l.len()) && inner && !l.starts_with('-') && !l.ends_with('-')
    };
    let numeric = host.chars().all(|c| c.is_ascii_digit() || c == '.');
    host.len() <= 253 && host.split('.').all(label) && (!numeric || host.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_are_told_apart() {
        for (addr, parts) in [
            ("127.0.0.1:80", ("127.0.0.1", 80)),
            ("[::1]:443", ("[::1]", 443)),
            ("vllm-0.svc_a.example:8000", ("vllm-0.svc_a.example", 8000)),
            ("localhost:0", ("localhost", 0)),
        ] {
            assert_eq!(split(addr), Some(parts), "{addr}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for addr in [
            "",
            ":",
            "8080",
            ":8080",
            "host",
            "host:",
            "host:x",
            "host:+80",
            "host:65536",
            "::1:80",
            "[::1]",
            "[::1",
            "[zz]:80",
            "http://a:80",
            "a b:80",
            "1.2.3:80",
            "256.1.1.1:80",
            "-a:80",
            "a..b:80",
            "é:80",
        ] {
            assert_eq!(split(addr), None, "{addr}");
        }
    }

    #[test]
    fn only_this_machine_reaches_a_loopback_address() {
        for addr in [
            "127.0.0.1:9090",
            "127.8.0.1:1",
            "[::1]:9090",
            "localhost:9090",
        ] {
            assert!(is_loopback(addr), "{addr}");
        }
        for addr in [
            "0.0.0.0:9090",
            "10.0.0.1:9090",
            "[::]:9090",
            "gw.example:9090",
        ] {
            assert!(!is_loopback(addr), "{addr}");
        }
    }

    #[test]
    fn networks_are_ranges_or_single_addresses() {
        let network = |a: &str, prefix| {
            Some(Network {
                address: a.parse().unwrap(),
                prefix,
            })
        };
        assert_eq!(parse_network("10.0.0.0/8"), network("10.0.0.0", 8));
        assert_eq!(parse_network("192.168.1.7"), network("192.168.1.7", 32));
        assert_eq!(parse_network("fd00::/8"), network("fd00::", 8));
        for bad in [
            "",
            "/8",
            "10.0.0.0/33",
            "10.0.0/8",
            "fd00::/129",
            "10.0.0.0/-1",
            "a/8",
        ] {
            assert_eq!(parse_network(bad), None, "{bad}");
        }
    }
}
