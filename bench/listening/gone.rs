//! Clients that go: how long until the engine's connection is closed.

use crate::engine;
use crate::relay::{self, Relay};
use crate::row::{Bar, Row, percentile};
use crate::support::ask::Ask;
use crate::support::engine::{Engine, Seen};
use crate::support::wait;
use std::time::Instant;

/// Clients of one phase in one round, through each relay; both take turns.
const CLIENTS: usize = 150;

/// Over nginx's own p99, in milliseconds.
const OVER: f64 = 1.0;

struct Phase {
    name: &'static str,
    user: &'static str,
    stream: bool,
    /// Events that are read before the client goes.
    events: usize,
}

const PHASES: [Phase; 4] = [
    Phase {
        name: "before the engine's headers",
        user: "says nothing",
        stream: true,
        events: 0,
    },
    Phase {
        name: "before the first event",
        user: "says its head",
        stream: true,
        events: 0,
    },
    Phase {
        name: "in mid-stream",
        user: "goes on",
        stream: true,
        events: 3,
    },
    Phase {
        name: "of a request without a stream",
        user: "says nothing",
        stream: false,
        events: 0,
    },
];

pub fn measure() -> Vec<Row> {
    let engine = engine::start();
    let relays = [
        Relay::streamgate(engine.addr()),
        Relay::nginx(engine.addr()),
    ];
    PHASES
        .iter()
        .flat_map(|phase| rows(&engine, &relays, phase))
        .collect()
}

fn rows(engine: &Engine, relays: &[Relay; 2], phase: &Phase) -> Vec<Row> {
    let mut times = [Vec::new(), Vec::new()];
    for n in 0..CLIENTS {
        for (relay, times) in relays.iter().zip(&mut times) {
            times.push(one(engine, relay, phase, n % 2 == 0));
        }
    }
    let row = |share: f64, what: &str, bar| Row {
        name: format!("client gone {} → engine let go, {what}", phase.name),
        unit: "ms",
        ours: percentile(&times[0], share),
        than: "nginx",
        beside: percentile(&times[1], share),
        bar,
    };
    vec![
        row(0.50, "p50", Bar::None),
        row(0.99, "p99", Bar::OverNginx(OVER)),
    ]
}

fn ask(phase: &Phase) -> Ask {
    let ask = relay::asks(phase.user);
    if phase.stream {
        ask
    } else {
        ask.without("stream")
    }
}

/// One client that goes; milliseconds.
fn one(engine: &Engine, relay: &Relay, phase: &Phase, by_fin: bool) -> f64 {
    let before = engine.calls().len();
    let mut stream = relay.send(&ask(phase));
    for n in 0..phase.events {
        let got = stream.content();
        assert!(
            got.is_some(),
            "{}: the stream ended at event {n}",
            relay.name()
        );
    }
    let call = arrives(engine, before, phase);
    let left = Instant::now();
    match by_fin {
        true => stream.close(),
        false => stream.reset(),
    }
    let closed = call.closed_within(wait::PATIENCE);
    closed.saturating_duration_since(left).as_secs_f64() * 1e3
}

fn arrives(engine: &Engine, number: usize, phase: &Phase) -> Seen {
    if phase.events > 0 {
        return engine.call(number);
    }
    engine.held(number)
}
