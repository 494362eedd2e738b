//! Every round as a table for people and as JSON for programs.

use crate::engine::GAP;
use crate::machine::Machine;
use crate::median::median;
use crate::nginx;
use crate::pure::Alone;
use crate::relay::{ROUNDS, Relayed, STREAMS, Turn, WINDOW};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const COMMAND: &str = "cargo bench --bench meter";

/// What the meter may cost of the relay's CPU without it.
const SHARE_MAX: f64 = 0.10;

const NAME_WIDTH: usize = 46;

pub fn print_alone(cases: &[Alone]) {
    println!(
        "{COMMAND}\non {}\n\nscanner and meters alone, one thread",
        Machine::this()
    );
    let rounds: String = (1..=cases[0].ns.len())
        .map(|n| format!("{:>10}", format!("round {n}")))
        .collect();
    println!(
        "{:<NAME_WIDTH$}{:>10}{rounds}{:>10}{:>8}",
        "ns per event", "bytes", "median", "GB/s"
    );
    for case in cases {
        let median = median(&case.ns);
        println!(
            "{:<NAME_WIDTH$}{:>10}{}{median:>10.0}{:>8.2}",
            case.name,
            case.bytes_per_event,
            case.ns
                .iter()
                .map(|ns| format!("{ns:>10.0}"))
                .collect::<String>(),
            gigabytes_per_second(case),
        );
    }
}

pub fn print_relayed(relayed: &Relayed) {
    println!(
        "\nthe whole relay, one worker: {STREAMS} streams of a kind with an event each {GAP:?}, CPU of its process over {WINDOW:?}"
    );
    let rounds: String = (1..=ROUNDS)
        .map(|n| format!("{:>9}", format!("round {n}")))
        .collect();
    println!(
        "{:<NAME_WIDTH$}{rounds}{:>9}",
        "µs of CPU per event", "median"
    );
    print_turns("event streams: scanned, metered, counted", &relayed.metered);
    print_turns("the same bytes, passed without being read", &relayed.unread);
    if let Some(version) = nginx::version() {
        print_turns(&format!("{version}, proxy_buffering off"), &relayed.nginx);
        print_turns("event streams beside nginx", &relayed.beside_nginx);
    }
    let share = share(relayed);
    let verdict = if share <= SHARE_MAX { "pass" } else { "MISS" };
    println!(
        "\nthe meter costs {:.1} % of the relay's CPU without it (≤ {:.0} %)  {verdict}",
        share * 100.0,
        SHARE_MAX * 100.0
    );
    match relayed.nginx.is_empty() {
        false => println!(
            "the relay costs {:.2} times nginx's CPU per event",
            to_nginx(relayed)
        ),
        true => println!("nginx is not on the path: no comparison with it"),
    }
}

fn print_turns(name: &str, turns: &[Turn]) {
    let line = |name: &str, figures: Vec<f64>| {
        let rounds: String = figures
            .iter()
            .map(|figure| format!("{figure:>9.2}"))
            .collect();
        println!("{name:<NAME_WIDTH$}{rounds}{:>9.2}", median(&figures));
    };
    line(name, totals(turns));
    line(
        "    of which in user space",
        turns.iter().map(|turn| turn.user).collect(),
    );
    line(
        "    events a second, in thousands",
        turns
            .iter()
            .map(|turn| turn.events_per_second / 1e3)
            .collect(),
    );
}

/// Writes the same as JSON into the target folder.
pub fn write(alone: &[Alone], relayed: &Relayed) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target folder");
    let folder = target.join("bench");
    std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let path = folder.join("meter.json");
    let share = share(relayed);
    let nginx = (!relayed.nginx.is_empty()).then(|| {
        json!({
            "version": nginx::version(),
            "turns": turns_json(&relayed.nginx),
            "metered_beside": turns_json(&relayed.beside_nginx),
            "relay_to_nginx": rounded(to_nginx(relayed)),
        })
    });
    let doc = json!({
        "command": COMMAND,
        "machine": Machine::this().json(),
        "alone": alone.iter().map(alone_json).collect::<Vec<_>>(),
        "relay": {
            "streams": STREAMS,
            "gap_ms": GAP.as_millis(),
            "window_s": WINDOW.as_secs(),
            "metered": turns_json(&relayed.metered),
            "unread": turns_json(&relayed.unread),
            "share_of_the_meter": rounded(share),
            "share_max": SHARE_MAX,
            "holds": share <= SHARE_MAX,
        },
        "nginx": nginx,
    });
    std::fs::write(&path, format!("{doc:#}\n"))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}

fn alone_json(case: &Alone) -> Value {
    json!({
        "case": case.name,
        "bytes_per_event": case.bytes_per_event,
        "ns_per_event": case.ns.iter().copied().map(rounded).collect::<Vec<_>>(),
        "median_ns": rounded(median(&case.ns)),
        "median_gb_per_s": rounded(gigabytes_per_second(case)),
    })
}

fn turns_json(turns: &[Turn]) -> Value {
    let figures = |figure: fn(&Turn) -> f64| {
        turns
            .iter()
            .map(|turn| rounded(figure(turn)))
            .collect::<Vec<_>>()
    };
    json!({
        "us_per_event": figures(|turn| turn.total()),
        "us_user_per_event": figures(|turn| turn.user),
        "events_per_s": figures(|turn| turn.events_per_second),
        "median_us": rounded(median(totals(turns))),
    })
}

/// What the meter adds, by the median over the rounds' own ratios: what else the machine did is in both.
fn share(relayed: &Relayed) -> f64 {
    median(ratios(&totals(&relayed.metered), &totals(&relayed.unread))) - 1.0
}

fn to_nginx(relayed: &Relayed) -> f64 {
    median(ratios(
        &totals(&relayed.beside_nginx),
        &totals(&relayed.nginx),
    ))
}

fn ratios(of: &[f64], to: &[f64]) -> Vec<f64> {
    of.iter().zip(to).map(|(of, to)| of / to).collect()
}

fn totals(turns: &[Turn]) -> Vec<f64> {
    turns.iter().map(|turn| turn.total()).collect()
}

fn gigabytes_per_second(case: &Alone) -> f64 {
    case.bytes_per_event as f64 / median(&case.ns)
}

/// To a thousandth: what is behind it is noise.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
