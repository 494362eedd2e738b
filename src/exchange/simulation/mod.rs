//! A seeded simulation of admission, queue, accounts and exchanges, on a clock that stands still until it is moved.
//!
//! `world` holds the real parts of a gateway (exchange, registry, queue, slots, accounts, rates) and an agenda of what
//! happens when; `life` is one request with its plan of tries, output, faults and its end; `book` is what is right,
//! counted a second time in the plainest way; `invariants` compares the two after every step. `share` looks at what
//! tenants get of a pool that never has enough.
//!
//! A failure names its seed: `STREAMGATE_SEED=7 cargo test simulation` runs that seed alone, step by step the same.

mod book;
mod ends;
mod ground;
mod invariants;
mod life;
mod random;
mod share;
mod world;

pub(super) use random::Random;

use ends::Ends;
use world::World;

const SEEDS: u64 = 10;
const LIVES: usize = 10_000;

#[test]
fn a_hundred_thousand_lives_keep_every_invariant() {
    let mut ends = Ends::default();
    if let Some(seed) = option_env!("STREAMGATE_SEED") {
        ends.add(World::new(seed.parse().unwrap()).live(LIVES));
        return;
    }
    for seed in 1..=SEEDS {
        ends.add(World::new(seed).live(LIVES));
    }
    ends.assert_all_kinds_were_seen();
}

#[test]
fn a_seed_replays_the_same_lives() {
    let once = World::new(42).live(2000);
    assert_eq!(World::new(42).live(2000), once);
    assert_ne!(World::new(43).live(2000), once);
}
