//! What an engine that notices at once still makes for a client that has left.

use crate::claim::{Claim, Reading};
use crate::ground::{Ground, long_chat};
use crate::median::median;
use crate::support::client::Stream;
use crate::support::sim::Sim;
use crate::support::wait;

/// The token at which a client leaves.
const TOKEN: usize = 20;

/// Clients one after another, so that each one's tokens can be told.
const CLIENTS: usize = 10;

const MADE: Claim = Claim::at_most("tokens still made for a client that left", "tokens", 2.0);

pub fn measure(ground: &Ground) -> Vec<Reading> {
    let made = |addr: &str| median((0..CLIENTS).map(|_| made_after_leaving(&ground.sim, addr)));
    let (direct, gateway) = (made(ground.sim.addr()), made(ground.gateway.addr()));
    vec![MADE.reads(gateway, &[("without a proxy", direct)])]
}

/// Tokens made beyond those the client had when it left.
fn made_after_leaving(sim: &Sim, addr: &str) -> f64 {
    let before = sim.made();
    let mut stream = Stream::send(addr, &long_chat());
    (0..TOKEN).for_each(|n| {
        assert!(
            stream.content().is_some(),
            "the stream ended at token {n}: {stream:?}"
        )
    });
    stream.close();
    wait::until_true("the simulator to be idle", || sim.running() == 0.0);
    sim.made() - before - TOKEN as f64
}
