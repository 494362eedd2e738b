//! What reading the stream costs: `cargo bench --bench meter`.
//!
//! First the scanner and the meters alone, in this process: nanoseconds per event and gigabytes per second, the median
//! of several rounds. Then the whole relay, by the CPU time of the gateway's own process over a window in which 300
//! streams carry 50 events a second each: in one gateway as event streams, and at the same time in another with the same
//! bytes, paced and framed the same, as the body of an upstream's refusal. Those pass through the same pump and the same
//! writes, each at once, but no event is looked for, metered or counted in them, so the two differ by the meter alone.
//! Every round is printed, and the median of the rounds' ratios says whether the meter keeps to its tenth. Where
//! `nginx` is on the path it runs beside a gateway in the same way, with `proxy_buffering off`. Writes
//! `bench/meter.json` in the target folder. A missed bar is told, not an error: this is no timed test.
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
mod nginx;
mod process;
mod pure;
mod relay;
mod report;
mod samples;

#[allow(dead_code, reason = "the other benchmark uses the rest")]
#[path = "../claims/machine.rs"]
mod machine;
#[path = "../claims/median.rs"]
mod median;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/support/mod.rs"]
mod support;

fn main() {
    let alone = pure::measure();
    report::print_alone(&alone);
    let relayed = relay::measure();
    report::print_relayed(&relayed);
    let path = report::write(&alone, &relayed);
    println!("\nwritten to {}", path.display());
}
