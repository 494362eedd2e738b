//! What pools and proxy routes have in common: backends, TLS, header edits, time-outs.

use super::address::{connect, host};
use super::reader::{Table, Value};
use super::secrets::{certificate, private_key};
use super::unique::Unique;
use super::values::{count, duration, flag};
use super::{Backend, HeaderEdits, PoolTimeouts, UpstreamTls};
use std::time::Duration;

/// A list of backends, each once and at least one.
pub(super) fn backends(v: &Value) -> Option<Vec<Backend>> {
    let seen = Unique::new(v.reader, "a backend stands once in its list");
    v.filled_list("at least one { addr = \"HOST:PORT\" }", |v| {
        v.table(|t| backend(t, &seen))
    })
}

fn backend(t: &Table, seen: &Unique) -> Backend {
    let addr = t.required("addr", "\"HOST:PORT\"", |v| {
        let addr = connect(v)?;
        seen.claim(v, &addr);
        Some(addr)
    });
    Backend {
        addr: addr.unwrap_or_default(),
        weight: t.value("weight", count(1..=1000)).unwrap_or(1),
        max_streams: t.value("max_streams", count(1..=u64::MAX)),
    }
}

pub(super) fn tls(t: &Table) -> UpstreamTls {
    let cert = t.value("cert", certificate);
    let key = t.value("key", private_key);
    if t.has("cert") && !t.has("key") {
        t.missing("key", "the PEM file of the certificate's key");
    }
    if t.has("key") && !t.has("cert") {
        t.missing("cert", "the PEM file of the key's certificate");
    }
    UpstreamTls {
        sni: t.value("sni", host),
        verify: t.value("verify", flag).unwrap_or(true),
        ca: t.value("ca", certificate),
        cert,
        key,
    }
}

/// Zero is no limit.
pub(super) fn timeouts(t: &Table) -> PoolTimeouts {
    let limit = |key, default| {
        t.value(key, duration)
            .unwrap_or(Duration::from_secs(default))
    };
    PoolTimeouts {
        connect: limit("connect", 10),
        first_byte: limit("first_byte", 60),
        idle: limit("idle", 120),
        total: limit("total", 0),
    }
}

pub(super) fn headers(t: &Table) -> HeaderEdits {
    HeaderEdits {
        set: t.value("set", set).unwrap_or_default(),
        remove: t.list("remove", |v| {
            let good = v.text().filter(|name| is_name(name));
            v.wants(good.map(str::to_owned), "the name of a header")
        }),
    }
}

fn set(v: &Value) -> Option<Vec<(String, String)>> {
    let entry = |(name, at, value): (&str, usize, Value)| {
        if !is_name(name) || FRAMING.iter().any(|f| f.eq_ignore_ascii_case(name)) {
            let message = format!(
                "{}: give a header's name that does not frame the message",
                value.path
            );
            v.reader.report(at, message);
            return None;
        }
        Some((name.to_owned(), header_value(&value)?))
    };
    Some(v.entries()?.into_iter().filter_map(entry).collect())
}

/// A header's value may be a secret: it is not shown.
fn header_value(v: &Value) -> Option<String> {
    let plain = |t: &&str| t.chars().all(|c| c.is_ascii_graphic() || c == ' ') && t.trim() == *t;
    let value = v.text().filter(plain);
    if value.is_none() {
        v.refuse_hidden("give a header's value as plain ASCII in quotes, without spaces around it");
    }
    value.map(str::to_owned)
}

/// Headers the gateway itself writes, as they say where a message ends.
const FRAMING: [&str; 7] = [
    "connection",
    "content-length",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A token of RFC 9110, section 5.6.2.
fn is_name(name: &str) -> bool {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(token)
}
