//! When tokens arrive: the first one, and the longest gap between two.

use crate::claim::{Claim, Reading, ms};
use crate::ground::{Ground, TOKENS, long_chat};
use crate::median::median;
use crate::support::client::Stream;
use std::time::{Duration, Instant};

/// Streams side by side in one measurement.
const STREAMS: usize = 10;

const FIRST: Claim = Claim::at_most(
    "first token at the client, later than without a proxy",
    "ms",
    5.0,
);
const GAP: Claim = Claim::at_most(
    "longest gap between tokens, longer than without a proxy",
    "ms",
    10.0,
);
const WHOLE: Claim = Claim::caught(
    "a relay that buffers all: first token later than without",
    2500.0,
);
const LUMPS: Claim = Claim::caught(
    "a relay that never flushes: longest gap between tokens",
    100.0,
);

/// Medians over the streams of one measurement, in milliseconds.
struct Pace {
    first: f64,
    gap: f64,
}

pub fn measure(ground: &Ground) -> Vec<Reading> {
    let direct = pace_of(ground.sim.addr());
    let gateway = pace_of(ground.gateway.addr());
    let whole = pace_of(&ground.buffers_all);
    let lumps = pace_of(&ground.never_flushes);
    vec![
        FIRST.over_direct("through the gateway", gateway.first, direct.first),
        GAP.over_direct("through the gateway", gateway.gap, direct.gap),
        WHOLE.over_direct("through the relay", whole.first, direct.first),
        LUMPS.reads(lumps.gap, &[("without a proxy", direct.gap)]),
    ]
}

fn pace_of(addr: &str) -> Pace {
    let streams: Vec<(Duration, Duration)> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..STREAMS)
            .map(|_| scope.spawn(|| one_stream(addr)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().expect("a stream is measured"))
            .collect()
    });
    Pace {
        first: median(streams.iter().map(|(first, _)| ms(*first))),
        gap: median(streams.iter().map(|(_, gap)| ms(*gap))),
    }
}

/// The time to the first token, connecting included, and the longest gap after it.
fn one_stream(addr: &str) -> (Duration, Duration) {
    let start = Instant::now();
    let mut stream = Stream::send(addr, &long_chat());
    let mut arrivals = Vec::new();
    while stream.content().is_some() {
        arrivals.push(stream.read_at);
    }
    assert_eq!(arrivals.len(), TOKENS, "not every token came: {stream:?}");
    let gap = arrivals
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap_or_default();
    (arrivals[0] - start, gap)
}
