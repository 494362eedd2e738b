//! `[[pool]]`, shown.

use super::super::words::Word;
use super::super::{Breaker, Discovery, Health, Model, Pool, Queue, Retry, Stream};
use super::text::{Document, Shown};
use super::upstream::{backends, headers, timeouts, tls};
use super::{NONE, OFF, UNLIMITED, path, redacted, time};

pub(super) fn show(doc: &mut Document, p: &Pool) {
    doc.header("[[pool]]");
    doc.key("name", &p.name);
    doc.key("protocol", p.protocol.word());
    doc.key("models", Shown::list(p.models.iter().map(model)));
    doc.key("balance", p.balance.word());
    doc.key("affinity", Shown::table([("by", p.affinity.word().into())]));
    doc.option("max_streams", p.max_streams, UNLIMITED);
    doc.option("queue", p.queue.as_ref().map(queue), OFF);
    doc.option("api_key", p.api_key.as_ref().map(redacted), NONE);
    doc.key("fallback", Shown::list(&p.fallback));
    match &p.discovery {
        Some(d) => doc.key("discovery", discovery(d)),
        None => doc.key("backends", backends(&p.backends)),
    }
    doc.option("tls", p.tls.as_ref().map(tls), OFF);
    doc.key("headers", headers(&p.headers));
    doc.key("bytes_per_unit", p.bytes_per_unit);
    doc.key("h2", p.h2);
    doc.key("timeouts", timeouts(&p.timeouts));
    doc.key("default_output_units", p.default_output_units.0);
    doc.key("cap_member", p.cap_member.word());
    doc.key("retry", retry(&p.retry));
    doc.option("health", p.health.as_ref().map(health), OFF);
    doc.option("breaker", p.breaker.as_ref().map(breaker), OFF);
    doc.key("stream", stream(&p.stream));
}

fn model(m: &Model) -> Shown {
    if m.public == m.upstream {
        return (&m.public).into();
    }
    let names = [("public", &m.public), ("upstream", &m.upstream)];
    Shown::table(names.map(|(key, name)| (key, name.into())))
}

fn queue(q: &Queue) -> Shown {
    Shown::table([
        ("max_wait", time(q.max_wait).into()),
        ("max_len", q.max_len.into()),
    ])
}

fn discovery(d: &Discovery) -> Shown {
    match d {
        Discovery::File(file) => Shown::table([("file", path(file).into())]),
        Discovery::Dns { name, interval } => {
            Shown::table([("dns", name.into()), ("interval", time(*interval).into())])
        }
        Discovery::Etcd { endpoints, prefix } => {
            Shown::table([("etcd", Shown::list(endpoints)), ("prefix", prefix.into())])
        }
    }
}

fn retry(r: &Retry) -> Shown {
    Shown::table([
        ("attempts", r.attempts.into()),
        ("statuses", Shown::list(r.statuses.iter().copied())),
        ("accept_duplicate_cost", r.accept_duplicate_cost.into()),
        ("budget", r.budget.into()),
    ])
}

fn health(h: &Health) -> Shown {
    Shown::table([
        ("path", (&h.path).into()),
        ("interval", time(h.interval).into()),
        ("rise", h.rise.into()),
        ("fall", h.fall.into()),
    ])
}

fn breaker(b: &Breaker) -> Shown {
    Shown::table([
        ("errors", b.errors.into()),
        ("window", time(b.window).into()),
        ("open_for", time(b.open_for).into()),
    ])
}

fn stream(s: &Stream) -> Shown {
    Shown::table([
        ("heartbeat", time(s.heartbeat).into()),
        ("early_headers", s.early_headers.into()),
        ("write_timeout", time(s.write_timeout).into()),
        ("half_close", s.half_close.word().into()),
        ("usage", s.usage.word().into()),
        ("line_ends", s.line_ends.word().into()),
        ("hold_preamble", s.hold_preamble.into()),
        ("resumable", s.resumable.into()),
    ])
}
