//! The rounds as a table for people and as JSON for programs.

use crate::gate::{GROUP, GROUPS};
use crate::machine::Machine;
use crate::median::median;
use serde_json::json;
use std::path::{Path, PathBuf};

const COMMAND: &str = "cargo bench --bench admission";
/// How much more than with the fewest tenants it may cost.
const BAR: f64 = 1.2;

/// Prints every round, and whether the medians stay flat.
pub fn print(tenants: &[usize], whole: &[Vec<f64>], alone: &[Vec<f64>]) {
    println!("{COMMAND}\non {}", Machine::this());
    println!(
        "µs per request, taken in and given back; each figure is the median of {GROUPS} groups of {GROUP} requests"
    );
    println!("\na chat of two thousand tokens, from its body on");
    print_rounds(tenants, whole);
    let ratio_whole = ratio(tenants, whole);
    let verdict = if ratio_whole <= BAR {
        "holds"
    } else {
        "MISSED"
    };
    println!("the most over the fewest: {ratio_whole:.2}, at most {BAR}: {verdict}");
    println!("\nof it, the steps that know the tenant: where there are many, none is in a cache");
    print_rounds(tenants, alone);
    println!("the most over the fewest: {:.2}", ratio(tenants, alone));
}

fn print_rounds(tenants: &[usize], rounds: &[Vec<f64>]) {
    let numbers: String = (1..=rounds.len())
        .map(|n| format!("{:>9}", format!("round {n}")))
        .collect();
    println!("{:>8}{numbers}{:>9}", "tenants", "median");
    for (at, n) in tenants.iter().enumerate() {
        let figures: String = column(rounds, at).map(|v| format!("{v:>9.2}")).collect();
        println!("{n:>8}{figures}{:>9.2}", median(column(rounds, at)));
    }
}

/// Writes the same as JSON into the target folder.
pub fn write(tenants: &[usize], whole: &[Vec<f64>], alone: &[Vec<f64>]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target folder");
    let folder = target.join("bench");
    std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let path = folder.join("admission.json");
    let doc = json!({
        "command": COMMAND,
        "machine": Machine::this().json(),
        "tenants": tenants,
        "whole": { "micros": whole, "ratio": ratio(tenants, whole), "bar": BAR },
        "alone": { "micros": alone, "ratio": ratio(tenants, alone) },
    });
    std::fs::write(&path, format!("{doc:#}\n"))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}

/// The dearest number of tenants over the fewest. A round's figures are made one after the other, so they have the
/// same neighbours on the machine.
fn ratio(tenants: &[usize], rounds: &[Vec<f64>]) -> f64 {
    let of = |at: usize| median(rounds.iter().map(move |r| r[at] / r[0]));
    (1..tenants.len()).map(of).fold(0.0, f64::max)
}

fn column(rounds: &[Vec<f64>], at: usize) -> impl Iterator<Item = f64> {
    rounds.iter().map(move |r| r[at])
}
