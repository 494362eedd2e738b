//! `[[pool]]`: the backends of some models, and how requests reach them.

use super::models::Claims;
use super::reader::{Table, Value};
use super::secrets::secret;
use super::tenant::{CAP, SOME, units};
use super::upstream::{backends, headers, timeouts, tls};
use super::values::{count, duration, flag, fraction, name, path, some_time, text, word};
use super::{
    Affinity, Balance, Breaker, CapMember, Discovery, HalfClose, Health, LineEnds, Pool, Protocol,
    Queue, Retry, Stream, UsageMode, address,
};
use crate::budget::Units;
use std::time::Duration;

pub(super) fn read<'r>(t: &Table<'r>, claims: &Claims<'r>) -> Pool {
    let name = t.required("name", "the pool's name", |v| {
        let name = name(v)?;
        claims.pool(v, &name);
        Some(name)
    });
    let name = name.unwrap_or_default();
    if !t.has("discovery") && !t.has("backends") {
        t.missing(
            "backends",
            "at least one { addr = \"HOST:PORT\" }, or discovery",
        );
    }
    if t.has("discovery") {
        t.misplaced(
            "backends",
            "discovery stands beside it: give one of the two",
        );
    }
    Pool {
        protocol: t.value("protocol", word).unwrap_or(Protocol::OpenAi),
        models: claims.models(t, &name),
        balance: t.value("balance", word).unwrap_or(Balance::LeastStreams),
        affinity: t.table("affinity", affinity).unwrap_or(Affinity::Prefix),
        max_streams: t.value("max_streams", count(SOME)),
        queue: t.table("queue", queue),
        api_key: t.value("api_key", secret),
        fallback: claims.fallback(t, &name),
        backends: t.value("backends", backends).unwrap_or_default(),
        discovery: t.table("discovery", discovery).flatten(),
        tls: t.table("tls", tls),
        headers: t.section("headers", headers),
        bytes_per_unit: t.value("bytes_per_unit", count(1..=1024)).unwrap_or(4),
        h2: t.value("h2", flag).unwrap_or(false),
        timeouts: t.section("timeouts", timeouts),
        default_output_units: t
            .value("default_output_units", units(CAP))
            .unwrap_or(Units(1024)),
        cap_member: t.value("cap_member", word).unwrap_or(CapMember::MaxTokens),
        retry: t.section("retry", retry),
        health: t.table("health", health),
        breaker: t.table("breaker", breaker),
        stream: t.section("stream", stream),
        name,
    }
}

fn affinity(t: &Table) -> Affinity {
    let by = t.required("by", "\"session\" or \"prefix\"", word);
    by.unwrap_or(Affinity::Prefix)
}

fn queue(t: &Table) -> Queue {
    Queue {
        max_wait: t
            .value("max_wait", some_time)
            .unwrap_or(Duration::from_secs(2)),
        max_len: t.value("max_len", count(SOME)).unwrap_or(256),
    }
}

/// One of three ways, told by its own key.
fn discovery(t: &Table) -> Option<Discovery> {
    let ways = ["file", "dns", "etcd"].map(|way| t.has(way));
    if ways.iter().filter(|given| **given).count() != 1 {
        let message = "pool.discovery: give exactly one of file, dns and etcd";
        t.reader.report(t.at(), message.to_owned());
    }
    let interval = t.value("interval", some_time);
    if t.left_out("dns") {
        t.misplaced("interval", "it goes with dns: leave it out");
    }
    let file = t.value("file", path).map(Discovery::File);
    let dns = t.value("dns", address::connect).map(|name| Discovery::Dns {
        name,
        interval: interval.unwrap_or(Duration::from_secs(5)),
    });
    let etcd = etcd(t);
    file.or(dns).or(etcd)
}

fn etcd(t: &Table) -> Option<Discovery> {
    if t.left_out("etcd") {
        t.misplaced("prefix", "it goes with etcd: leave it out");
    }
    let endpoints = t.value("etcd", |v| {
        let wanted = "a URL as \"http://127.0.0.1:2379\"";
        v.filled_list("at least one URL", |v| address::web(v, wanted))
    })?;
    let prefix = t.required("prefix", "what the backends' keys start with", text);
    Some(Discovery::Etcd {
        endpoints,
        prefix: prefix.unwrap_or_default(),
    })
}

fn retry(t: &Table) -> Retry {
    Retry {
        attempts: t.value("attempts", count(1..=100)).unwrap_or(2),
        statuses: t
            .value("statuses", |v| v.list(count(400..=599)))
            .unwrap_or_else(|| vec![429, 502, 503, 504]),
        accept_duplicate_cost: t.value("accept_duplicate_cost", flag).unwrap_or(false),
        budget: t.value("budget", fraction(0.0..=100.0)).unwrap_or(0.2),
    }
}

fn health(t: &Table) -> Health {
    let path = t.value("path", |v: &Value| {
        let path = v
            .text()
            .filter(|p| p.starts_with('/') && p.chars().all(|c| c.is_ascii_graphic()));
        v.wants(path.map(str::to_owned), "a path as \"/health\"")
    });
    Health {
        path: path.unwrap_or_else(|| "/health".to_owned()),
        interval: t
            .value("interval", some_time)
            .unwrap_or(Duration::from_secs(5)),
        rise: t.value("rise", count(1..=1000)).unwrap_or(2),
        fall: t.value("fall", count(1..=1000)).unwrap_or(3),
    }
}

fn breaker(t: &Table) -> Breaker {
    let errors = count(1..=u64::from(u32::MAX));
    Breaker {
        errors: t.value("errors", errors).unwrap_or(5),
        window: t
            .value("window", some_time)
            .unwrap_or(Duration::from_secs(10)),
        open_for: t
            .value("open_for", some_time)
            .unwrap_or(Duration::from_secs(10)),
    }
}

fn stream(t: &Table) -> Stream {
    Stream {
        heartbeat: t
            .value("heartbeat", duration)
            .unwrap_or(Duration::from_secs(15)),
        early_headers: t.value("early_headers", flag).unwrap_or(false),
        write_timeout: t
            .value("write_timeout", some_time)
            .unwrap_or(Duration::from_secs(30)),
        half_close: t.value("half_close", word).unwrap_or(HalfClose::Abort),
        usage: t.value("usage", word).unwrap_or(UsageMode::Inject),
        line_ends: t.value("line_ends", word).unwrap_or(LineEnds::Keep),
        hold_preamble: t.value("hold_preamble", flag).unwrap_or(true),
        resumable: t.value("resumable", flag).unwrap_or(false),
    }
}
