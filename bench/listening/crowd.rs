//! Clients that read nothing, many of them: what each costs in memory, and what they do to those who read.

use crate::engine::{self, EVENTS};
use crate::relay::{self, Relay};
use crate::row::{Bar, Row, percentile};
use crate::support::client::Stream;
use crate::support::engine::Engine;
use crate::support::wait::{self, ms};
use std::time::{Duration, Instant};

/// Clients that read nothing.
const SLOW: usize = 500;

/// Clients that read, each with an event every 20 ms.
const HEALTHY: usize = 20;

/// How much later events may come where the others are there.
const TIMES: f64 = 1.5;

/// How long the engine must have got rid of nothing more.
const STILL: Duration = ms(400);

/// What one relay showed.
struct Shown {
    kib_each: f64,
    without: f64,
    with: f64,
}

pub fn measure() -> Vec<Row> {
    // one after the other: each has the machine for itself
    let [ours, theirs] = [Relay::streamgate, Relay::nginx].map(|start| {
        let engine = engine::start();
        show(&engine, &start(engine.addr()))
    });
    let slowed = |name: &str, shown: &Shown, bar| Row {
        name: format!("event at the engine → at its client, p99 beside {SLOW} slow readers{name}"),
        unit: "ms",
        ours: shown.with,
        than: "without them",
        beside: shown.without,
        bar,
    };
    vec![
        Row {
            name: format!("resident memory for each of {SLOW} slow readers"),
            unit: "KiB",
            ours: ours.kib_each,
            than: "nginx",
            beside: theirs.kib_each,
            bar: Bar::None,
        },
        slowed("", &ours, Bar::Times(TIMES)),
        slowed(", nginx", &theirs, Bar::None),
    ]
}

fn show(engine: &Engine, relay: &Relay) -> Shown {
    let without = latency(relay);
    let before = relay.resident_kib();
    let crowd = crowd(engine, relay);
    let kib_each = (relay.resident_kib() - before) / SLOW as f64;
    let with = latency(relay);
    crowd.into_iter().for_each(Stream::reset);
    Shown {
        kib_each,
        without,
        with,
    }
}

/// Clients that ask for a flood and read nothing of it, once nothing moves any more.
fn crowd(engine: &Engine, relay: &Relay) -> Vec<Stream> {
    let before = engine.calls().len();
    let crowd: Vec<Stream> = (0..SLOW)
        .map(|_| relay.send(&relay::asks("flood")))
        .collect();
    let mut last = (0, Instant::now());
    wait::within(wait::seconds(30), "the slow readers to stand still", || {
        let calls = engine.calls();
        let made: Vec<usize> = calls[before..]
            .iter()
            .map(|call| call.fate().made)
            .collect();
        let sum = made.iter().sum();
        if sum != last.0 {
            last = (sum, Instant::now());
        }
        let all = made.len() == SLOW && made.iter().all(|made| *made > 0);
        match all && last.1.elapsed() >= STILL {
            true => Ok(()),
            false => Err(format!(
                "{} of {SLOW} begun, {sum} events taken",
                made.len()
            )),
        }
    });
    crowd
}

/// The p99 over all events of all healthy streams, in milliseconds.
fn latency(relay: &Relay) -> f64 {
    let times: Vec<f64> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..HEALTHY)
            .map(|_| scope.spawn(|| one_stream(relay)))
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().expect("a healthy stream is measured"))
            .collect()
    });
    percentile(&times, 0.99)
}

fn one_stream(relay: &Relay) -> Vec<f64> {
    let mut stream = relay.send(&relay::asks("stamped"));
    let mut times = Vec::with_capacity(EVENTS);
    while let Some(stamp) = stream.content() {
        let sent: u128 = stamp.parse().unwrap_or_else(|e| panic!("{e}: {stamp}"));
        times.push(engine::now().saturating_sub(sent) as f64 / 1e3);
    }
    assert_eq!(
        times.len(),
        EVENTS,
        "{}: not every event came",
        relay.name()
    );
    times
}
