//! The rounds as a table for people and as JSON for programs.

use crate::claim::{Bar, Claim, Reading};
use crate::ground::{PACE, PREFILL, PROMPT_WORDS, TOKENS};
use crate::machine::Machine;
use crate::median::median;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const COMMAND: &str = "cargo bench --bench claims";

const NAME_WIDTH: usize = 58;

/// Prints every round and what the medians say.
pub fn print(rounds: &[Vec<Reading>]) {
    println!("\n{COMMAND}\non {}", Machine::this());
    println!(
        "engine: {PROMPT_WORDS} words of prompt, {PREFILL:?} to the first token, {TOKENS} tokens {PACE:?} apart; \
         each figure is the median of a round\n"
    );
    let numbers: String = (1..=rounds.len())
        .map(|n| format!("{:>9}", format!("round {n}")))
        .collect();
    println!(
        "{:<NAME_WIDTH$}{:>14}{numbers}{:>9}",
        "claim", "bar", "median"
    );
    for line in lines(rounds) {
        print_line(&line);
    }
    let lines = lines(rounds);
    let missed = lines
        .iter()
        .filter(|line| !line.claim.bar.holds(line.median()))
        .count();
    println!("\n{} of {} bars hold", lines.len() - missed, lines.len());
}

fn print_line(line: &Line) {
    let bar = match line.claim.bar {
        Bar::AtMost(most) => format!("≤ {most} {}", line.claim.unit),
        Bar::Caught(least) => format!("≥ {least} {}", line.claim.unit),
    };
    let median = line.median();
    let verdict = line.claim.bar.verdict(median);
    println!(
        "{:<NAME_WIDTH$}{bar:>14}{}{median:>9.2}  {verdict}",
        line.claim.name,
        figures(&line.values)
    );
    for (name, values) in &line.parts {
        println!(
            "    {name:<width$}{}",
            figures(values),
            width = NAME_WIDTH + 10
        );
    }
}

fn figures(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:>9.2}")).collect()
}

/// Writes the same as JSON into the target folder.
pub fn write(rounds: &[Vec<Reading>]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target folder");
    let folder = target.join("bench");
    std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let path = folder.join("claims.json");
    let claims: Vec<Value> = lines(rounds).iter().map(Line::json).collect();
    let doc = json!({
        "command": COMMAND,
        "machine": Machine::this().json(),
        "engine": {
            "prompt_words": PROMPT_WORDS,
            "first_token_ms": PREFILL.as_millis(),
            "token_ms": PACE.as_millis(),
            "tokens": TOKENS,
        },
        "claims": claims,
    });
    std::fs::write(&path, format!("{doc:#}\n"))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}

/// One claim over all rounds.
struct Line {
    claim: Claim,
    values: Vec<f64>,
    parts: Vec<(&'static str, Vec<f64>)>,
}

fn lines(rounds: &[Vec<Reading>]) -> Vec<Line> {
    let first = rounds.first().map(Vec::as_slice).unwrap_or_default();
    let line = |(at, reading): (usize, &Reading)| {
        let all: Vec<&Reading> = rounds.iter().map(|round| &round[at]).collect();
        let part = |n: usize| all.iter().map(|reading| reading.parts[n].1).collect();
        Line {
            claim: reading.claim,
            values: all.iter().map(|reading| reading.value).collect(),
            parts: reading
                .parts
                .iter()
                .enumerate()
                .map(|(n, (name, _))| (*name, part(n)))
                .collect(),
        }
    };
    first.iter().enumerate().map(line).collect()
}

impl Line {
    fn median(&self) -> f64 {
        median(self.values.iter().copied())
    }

    fn json(&self) -> Value {
        let (kind, limit) = match self.claim.bar {
            Bar::AtMost(most) => ("at_most", most),
            Bar::Caught(least) => ("at_least", least),
        };
        let parts: serde_json::Map<String, Value> = self
            .parts
            .iter()
            .map(|(name, values)| ((*name).to_owned(), json!(rounded(values))))
            .collect();
        json!({
            "claim": self.claim.name,
            "unit": self.claim.unit,
            "bar": {kind: limit},
            "rounds": rounded(&self.values),
            "parts": parts,
            "median": rounded(&[self.median()])[0],
            "holds": self.claim.bar.holds(self.median()),
        })
    }
}

/// To a thousandth: what is behind it is noise.
fn rounded(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .map(|value| (value * 1e3).round() / 1e3)
        .collect()
}
