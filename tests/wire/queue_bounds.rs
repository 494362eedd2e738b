//! What bounds a queue: its length, the places of a tenant, the time. Who is refused is told when to come back, and holds
//! nothing.

use crate::support::ask::{Ask, chat};
use crate::support::client::{Answer, Stream};
use crate::support::dialect::{self, Dialect};
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::process::run_in;
use crate::support::script::tokens;
use crate::support::turns::{ONE_SLOT, Turns, lines_up, lines_up_as, must_be_served, named};
use crate::support::wait::{self, ms, seconds};
use crate::support::{KEY, OTHER_KEY};
use serde_json::{Value, json};
use std::time::Instant;

const BUDGET: &str = "budget = { units = 100000, period = \"total\" }";

/// The wait that a refusal tells.
fn told_ms(answer: &Answer) -> u64 {
    let told = answer.headers.get("retry-after-ms");
    told.and_then(|ms| ms.parse().ok()).unwrap_or(0)
}

fn remaining(gateway: &Gateway) -> f64 {
    gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")])
}

#[test]
fn a_full_line_refuses_at_once_and_takes_nothing() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("max_streams = 1\nqueue = { max_wait = \"20s\", max_len = 2 }")
        .tenant(BUDGET)
        .start();
    let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), "hold");
    let mut waiting = [
        lines_up(&gateway, &chat(), "w0"),
        lines_up_as(OTHER_KEY, &gateway, &chat(), "w1"),
    ];
    for key in [KEY, OTHER_KEY] {
        let refused = gateway.answer(&named(&chat(), "third").key(key));
        refused.must_refuse(429, "queue_full");
        let record = gateway.answer(&Ask::get("/generations/third").key(key));
        record.must_refuse(404, "unknown_request");
    }
    assert_eq!(remaining(&gateway), 100_000.0 - 103.0);
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    for stream in &mut waiting {
        must_be_served(stream, Dialect::Chat);
    }
    gateway.settled();
    assert_eq!(turns.order(), ["hold", "w0", "w1"]);
    let refused = [("code", "queue_full"), ("tenant", "acme")];
    assert_eq!(gateway.metric("streamgate_rejected_total", &refused), 1.0);
}

#[test]
fn a_tenants_places_in_line_are_its_own() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .tenant("max_queued = 1")
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let mut waiting = vec![lines_up(&gateway, &chat(), "w0")];
    gateway
        .answer(&named(&chat(), "w1"))
        .must_refuse(429, "queue_full");
    waiting.push(lines_up_as(OTHER_KEY, &gateway, &chat(), "o0"));
    waiting.push(lines_up_as(OTHER_KEY, &gateway, &chat(), "o1"));
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    for stream in &mut waiting {
        must_be_served(stream, Dialect::Chat);
    }
    gateway.settled();
    assert_eq!(turns.order().len(), 4);
}

#[test]
fn a_tenant_without_places_runs_where_a_slot_is_free_and_never_waits() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .tenant("max_queued = 0")
        .start();
    must_be_served(&mut gateway.chat("alone"), Dialect::Chat);
    gateway.settled();
    let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), "hold");
    gateway.answer(&chat()).must_refuse(429, "queue_full");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    gateway.settled();
    must_be_served(&mut gateway.chat("after"), Dialect::Chat);
}

/// A gateway whose line may be waited in for a moment, with its one slot held.
fn briefly(turns: &Turns, engine: &Engine) -> (Gateway, Stream) {
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("max_streams = 1\nqueue = { max_wait = \"400ms\", max_len = 8 }")
        .tenant(BUDGET)
        .start();
    let hold = turns.holds(&gateway, &chat().key(OTHER_KEY), "hold");
    (gateway, hold)
}

#[test]
fn a_wait_that_lasts_too_long_fails_costs_nothing_and_may_be_tried_again() {
    let turns = Turns::default();
    let engine = turns.engine();
    let (gateway, mut hold) = briefly(&turns, &engine);
    let asked = Instant::now();
    let answer = lines_up(&gateway, &chat(), "late").answer();
    let took = asked.elapsed();
    answer.must_refuse(429, "queue_timeout");
    assert!((ms(400)..seconds(4)).contains(&took), "told after {took:?}");
    let record = gateway.ended("late");
    let told = |member: &str| record[member].clone();
    for (member, value) in [
        ("state", json!("FAILED")),
        ("ended_by", json!("timeout")),
        ("upstream_end", json!("none")),
        ("attempts", json!([])),
        ("charged_units", json!(0)),
        ("started_at", Value::Null),
        ("backend", Value::Null),
        ("reserved_units", json!(103)),
    ] {
        assert_eq!(told(member), value, "{member}: {record}");
    }
    assert_eq!(remaining(&gateway), 100_000.0);
    let labels = [
        ("tenant", "acme"),
        ("state", "FAILED"),
        ("ended_by", "timeout"),
    ];
    assert_eq!(gateway.metric("streamgate_requests_total", &labels), 1.0);
    let line = gateway.access_line("late");
    assert_eq!(
        (&line["status"], &line["phase"]),
        (&json!(429), &json!("QUEUED"))
    );
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    gateway.settled();
    // nothing was shown: the id may run again
    must_be_served(&mut gateway.send(&named(&chat(), "late")), Dialect::Chat);
    assert_eq!(gateway.ended("late")["state"], "COMPLETED");
    assert_eq!(turns.order(), ["hold", "late"]);
}

#[test]
fn a_connection_whose_request_ran_out_of_time_is_good_for_the_next() {
    let turns = Turns::default();
    let engine = turns.engine();
    let (gateway, mut hold) = briefly(&turns, &engine);
    let mut waiting = lines_up(&gateway, &chat(), "late");
    waiting.next_answer().must_refuse(429, "queue_timeout");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    gateway.settled();
    waiting.write(&named(&chat(), "next").bytes());
    must_be_served(&mut waiting, Dialect::Chat);
}

#[test]
fn those_that_time_out_leave_their_places_to_others() {
    let turns = Turns::default();
    let engine = turns.engine();
    let (gateway, mut hold) = briefly(&turns, &engine);
    for round in 0..3 {
        let waiting: Vec<Stream> = (0..8)
            .map(|n| gateway.send(&chat().id(&format!("late-{round}-{n}"))))
            .collect();
        for stream in waiting {
            stream.answer().must_refuse(429, "queue_timeout");
        }
    }
    assert_eq!(gateway.metric("streamgate_queue_length", &[]), 0.0);
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    gateway.settled();
    assert_eq!(turns.order(), ["hold"]);
}

#[test]
fn a_wait_without_hope_is_refused_at_once_with_what_was_to_be_expected() {
    const HELD: u64 = 300;
    let engine = Engine::scripted({
        let run = tokens(1, ms(0));
        move |call| {
            call.pause(ms(HELD))?;
            match call.seen.headers.get("x-stays") {
                Some(_) => call.hold(),
                None => run(call),
            }
        }
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("max_streams = 1\nqueue = { max_wait = \"3s\", max_len = 64 }")
        .start();
    for _ in 0..4 {
        assert_eq!(gateway.answer(&chat()).status, 200);
    }
    gateway.settled();
    let stays = gateway.send(&chat().header("X-Stays", "1"));
    engine.call(4);
    let mut waiting = Vec::new();
    let refused = loop {
        let id = format!("hope-{}", waiting.len());
        let mut stream = gateway.send(&chat().id(&id));
        let record = Ask::get(format!("/generations/{id}"));
        let is_in_line = wait::until(format!("{id} to be in line or refused"), || {
            let known = gateway.answer(&record).status == 200;
            match stream.has_answer(ms(1)) {
                true => Ok(false),
                false if known => Ok(true),
                false => Err("neither".to_owned()),
            }
        });
        if !is_in_line {
            break stream.answer();
        }
        waiting.push(stream);
        assert!(
            waiting.len() <= 10,
            "3 s are no time for eleven of {HELD} ms"
        );
    };
    refused.must_refuse(429, "queue_full");
    assert!(!waiting.is_empty(), "even the first was refused");
    let told = told_ms(&refused);
    assert!((3000..30_000).contains(&told), "{told} ms told");
    waiting.into_iter().for_each(Stream::close);
    stays.close();
    gateway.settled();
}

#[test]
fn without_a_queue_full_is_full() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("max_streams = 1")
        .tenant("max_queued = 16")
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    gateway.answer(&chat()).must_refuse(429, "pool_slots_full");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    gateway.settled();
}

#[test]
fn a_queue_that_nobody_could_wait_in_is_no_config() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    for (lines, key) in [
        ("queue = { max_wait = \"0s\", max_len = 8 }", "max_wait"),
        ("queue = { max_wait = \"1s\", max_len = 0 }", "max_len"),
        ("max_streams = 0", "max_streams"),
    ] {
        let written = Gateway::builder()
            .backend(engine.addr())
            .pool(lines)
            .write();
        let args = ["-t", "-c", &written.file()];
        let ran = run_in(written.scratch.path(), &args);
        assert_eq!(ran.code, 64, "{lines}: {}", ran.all());
        assert!(ran.all().contains(key), "{lines}: {}", ran.all());
    }
}

#[test]
fn a_full_line_is_told_in_every_apis_words() {
    dialect::each(|dialect| {
        let turns = Turns::default();
        let engine = turns.engine();
        let gateway = dialect::builder(&engine, ONE_SLOT)
            .tenant("max_queued = 0")
            .start();
        let holder = match dialect {
            Dialect::Messages => dialect.ask(),
            _ => chat(),
        };
        let mut hold = turns.holds(&gateway, &holder.key(OTHER_KEY), "hold");
        for ask in [dialect.ask(), dialect.ask().without("stream")] {
            let refused = gateway.answer(&ask);
            assert_eq!(refused.status, 429, "{dialect:?}: {}", refused.text());
            let error = &refused.json()["error"];
            assert_eq!(error["code"], "queue_full", "{dialect:?}: {error}");
            assert_eq!(error["type"], "rate_limit_error", "{dialect:?}: {error}");
            assert!(told_ms(&refused) >= 1, "{dialect:?}: {:?}", refused.headers);
        }
        turns.let_go();
        hold.rest();
        gateway.settled();
        assert_eq!(turns.order(), ["hold"], "{dialect:?}");
    });
}
