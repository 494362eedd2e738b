//! The claims of the main job, measured: `cargo bench --bench claims`.
//!
//! Five rounds; in each, the same measurements without a proxy, through the gateway, and through relays that are broken
//! on purpose. The engine is `streamgate sim` in its own process (20 ms and 1 ms per word of a prompt of 200 words, then
//! 300 tokens 10 ms apart), or, where the moment of a close is what counts, a scripted one in this process that keeps
//! the same time and sees its socket close. Prints every round and whether the medians hold the bars, and writes
//! `bench/claims.json` in the target folder. A missed bar is told, not an error: this is no timed test.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::too_many_lines,
    clippy::type_complexity,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tables of cases are long, look at the few cases they are about, and hold small numbers"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a measurement that cannot be made ends the program, and it keeps its own clock"
)]

mod cancel;
mod claim;
mod ground;
mod leave;
mod machine;
mod made;
mod median;
mod pace;
mod relays;
mod report;

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/support/mod.rs"]
mod support;

use claim::Reading;
use ground::Ground;

const ROUNDS: usize = 5;

fn main() {
    let ground = Ground::start();
    let rounds: Vec<Vec<Reading>> = (1..=ROUNDS).map(|round| measure(&ground, round)).collect();
    report::print(&rounds);
    let path = report::write(&rounds);
    println!("\nwritten to {}", path.display());
}

/// Everything once.
fn measure(ground: &Ground, round: usize) -> Vec<Reading> {
    println!("round {round} of {ROUNDS}");
    let mut readings = pace::measure(ground);
    readings.extend(leave::measure(ground));
    readings.extend(made::measure(ground));
    readings.extend(cancel::measure(ground));
    readings
}
