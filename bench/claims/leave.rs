//! Clients that leave: how long until the engine is let go, as the engine sees it.

use crate::claim::{Claim, Reading, ms};
use crate::ground::{Ground, scripted_chat};
use crate::median::median;
use crate::support::ask::Ask;
use crate::support::client::Stream;
use crate::support::engine::{Engine, Seen};
use crate::support::wait;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The token at which a client in mid-stream leaves.
const TOKEN: usize = 100;

/// Clients that leave in one measurement: side by side in mid-stream, one after another before the first token.
const CLIENTS: usize = 10;

/// Between two clients that start side by side, so that they do not leave in the same moment.
const STAGGER: Duration = wait::ms(7);

const MID_STREAM: Claim = Claim::at_most("client left at token 100 → gateway lets go", "ms", 5.0);
const BEFORE_HEAD: Claim = Claim::at_most(
    "client left before the engine's headers → gateway lets go",
    "ms",
    5.0,
);
const BEFORE_FIRST: Claim = Claim::at_most(
    "client left before the first token → gateway lets go",
    "ms",
    5.0,
);
const NON_STREAM: Claim = Claim::at_most(
    "client left a non-stream request → gateway lets go",
    "ms",
    5.0,
);
const DEAF: Claim = Claim::caught(
    "a deaf relay, its client leaving at token 100: reads on",
    1500.0,
);

pub fn measure(ground: &Ground) -> Vec<Reading> {
    let (direct, gateway) = (ground.engine.addr(), ground.gateway.addr());
    let engine = &ground.engine;
    let mid_stream = |addr: &str| side_by_side(engine, addr);
    let early = |addr: &str, ask: Ask| one_by_one(engine, addr, &ask);
    let both = |claim: Claim, measure: &dyn Fn(&str) -> f64| {
        let (without, with) = (measure(direct), measure(gateway));
        claim.reads(with, &[("without a proxy", without)])
    };
    let deaf = mid_stream(&ground.deaf);
    vec![
        both(MID_STREAM, &mid_stream),
        both(BEFORE_HEAD, &|addr| {
            early(addr, scripted_chat("says nothing"))
        }),
        both(BEFORE_FIRST, &|addr| {
            early(addr, scripted_chat("says its head"))
        }),
        both(NON_STREAM, &|addr| {
            early(addr, scripted_chat("says nothing").without("stream"))
        }),
        DEAF.reads(deaf, &[]),
    ]
}

fn side_by_side(engine: &Engine, addr: &str) -> f64 {
    let times: Vec<f64> = std::thread::scope(|scope| {
        let client = |n: usize| {
            std::thread::sleep(STAGGER * u32::try_from(n).unwrap_or(0));
            leaves_at(engine, addr, &scripted_chat("paced"), TOKEN)
        };
        let clients: Vec<_> = (0..CLIENTS)
            .map(|n| scope.spawn(move || client(n)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a client that leaves is measured"))
            .collect()
    });
    median(times)
}

fn one_by_one(engine: &Engine, addr: &str, ask: &Ask) -> f64 {
    median((0..CLIENTS).map(|_| leaves_at(engine, addr, ask, 0)))
}

/// One client that leaves after some tokens; milliseconds until its script has ended.
fn leaves_at(engine: &Engine, addr: &str, ask: &Ask, tokens: usize) -> f64 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("leaves-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let mut stream = Stream::send(addr, &ask.clone().set("tag", name.as_str()));
    (0..tokens).for_each(|n| {
        assert!(
            stream.content().is_some(),
            "the stream ended at token {n}: {stream:?}"
        )
    });
    let call = call_of(engine, &name);
    if tokens == 0 {
        wait::until_true("the engine to hold", || call.fate().holds);
    }
    let left = Instant::now();
    stream.close();
    let ended = wait::until("the engine's script to end", || {
        call.fate().ended_at.ok_or_else(|| format!("{call:?}"))
    });
    ms(ended.saturating_duration_since(left))
}

/// The call with that name in its body, once it is here.
fn call_of(engine: &Engine, name: &str) -> Seen {
    wait::until(format!("{name} to reach the engine"), || {
        let calls = engine.calls();
        let found = calls.iter().rev().find(|call| call.json()["tag"] == name);
        found
            .cloned()
            .ok_or_else(|| format!("{} calls", calls.len()))
    })
}
