//! What pools and proxy routes show in common.

use super::super::{Backend, HeaderEdits, PoolTimeouts, UpstreamTls};
use super::text::Shown;
use super::{REDACTED, optional_path, times};

pub(super) fn backends(backends: &[Backend]) -> Shown {
    Shown::list(backends.iter().map(|b| {
        Shown::some_of([
            ("addr", Some(Shown::from(&b.addr))),
            ("weight", Some(b.weight.into())),
            ("max_streams", b.max_streams.map(Shown::from)),
        ])
    }))
}

pub(super) fn tls(t: &UpstreamTls) -> Shown {
    let path = |given| optional_path(given).map(Shown::from);
    Shown::some_of([
        ("sni", t.sni.as_ref().map(Shown::from)),
        ("verify", Some(t.verify.into())),
        ("ca", path(t.ca.as_ref())),
        ("cert", path(t.cert.as_ref())),
        ("key", path(t.key.as_ref())),
    ])
}

pub(super) fn timeouts(t: &PoolTimeouts) -> Shown {
    times([
        ("connect", t.connect),
        ("first_byte", t.first_byte),
        ("idle", t.idle),
        ("total", t.total),
    ])
}

pub(super) fn headers(edits: &HeaderEdits) -> Shown {
    let set = edits.set.iter().map(|(name, value)| {
        let value = if may_be_secret(name) { REDACTED } else { value };
        (name, Shown::from(value))
    });
    Shown::table([
        ("set", Shown::table(set)),
        ("remove", Shown::list(&edits.remove)),
    ])
}

/// Whether a header's name says that its value opens something.
fn may_be_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["auth", "cookie", "key", "pass", "secret", "token"]
        .iter()
        .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_open_something_are_redacted() {
        for name in ["Authorization", "x-api-key", "Cookie", "X-Auth-Token"] {
            assert!(may_be_secret(name), "{name}");
        }
        for name in ["X-Org", "Strict-Transport-Security"] {
            assert!(!may_be_secret(name), "{name}");
        }
    }
}
