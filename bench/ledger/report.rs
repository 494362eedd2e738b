//! Every turn as a table for people and as JSON for programs.

use crate::admission::{CROWD, KINDS, Kind, Turn};
use crate::large::Large;
use crate::machine::Machine;
use crate::median::median;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use streamgate::config::Durability;

const COMMAND: &str = "cargo bench --bench ledger";

/// Microseconds that a ledger with `process` may add to an admission.
const ADDED_MAX: f64 = 200.0;
/// What a start may wait for a large ledger, and a report of one.
const START_MAX: Duration = Duration::from_secs(2);
const REPORT_MAX: Duration = Duration::from_secs(5);

const NAME_WIDTH: usize = 46;

pub fn print_turns(turns: &[Turn]) {
    println!("\n{COMMAND}\non {}", Machine::this());
    print_table(turns, "µs an admission waits, p50, one at a time", |t| {
        t.alone_p50
    });
    print_table(turns, "the same, p99", |t| t.alone_p99);
    let many = format!("µs an admission waits, p50, {CROWD} at once");
    print_table(turns, &many, |t| t.crowd_p50);
    print_table(turns, "the same, p99", |t| t.crowd_p99);
    print_table(turns, "entries a second, opened and settled", |t| {
        t.per_second
    });
    println!("\nadded to the p50 of an admission with \"process\", at most {ADDED_MAX} µs");
    for kind in KINDS.into_iter().filter(|kind| has_bar(*kind)) {
        let added = added(turns, kind);
        println!(
            "{:<NAME_WIDTH$}{added:>10.0}  {}",
            kind.name(),
            verdict(added <= ADDED_MAX)
        );
    }
}

fn print_table(turns: &[Turn], what: &str, of: fn(&Turn) -> f64) {
    let rounds = turns.len() / KINDS.len();
    let numbers: String = (1..=rounds)
        .map(|n| format!("{:>10}", format!("round {n}")))
        .collect();
    println!("\n{what:<NAME_WIDTH$}{numbers}{:>10}", "median");
    for kind in KINDS {
        let values = values(turns, kind, of);
        let figures: String = values.iter().map(|v| format!("{v:>10.0}")).collect();
        println!(
            "{:<NAME_WIDTH$}{figures}{:>10.0}",
            kind.name(),
            median(&values)
        );
    }
}

pub fn print_large(ledger: &Large) {
    println!(
        "\n{} with {} entries, {:.1} GB, made in {:.0?}",
        ledger.store,
        ledger.entries,
        ledger.bytes as f64 / 1e9,
        ledger.filled
    );
    let [crash, usual] = ledger.starts;
    print_time("start, with a crash to be found", crash, Some(START_MAX));
    print_time("start", usual, Some(START_MAX));
    for (words, took) in &ledger.commands {
        let bar = words.starts_with("report").then_some(REPORT_MAX);
        print_time(&format!("ledger {words}"), *took, bar);
    }
    println!(
        "  {:<60}{:>8.0}",
        "entries a second, opened and settled", ledger.per_second
    );
}

fn print_time(what: &str, took: Duration, bar: Option<Duration>) {
    let seconds = took.as_secs_f64();
    match bar {
        Some(most) => println!("  {what:<60}{seconds:>8.3} s  {}", verdict(took <= most)),
        None => println!("  {what:<60}{seconds:>8.3} s"),
    }
}

fn verdict(holds: bool) -> &'static str {
    if holds { "pass" } else { "MISS" }
}

fn has_bar(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Sqlite(Durability::Process) | Kind::Postgres(Durability::Process)
    )
}

/// Microseconds that a ledger adds to the median admission.
fn added(turns: &[Turn], kind: Kind) -> f64 {
    let p50 = |kind| median(values(turns, kind, |t| t.alone_p50));
    p50(kind) - p50(Kind::None)
}

fn values(turns: &[Turn], kind: Kind, of: fn(&Turn) -> f64) -> Vec<f64> {
    turns.iter().filter(|t| t.kind == kind).map(of).collect()
}

/// Writes the same as JSON into the target folder.
pub fn write(turns: &[Turn], large: &[Large]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target folder");
    let folder = target.join("bench");
    std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let path = folder.join("ledger.json");
    let kinds: Vec<Value> = KINDS.into_iter().map(|kind| of_kind(turns, kind)).collect();
    let doc = json!({
        "command": COMMAND,
        "machine": Machine::this().json(),
        "admission": kinds,
        "added_us_max": ADDED_MAX,
        "large": large.iter().map(of_large).collect::<Vec<Value>>(),
    });
    std::fs::write(&path, format!("{doc:#}\n"))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}

fn of_kind(turns: &[Turn], kind: Kind) -> Value {
    let rounds = |of| values(turns, kind, of);
    json!({
        "ledger": kind.name(),
        "alone_p50_us": rounds(|t| t.alone_p50),
        "alone_p99_us": rounds(|t| t.alone_p99),
        "crowd_p50_us": rounds(|t| t.crowd_p50),
        "crowd_p99_us": rounds(|t| t.crowd_p99),
        "entries_per_second": rounds(|t| t.per_second),
        "added_us": added(turns, kind),
    })
}

fn of_large(ledger: &Large) -> Value {
    let commands: serde_json::Map<String, Value> = ledger
        .commands
        .iter()
        .map(|(words, took)| ((*words).to_owned(), json!(took.as_secs_f64())))
        .collect();
    json!({
        "store": ledger.store,
        "entries": ledger.entries,
        "bytes": ledger.bytes,
        "filled_s": ledger.filled.as_secs_f64(),
        "start_after_crash_s": ledger.starts[0].as_secs_f64(),
        "start_s": ledger.starts[1].as_secs_f64(),
        "commands_s": commands,
        "entries_per_second": ledger.per_second,
    })
}
