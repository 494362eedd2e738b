//! Execution slots: held to the last byte or the abort, never lent twice, never lost.

use crate::support::ask::{Ask, chat};
use crate::support::engine::{Engine, Seen};
use crate::support::gateway::Gateway;
use crate::support::script::{Gauge, holding, token, tokens};
use crate::support::sim::Sim;
use crate::support::wait::{self, ms, seconds};
use crate::support::{OTHER_KEY, events};
use serde_json::Value;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

const STORY_TOKENS: usize = 20;

/// The first stream lingers at token 10, so that a slow machine does not tell another story.
fn story_engine() -> Engine {
    let plain = tokens(STORY_TOKENS, ms(15));
    Engine::scripted(move |call| {
        if call.seen.number > 0 {
            return plain(call);
        }
        call.head()?;
        for n in 0..STORY_TOKENS {
            call.pause(if n == 10 { seconds(10) } else { ms(15) })?;
            call.delta(&token(n))?;
        }
        call.done()
    })
}

#[test]
fn the_story_of_one_slot() {
    let engine = story_engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("max_streams = 1")
        .start();
    let mut first = gateway.chat("story-1");
    (0..3).for_each(|n| first.says(&token(n)));
    gateway
        .answer(&chat().id("story-2"))
        .must_refuse(429, "tenant_slots_full");
    gateway
        .answer(&chat().id("story-1"))
        .must_refuse(409, "request_running");

    let asked = Instant::now();
    let cancel = gateway.cancel("story-1");
    assert_eq!(cancel.status, 202, "{}", cancel.text());
    assert_eq!(cancel.json()["request_id"], "story-1");
    let took = engine.call(0).closed().saturating_duration_since(asked);
    assert!(took < seconds(1), "the upstream was let go after {took:?}");
    assert_eq!(events::final_error(&first.rest())["code"], "cancelled");
    gateway.settled();

    gateway
        .answer(&chat().id("story-1"))
        .must_refuse(409, "request_already_shown");
    let again = gateway.chat("story-3").rest();
    assert_eq!(events::contents(&again).len(), STORY_TOKENS);
    assert!(events::is_done(&again));
    assert_eq!(engine.calls().len(), 2, "a refused request ran");

    let (cut, whole) = (gateway.ended("story-1"), gateway.ended("story-3"));
    cut_record_is_right(&cut, engine.addr(), &engine.call(0));
    whole_record_is_right(&whole);
    let charged = gateway.metric("streamgate_units_total", &[("kind", "charged")]);
    assert_eq!(
        charged,
        number(&cut, "charged_units") + number(&whole, "charged_units")
    );
}

fn cut_record_is_right(record: &Value, backend: &str, call: &Seen) {
    assert_eq!(record["state"], "CANCELLED", "{record}");
    assert_eq!(record["ended_by"], "cancel_api", "{record}");
    assert_eq!(record["upstream_end"], "aborted", "{record}");
    assert_eq!(record["usage_source"], "counted", "{record}");
    for (member, value) in [
        ("tenant", "acme"),
        ("api", "chat"),
        ("model", "m"),
        ("pool", "p"),
        ("backend", backend),
    ] {
        assert_eq!(record[member], value, "{member}: {record}");
    }
    let (generated, delivered) = (
        number(record, "generated_units"),
        number(record, "delivered_units"),
    );
    assert!(
        generated >= delivered && delivered >= 3.0,
        "generated {generated}, delivered {delivered}"
    );
    assert!(
        generated <= call.fate().made as f64,
        "generated {generated} of {} made",
        call.fate().made
    );
    let (input, charged) = (
        number(record, "input_units"),
        number(record, "charged_units"),
    );
    assert!(
        input >= 3.0,
        "eleven bytes of prompt are at least three units: {record}"
    );
    assert_eq!(number(record, "reserved_units"), input + 100.0, "{record}");
    assert_eq!(
        charged,
        input + generated,
        "charged for what was made: {record}"
    );
    times_are_in_order(record);
}

fn whole_record_is_right(record: &Value) {
    assert_eq!(record["state"], "COMPLETED", "{record}");
    assert_eq!(record["ended_by"], "upstream", "{record}");
    assert_eq!(record["generated_units"], STORY_TOKENS, "{record}");
    assert_eq!(record["delivered_units"], STORY_TOKENS, "{record}");
    assert_eq!(
        record["attempts"].as_array().map(Vec::len),
        Some(1),
        "{record}"
    );
    assert_eq!(record["attempts"][0]["outcome"], "ok", "{record}");
    times_are_in_order(record);
}

/// RFC 3339 with microseconds, in the order of a life.
fn times_are_in_order(record: &Value) {
    let of = |name: &str| {
        record[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: {record}"))
            .to_owned()
    };
    let times = ["admitted_at", "started_at", "first_output_at", "ended_at"].map(of);
    assert!(times.is_sorted(), "{times:?}");
    for time in times
        .iter()
        .chain(&[of("released_at"), of("upstream_ended_at")])
    {
        let fraction = time.split('.').nth(1).unwrap_or_default();
        let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
        assert!(digits == 6 && time.as_bytes()[10] == b'T', "{time}");
    }
}

fn number(record: &Value, member: &str) -> f64 {
    record[member]
        .as_f64()
        .unwrap_or_else(|| panic!("{member} is no number: {record}"))
}

#[test]
fn a_full_pool_without_a_queue_refuses_at_once() {
    let engine = Engine::scripted(holding(1));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("max_streams = 1")
        .start();
    let mut stream = gateway.chat("full-1");
    stream.says("t0 ");
    assert_eq!(gateway.metric("streamgate_slots", &[("pool", "p")]), 1.0);
    assert_eq!(
        gateway.metric("streamgate_slots_max", &[("pool", "p")]),
        1.0
    );
    gateway
        .answer(&chat().id("full-2").key(OTHER_KEY))
        .must_refuse(429, "pool_slots_full");
    stream.close();
    gateway.settled();
    let mut next = gateway.send(&chat().id("full-3").key(OTHER_KEY));
    next.says("t0 ");
}

#[test]
fn a_slot_is_held_until_the_last_byte_and_not_only_until_the_headers() {
    let engine = Engine::scripted(|call| {
        call.head_with(
            200,
            &[
                ("Content-Type", "application/json"),
                ("Content-Length", "1000"),
            ],
        )?;
        call.raw(b"{\"half\": ")?;
        call.hold()
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("max_streams = 1")
        .start();
    let stream = gateway.send(&chat().without("stream").id("half-1"));
    engine.held(0);
    gateway.reaches("half-1", "STREAMING");
    gateway
        .answer(&chat())
        .must_refuse(429, "tenant_slots_full");
    stream.close();
    gateway.settled();
}

/// What became of each request of a race.
#[derive(Debug, Default, PartialEq)]
struct Race {
    done: usize,
    refused: usize,
    other: Vec<String>,
}

/// Lets 200 clients go at once.
fn race(gateway: &Gateway, ask: &Ask, refusal: &str) -> Race {
    const CLIENTS: usize = 200;
    let barrier = Barrier::new(CLIENTS);
    let run = |n: usize| {
        barrier.wait();
        let answer = gateway.answer(&ask.clone().id(&format!("race-{n}")));
        let done = answer.status == 200 && events::is_done(&answer.body);
        let refused = answer.status == 429 && answer.error()["code"] == refusal;
        (done, refused, answer.text())
    };
    let mut race = Race::default();
    std::thread::scope(|scope| {
        let run = &run;
        let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(move || run(n))).collect();
        for client in clients {
            match client.join().unwrap() {
                (true, _, _) => race.done += 1,
                (_, true, _) => race.refused += 1,
                (_, _, text) => race.other.push(text),
            }
        }
    });
    assert_eq!(race.other, [] as [String; 0], "{race:?}");
    assert!(race.done >= 10, "fewer than ten ran: {race:?}");
    race
}

#[test]
fn two_hundred_requests_race_for_ten_slots_of_a_tenant() {
    let gauge = Gauge::default();
    let engine = Engine::scripted({
        let gauge = gauge.clone();
        move |call| {
            let inside = gauge.enter();
            call.head()?;
            for n in 0..5 {
                call.delta(&token(n))?;
                call.pause(ms(20))?;
            }
            if call.member("user") == "hold" {
                call.hold()?;
            }
            // before the end is written: nobody can know of it sooner
            drop(inside);
            call.done()
        }
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .threads(0)
        .tenant("max_streams = 10")
        .start();
    let race = race(&gateway, &chat(), "tenant_slots_full");
    assert!(
        gauge.peak() <= 10,
        "{} upstream at once, of ten slots",
        gauge.peak()
    );
    gateway.settled();
    let completed = gateway.metric("streamgate_requests_total", &[("state", "COMPLETED")]);
    assert_eq!(completed, race.done as f64);
    assert_eq!(engine.calls().len(), race.done);

    // none leaked: all ten can be had again, and no eleventh
    let mut ten: Vec<_> = (0..10)
        .map(|_| gateway.send(&chat().set("user", "hold")))
        .collect();
    ten.iter_mut().for_each(|stream| stream.says("t0 "));
    gateway
        .answer(&chat().set("user", "hold"))
        .must_refuse(429, "tenant_slots_full");
    drop(ten);
    gateway.settled();
}

#[test]
fn two_hundred_requests_race_for_ten_slots_and_the_simulator_never_counts_more() {
    let sim = Sim::start();
    let gateway = Gateway::builder()
        .backend(sim.addr())
        .pool("max_streams = 10")
        .threads(0)
        .start();
    let over = AtomicBool::new(false);
    let (race, peak) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peak: f64 = 0.0;
            while !over.load(Ordering::Relaxed) {
                peak = peak.max(sim.running());
            }
            peak
        });
        let race = race(&gateway, &chat().set("max_tokens", 20), "pool_slots_full");
        over.store(true, Ordering::Relaxed);
        (race, watcher.join().unwrap())
    });
    assert!(
        (1.0..=10.0).contains(&peak),
        "the simulator counted {peak} at once, of ten slots"
    );
    gateway.settled();
    wait::until_true("the simulator to be idle", || sim.running() == 0.0);
    assert_eq!(sim.made(), 20.0 * race.done as f64);
    assert_eq!(sim.metric("vllm:request_success_total"), race.done as f64);
    assert_eq!(gateway.metric("streamgate_units_reserved", &[]), 0.0);
}
