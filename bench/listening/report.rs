//! The rounds as a table for people and as JSON for programs.

use crate::machine::Machine;
use crate::nginx;
use crate::row::{Bar, Row, median};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const COMMAND: &str = "cargo bench --bench listening";

const NAME_WIDTH: usize = 74;

/// One row over all rounds.
struct Line<'a> {
    first: &'a Row,
    ours: Vec<f64>,
    beside: Vec<f64>,
}

impl Line<'_> {
    /// The median of the rounds' differences or ratios.
    fn figure(&self) -> f64 {
        let each = self.ours.iter().zip(&self.beside);
        let figures: Vec<f64> = each.map(|(a, b)| self.first.bar.figure(*a, *b)).collect();
        median(&figures)
    }

    fn verdict(&self) -> String {
        let figure = self.figure();
        let word = if self.first.bar.holds(figure) {
            "pass"
        } else {
            "MISS"
        };
        let than = self.first.than;
        match self.first.bar {
            Bar::OverNginx(most) => format!(
                "{figure:+.2} {} over {than} (≤ {most:+}): {word}",
                self.first.unit
            ),
            Bar::Times(most) => format!("{figure:.2} × {than} (≤ {most}): {word}"),
            Bar::None => format!("{figure:.2} × {than}"),
        }
    }

    fn json(&self) -> Value {
        let bar = match self.first.bar {
            Bar::OverNginx(most) => json!({"over_nginx_at_most": most}),
            Bar::Times(most) => json!({"times_at_most": most}),
            Bar::None => Value::Null,
        };
        json!({
            "name": self.first.name,
            "unit": self.first.unit,
            "rounds": rounded(&self.ours),
            "than": self.first.than,
            "rounds_beside": rounded(&self.beside),
            "figure": rounded(&[self.figure()])[0],
            "bar": bar,
            "holds": self.first.bar.holds(self.figure()),
        })
    }
}

fn lines(rounds: &[Vec<Row>]) -> Vec<Line<'_>> {
    let first = rounds.first().map(Vec::as_slice).unwrap_or_default();
    let line = |(at, first): (usize, _)| Line {
        first,
        ours: rounds.iter().map(|round| round[at].ours).collect(),
        beside: rounds.iter().map(|round| round[at].beside).collect(),
    };
    first.iter().enumerate().map(line).collect()
}

pub fn print(rounds: &[Vec<Row>]) {
    println!("\n{COMMAND}\non {}", Machine::this());
    println!(
        "beside {}, one worker each\n",
        nginx::version().unwrap_or_default()
    );
    let numbers: String = (1..=rounds.len())
        .map(|n| format!("{:>9}", format!("round {n}")))
        .collect();
    println!("{:<NAME_WIDTH$}{numbers}{:>9}", "", "median");
    let lines = lines(rounds);
    for line in &lines {
        let name = format!("{}, {}", line.first.name, line.first.unit);
        println!(
            "{name:<NAME_WIDTH$}{}{:>9.2}",
            figures(&line.ours),
            median(&line.ours)
        );
        let beside = format!("    {}", line.first.than);
        println!(
            "{beside:<NAME_WIDTH$}{}{:>9.2}",
            figures(&line.beside),
            median(&line.beside)
        );
        println!("    → {}", line.verdict());
    }
    let judged: Vec<&Line> = lines
        .iter()
        .filter(|line| line.first.bar != Bar::None)
        .collect();
    let held = judged
        .iter()
        .filter(|line| line.first.bar.holds(line.figure()))
        .count();
    println!("\n{held} of {} bars hold", judged.len());
}

fn figures(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:>9.2}")).collect()
}

/// Writes the same as JSON into the target folder.
pub fn write(rounds: &[Vec<Row>]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("the target folder");
    let folder = target.join("bench");
    std::fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let path = folder.join("listening.json");
    let doc = json!({
        "command": COMMAND,
        "machine": Machine::this().json(),
        "nginx": nginx::version(),
        "rows": lines(rounds).iter().map(Line::json).collect::<Vec<Value>>(),
    });
    std::fs::write(&path, format!("{doc:#}\n"))
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    path
}

/// To a thousandth: what is behind it is noise.
fn rounded(values: &[f64]) -> Vec<f64> {
    values
        .iter()
        .map(|value| (value * 1e3).round() / 1e3)
        .collect()
}
