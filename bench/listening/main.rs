//! Who is still listening, against nginx: `cargo bench --bench listening`.
//!
//! Five rounds, streamgate and nginx (one worker each, `proxy_buffering off`) before the same scripted engine in this
//! process:
//! - a client goes, by FIN and by RST in turn: milliseconds until the engine sees its own connection closed, p50 and p99
//!   in each phase of a request;
//! - 500 clients that read nothing: resident memory per client;
//! - streams that are read, with and without those 500: milliseconds from an event's writing at the engine to its
//!   reading at the client, p99.
//!
//! Prints every round and whether the medians hold the bars, and writes `bench/listening.json` in the target folder. A
//! missed bar is told, not an error: this is no timed test. nginx is installed from the system's packages where it is
//! missing.
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

mod crowd;
mod engine;
mod gone;
mod install;
mod relay;
mod report;
mod row;

#[allow(dead_code, reason = "the other benchmark uses the rest")]
#[path = "../claims/machine.rs"]
mod machine;
#[allow(dead_code, reason = "the other benchmark uses the rest")]
#[path = "../meter/nginx.rs"]
mod nginx;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/support/mod.rs"]
mod support;

use row::Row;

const ROUNDS: usize = 5;

fn main() {
    if let Err(why) = install::nginx() {
        eprintln!("{why}");
        std::process::exit(1);
    }
    let rounds: Vec<Vec<Row>> = (1..=ROUNDS).map(measure).collect();
    report::print(&rounds);
    let path = report::write(&rounds);
    println!("\nwritten to {}", path.display());
}

/// Everything once, each on processes of its own.
fn measure(round: usize) -> Vec<Row> {
    println!("round {round} of {ROUNDS}");
    let mut rows = gone::measure();
    rows.extend(crowd::measure());
    rows
}
