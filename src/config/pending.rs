//! Keys that are parsed and checked but not in effect yet. A start names each of them that stands in the file.

/// Keys by their path in the file, whatever their value.
pub(super) const KEYS: &[&str] = &[
    "listen.tls",
    "listen.tls_min",
    "listen.client_ca",
    "listen.client_auth",
    "listen.h2",
    "listen.proxy_protocol",
    "server.upgrade_sock",
    "server.max_connections",
    "pool.affinity",
    "pool.fallback",
    "pool.tls.ca",
    "pool.tls.cert",
    "pool.tls.key",
    "pool.headers",
    "pool.h2",
    "pool.discovery",
    "pool.health",
    "pool.breaker",
    "pool.stream.resumable",
    "route",
    "cluster",
];

/// Keys of which only the values that start so are not in effect.
const VALUES: &[(&str, &str)] = &[
    ("listen.addr", "unix:"),
    ("pool.balance", "hash"),
    ("pool.balance", "affinity"),
];

/// What to say of a key that stands in the file with this value (`None` where it is no text).
pub(super) fn remark(key: &str, value: Option<&str>) -> Option<String> {
    if KEYS.contains(&key) {
        return Some(format!("{key} is not in effect yet"));
    }
    let value = value?;
    VALUES
        .iter()
        .find(|(of, start)| *of == key && value.starts_with(start))
        .map(|(_, start)| format!("{key} {start} is not in effect yet"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_remarked_whatever_its_value_and_a_value_by_its_start() {
        for key in KEYS {
            assert_eq!(
                remark(key, None),
                Some(format!("{key} is not in effect yet"))
            );
        }
        for (key, start) in VALUES {
            let value = format!("{start}//u:secret@h");
            let remark = remark(key, Some(&value));
            assert_eq!(remark, Some(format!("{key} {start} is not in effect yet")));
        }
        assert_eq!(remark("listen.addr", Some("127.0.0.1:80")), None);
        assert_eq!(remark("pool.name", Some("hash")), None);
    }
}
