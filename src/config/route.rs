//! `[[route]]`: which requests go where. The first match wins.

use super::address::{host, origin};
use super::reader::{Reader, Table, Value};
use super::unique::Unique;
use super::upstream::{backends, headers, timeouts, tls};
use super::values::{count, duration, flag, path, size, word};
use super::words::Word;
use super::{Balance, Cors, ProxyRoute, Route, RouteKind};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Llm,
    Proxy,
    Static,
    Redirect,
}

impl Word for Kind {
    const WORDS: &'static [(&'static str, Kind)] = &[
        ("llm", Kind::Llm),
        ("proxy", Kind::Proxy),
        ("static", Kind::Static),
        ("redirect", Kind::Redirect),
    ];
}

/// The keys of one kind only.
const OWN: [(Kind, &[&str]); 3] = [
    (
        Kind::Proxy,
        &[
            "backends",
            "balance",
            "tls",
            "h2",
            "strip_prefix",
            "request_headers",
            "websocket",
            "timeouts",
        ],
    ),
    (Kind::Static, &["root", "index"]),
    (Kind::Redirect, &["to", "status"]),
];

/// The matches taken so far: an equal one below would never be reached.
pub(super) struct Taken<'r>(Unique<'r>);

impl<'r> Taken<'r> {
    pub fn new(reader: &'r Reader<'r>) -> Taken<'r> {
        Taken(Unique::new(
            reader,
            "the first match wins, so this route is never reached",
        ))
    }
}

pub(super) fn read(t: &Table, taken: &Taken) -> Route {
    let scheme = t.value("scheme", scheme);
    let host = t.value("host", host);
    let path = t.value("path", pattern).unwrap_or_else(|| "/*".to_owned());
    if !t.reader.partial {
        let matches = format!("{scheme:?} {host:?} {path}");
        taken.0.claim_table(t.at(), "route", &matches);
    }
    Route {
        scheme,
        host,
        path,
        kind: kind(t),
        response_headers: t.section("response_headers", headers),
        cors: t.table("cors", cors),
        max_body: t.value("max_body", size(0..=u64::MAX)),
    }
}

fn kind(t: &Table) -> RouteKind {
    let wanted = "\"llm\", \"proxy\", \"static\" or \"redirect\"";
    let Some(kind) = t.required("kind", wanted, word) else {
        t.known(OWN.iter().flat_map(|(_, keys)| keys.iter().copied()));
        return RouteKind::Llm;
    };
    for (owner, keys) in OWN.iter().filter(|(owner, _)| *owner != kind) {
        let why = format!("it goes with kind = {:?}: leave it out", owner.word());
        keys.iter().for_each(|key| t.misplaced(key, &why));
    }
    match kind {
        Kind::Llm => RouteKind::Llm,
        Kind::Proxy => RouteKind::Proxy(Box::new(proxy(t))),
        Kind::Static => folder(t),
        Kind::Redirect => redirect(t),
    }
}

fn proxy(t: &Table) -> ProxyRoute {
    let wanted = "at least one { addr = \"HOST:PORT\" }";
    ProxyRoute {
        backends: t.required("backends", wanted, backends).unwrap_or_default(),
        balance: t.value("balance", balance).unwrap_or(Balance::LeastStreams),
        tls: t.table("tls", tls),
        h2: t.value("h2", flag).unwrap_or(false),
        strip_prefix: t.value("strip_prefix", prefix),
        request_headers: t.section("request_headers", headers),
        websocket: t.value("websocket", flag).unwrap_or(false),
        timeouts: t.section("timeouts", timeouts),
    }
}

fn folder(t: &Table) -> RouteKind {
    let index = t.value("index", |v| {
        let file = v
            .text()
            .filter(|f| !f.is_empty() && !f.contains(['/', '\0']));
        v.wants(file.map(str::to_owned), "a file's name without /")
    });
    RouteKind::Static {
        root: t.required("root", "the folder", path).unwrap_or_default(),
        index: index.unwrap_or_else(|| "index.html".to_owned()),
    }
}

fn redirect(t: &Table) -> RouteKind {
    let wanted = "where to, as \"https://{host}{uri}\"";
    RouteKind::Redirect {
        to: t.required("to", wanted, target).unwrap_or_default(),
        status: t.value("status", redirect_status).unwrap_or(308),
    }
}

fn redirect_status(v: &Value) -> Option<u16> {
    let status = count(301..=308)(v)?;
    let known = [301, 302, 303, 307, 308].contains(&status);
    v.wants(known.then_some(status), "301, 302, 303, 307 or 308")
}

fn scheme(v: &Value) -> Option<String> {
    let scheme = v.text().filter(|s| ["http", "https"].contains(s));
    v.wants(scheme.map(str::to_owned), "\"http\" or \"https\"")
}

/// A path, or the start of one before a `*`.
fn pattern(v: &Value) -> Option<String> {
    let good = |p: &&str| {
        let start = p.strip_suffix('*').unwrap_or(p);
        is_path(start) && !start.contains('*')
    };
    let wanted = "a path as \"/v1/models\", or \"/v1/*\" for all that start so";
    v.wants(v.text().filter(good).map(str::to_owned), wanted)
}

fn prefix(v: &Value) -> Option<String> {
    let prefix = v.text().filter(|p| is_path(p));
    v.wants(
        prefix.map(str::to_owned),
        "the start of a path, as \"/app\"",
    )
}

fn is_path(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && c != '?' && c != '#';
    path.starts_with('/') && path.chars().all(plain)
}

/// What a plain route can balance by: it knows no prompt.
fn balance(v: &Value) -> Option<Balance> {
    let balance = word(v)?;
    let plain = balance != Balance::Affinity;
    v.wants(
        plain.then_some(balance),
        "\"round_robin\", \"least_streams\" or \"hash\"",
    )
}

/// A location: a URL or a path, with `{host}` and `{uri}` where the request's own go.
fn target(v: &Value) -> Option<String> {
    let good = |to: &&str| {
        let plain = to.replace("{host}", "").replace("{uri}", "");
        let start = ["/", "{uri}", "http://", "https://"]
            .iter()
            .any(|s| to.starts_with(s));
        start
            && plain
                .chars()
                .all(|c| c.is_ascii_graphic() && c != '{' && c != '}')
    };
    let wanted = "a path or an http(s) URL; {host} and {uri} stand for the request's own";
    v.wants(v.text().filter(good).map(str::to_owned), wanted)
}

fn cors(t: &Table) -> Cors {
    let wanted = "the origins that may read, as [\"https://app.example\"]";
    Cors {
        origins: t
            .required("origins", wanted, |v| v.list(origin))
            .unwrap_or_default(),
        max_age: t
            .value("max_age", duration)
            .unwrap_or(Duration::from_secs(600)),
    }
}
