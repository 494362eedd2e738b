//! What admission costs a request, in this process: `cargo bench --bench admission`.
//!
//! Admission here is all that stands between the body of a request and the ledger: the body's parse, fingerprint and
//! edits, the key's hash and its look-up, the request rate, the id's claim, account and unit rate, the tenant's and the
//! pool's slot by way of the queue, and what gives everything back. Each tenant is as likely as any other, so that with many of
//! them nearly every request meets one that no cache holds. The numbers of tenants take turns within each round; the
//! medians say whether the cost stays flat. The steps that know the tenant are measured alone, too: there, memory is
//! nearly all there is. Writes `bench/admission.json` in the target folder. A missed bar is told, not an error: this is
//! no timed test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement that cannot be made ends the program, and it keeps its own clock"
)]

mod gate;
#[path = "../claims/median.rs"]
mod median;
mod report;

#[allow(dead_code, reason = "the other benchmark uses the rest")]
#[path = "../claims/machine.rs"]
mod machine;

use gate::{Admit, Gate};

const TENANTS: [usize; 3] = [10, 1000, 100_000];
const ROUNDS: usize = 7;

fn main() {
    let mut gates: Vec<Gate> = TENANTS.iter().map(|n| Gate::new(*n)).collect();
    Gate::measure(&mut gates, Gate::alone);
    let mut rounds = |admit: Admit| -> Vec<Vec<f64>> {
        let round = |_| Gate::measure(&mut gates, admit);
        (0..ROUNDS).map(round).collect()
    };
    let (whole, alone) = (rounds(Gate::whole), rounds(Gate::alone));
    report::print(&TENANTS, &whole, &alone);
    let path = report::write(&TENANTS, &whole, &alone);
    println!("\nwritten to {}", path.display());
}
