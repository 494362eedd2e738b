//! Whoever leaves, is cancelled or runs out of time at the very moment its turn comes takes no slot with it.
//!
//! A slot that leaked would never come back: each round needs the one slot of the round before.

use crate::support::ask::{Ask, chat};
use crate::support::client::Stream;
use crate::support::dialect::Dialect;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::http2::Http2;
use crate::support::random::Random;
use crate::support::script::tokens;
use crate::support::turns::{ONE_SLOT, Turns, is_queued, lines_up, must_be_served, named};
use crate::support::wait::ms;
use crate::support::{KEY, OTHER_KEY};
use serde_json::Value;
use std::sync::Barrier;
use std::time::Duration;

const BUDGET: &str = "budget = { units = 100000000, period = \"total\" }";

/// A moment in which a slot that comes free reaches its next owner, or not yet, or long ago.
fn moment(random: &mut Random) -> Duration {
    Duration::from_micros(random.below(400) as u64)
}

/// What was charged in all is what the records say, and nothing is held.
#[track_caller]
fn must_be_even(gateway: &Gateway, ids: &[String]) {
    gateway.settled();
    let charged: f64 = ids
        .iter()
        .map(|id| gateway.answer(&Ask::get(format!("/generations/{id}"))))
        // one that left before it was read has no record
        .filter(|answer| answer.status == 200)
        .map(|answer| must_have_ended(&answer.json()))
        .sum();
    let remaining = gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]);
    assert_eq!(remaining, 100_000_000.0 - charged);
    let ended = gateway.metric("streamgate_queue_length", &[]);
    assert_eq!(ended, 0.0);
}

/// A record that has ended, and was charged only where it ran.
#[track_caller]
fn must_have_ended(record: &Value) -> f64 {
    assert!(record["ended_at"].is_string(), "{record}");
    let charged = record["charged_units"].as_f64().unwrap();
    if record["started_at"].is_null() {
        assert_eq!(charged, 0.0, "{record}");
        assert_eq!(record["attempts"], serde_json::json!([]), "{record}");
    }
    charged
}

#[test]
fn a_client_that_goes_as_its_turn_comes() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .threads(0)
        .pool(ONE_SLOT)
        .tenant(BUDGET)
        .start();
    let mut random = Random::new(5);
    let mut ids = Vec::new();
    for round in 0..240 {
        let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), &format!("hold-{round}"));
        let id = format!("goes-{round}");
        let leaves: Box<dyn FnOnce() + Send> = if round % 3 == 2 {
            let connection = Http2::connect(gateway.addr());
            let stream = connection.send(&named(&chat(), &id));
            is_queued(&gateway, KEY, &id);
            Box::new(move || {
                stream.reset();
                connection.close();
            })
        } else {
            let stream = lines_up(&gateway, &chat(), &id);
            match round % 3 {
                0 => Box::new(|| stream.close()),
                _ => Box::new(|| stream.reset()),
            }
        };
        let (before_go, before_leave) = (moment(&mut random), moment(&mut random));
        let together = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                together.wait();
                std::thread::sleep(before_leave);
                leaves();
            });
            together.wait();
            std::thread::sleep(before_go);
            turns.let_go();
        });
        must_be_served(&mut hold, Dialect::Chat);
        ids.push(id);
    }
    must_be_even(&gateway, &ids);
}

#[test]
fn a_cancel_that_comes_as_its_turn_comes() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .threads(0)
        .pool(ONE_SLOT)
        .tenant(BUDGET)
        .start();
    let mut random = Random::new(6);
    let mut ids = Vec::new();
    let mut cut = 0;
    for round in 0..150 {
        let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), &format!("hold-{round}"));
        let id = format!("cut-{round}");
        let mut stream = lines_up(&gateway, &chat(), &id);
        let (before_go, before_cancel) = (moment(&mut random), moment(&mut random));
        let together = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                together.wait();
                std::thread::sleep(before_cancel);
                let status = gateway.cancel(&id).status;
                assert!(matches!(status, 200 | 202), "{id}: {status}");
            });
            together.wait();
            std::thread::sleep(before_go);
            turns.let_go();
        });
        must_be_served(&mut hold, Dialect::Chat);
        let (status, body) = (stream.status(), stream.rest());
        let record = gateway.ended(&id);
        match record["state"].as_str() {
            Some("COMPLETED") => assert!(events::is_done(&body), "{record}"),
            Some("CANCELLED") if status == 200 => {
                assert_eq!(Dialect::Chat.final_error(&body), "cancelled", "{record}");
            }
            Some("CANCELLED") => assert_eq!(status, 499, "{record}"),
            _ => panic!("neither completed nor cancelled: {record}"),
        }
        cut += usize::from(record["state"] == "CANCELLED");
        ids.push(id);
    }
    assert!(cut > 0, "no cancel came in time");
    must_be_even(&gateway, &ids);
}

#[test]
fn a_time_that_is_over_as_its_turn_comes() {
    const WAIT: u64 = 40;
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .threads(0)
        .pool(&format!(
            "max_streams = 2\nqueue = {{ max_wait = \"{WAIT}ms\", max_len = 8 }}"
        ))
        .tenant(BUDGET)
        .start();
    let mut random = Random::new(7);
    let (mut ids, mut served, mut late) = (Vec::new(), 0, 0);
    for round in 0..100 {
        // two slots, so that by what they are held for a wait is not hopeless from the start
        let mut holds = ["a", "b"].map(|which| {
            let id = format!("hold-{round}-{which}");
            turns.holds(&gateway, &chat().key(OTHER_KEY), &id)
        });
        let id = format!("late-{round}");
        let stream = gateway.send(&named(&chat(), &id));
        // about when its time is over
        std::thread::sleep(ms(WAIT - 2) + moment(&mut random) * 10);
        turns.let_go();
        let answer = stream.answer();
        turns.let_go();
        holds
            .iter_mut()
            .for_each(|hold| must_be_served(hold, Dialect::Chat));
        if answer.status == 200 {
            assert!(events::is_done(&answer.body), "{}", answer.text());
            served += 1;
        } else if answer.error()["code"] == "queue_timeout" {
            answer.must_refuse(429, "queue_timeout");
            late += 1;
        } else {
            // a slow machine has held the slots for so long that a wait is hopeless
            answer.must_refuse(429, "queue_full");
        }
        ids.push(id);
    }
    assert!(
        served > 0 && late > 0,
        "{served} served, {late} late: not about when the time is over"
    );
    must_be_even(&gateway, &ids);
}

#[test]
fn a_crowd_that_waits_leaves_and_cancels_by_chance() {
    const CLIENTS: usize = 12;
    const EACH: usize = 60;
    let engine = Engine::scripted(tokens(2, ms(1)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .threads(0)
        .pool("max_streams = 2\nqueue = { max_wait = \"10s\", max_len = 64 }")
        .tenant(&format!("max_streams = 1\n{BUDGET}"))
        .start();
    let plays = |client: usize| {
        let mut random = Random::new(100 + client as u64);
        let play = |n: usize, random: &mut Random| {
            let id = format!("crowd-{client}-{n}");
            let mut stream = gateway.chat(&id);
            match random.below(4) {
                0 => assert!(events::is_done(&stream.rest()), "{id}: {stream:?}"),
                1 => {
                    std::thread::sleep(Duration::from_micros(random.below(20_000) as u64));
                    stream.reset();
                }
                2 => {
                    std::thread::sleep(Duration::from_micros(random.below(20_000) as u64));
                    stream.close();
                }
                _ => {
                    std::thread::sleep(Duration::from_micros(random.below(20_000) as u64));
                    gateway.cancel(&id);
                    stream.rest();
                }
            }
            id
        };
        let played: Vec<String> = (0..EACH).map(|n| play(n, &mut random)).collect();
        played
    };
    let ids: Vec<String> = std::thread::scope(|scope| {
        let plays = &plays;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || plays(client)))
            .collect();
        clients
            .into_iter()
            .flat_map(|c| c.join().unwrap())
            .collect()
    });
    must_be_even(&gateway, &ids);
    let mut last: Stream = gateway.chat("last");
    assert!(events::is_done(&last.rest()));
}
