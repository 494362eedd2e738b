//! What the ledger costs, and what a large one costs: `cargo bench --bench ledger`.
//!
//! First what it adds to an admission, which waits for the entry to be durable: one request at a time, then as many
//! entries a second as it takes from many at once; on SQLite and PostgreSQL, with each durability, against no ledger.
//! Turns alternate and every one is printed. Then a ledger of a million entries (`-- --entries 10000000`: of ten, which
//! take 10 to 20 GB of disk for a while) is made by SQL in each database, with a crash in it to be found, and what a
//! start and the commands take is measured. PostgreSQL is the tests' own server, on loopback. Writes
//! `bench/ledger.json` in the target folder. A missed bar is told, not an error: this is no timed test.
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

mod admission;
mod bounds;
mod fill;
mod large;
mod report;
mod sample;

#[allow(dead_code, reason = "the other benchmark uses the rest")]
#[path = "../claims/machine.rs"]
mod machine;
#[path = "../claims/median.rs"]
mod median;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../../tests/support/mod.rs"]
mod support;

const ENTRIES: u64 = 1_000_000;

fn main() {
    let entries = entries();
    let turns = admission::measure();
    report::print_turns(&turns);
    let large = large::measure(entries, report::print_large);
    let path = report::write(&turns, &large);
    println!("\nwritten to {}", path.display());
}

/// How many entries the large ledgers have. Cargo gives words of its own too.
fn entries() -> u64 {
    let words: Vec<String> = std::env::args().collect();
    let given = words.iter().position(|word| word == "--entries");
    let given = given.and_then(|at| words.get(at + 1));
    given.map_or(ENTRIES, |n| {
        n.parse().unwrap_or_else(|e| panic!("--entries {n}: {e}"))
    })
}
