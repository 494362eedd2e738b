//! A large ledger: how long a start takes, and each command of the real binary.

use crate::fill;
use crate::sample::{self, Nobody};
use crate::support::database::{Database, apart};
use crate::support::scratch::Scratch;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use streamgate::config::{self, Durability};
use streamgate::ledger::Ledger;

const BINARY: &str = env!("CARGO_BIN_EXE_streamgate");

/// One ledger's times.
pub struct Large {
    pub store: &'static str,
    pub entries: u64,
    pub bytes: u64,
    pub filled: Duration,
    /// The start that finds the crash, and the one after it.
    pub starts: [Duration; 2],
    pub commands: Vec<(&'static str, Duration)>,
}

const COMMANDS: [&str; 6] = [
    "report",
    "report --tenant t7 --format json",
    "list",
    "list --tenant t7 --limit 500 --format jsonl",
    "list --state unknown --limit 100",
    "show 0019f0a0-0064-7000-8000-000000000064",
];

pub fn measure(entries: u64) -> [Large; 2] {
    [on_sqlite(entries), on_postgres(entries)]
}

fn on_sqlite(entries: u64) -> Large {
    println!("SQLite: {entries} entries");
    let scratch = Scratch::new();
    let file = scratch.join("ledger.db");
    let config = sample::sqlite(&file, Durability::Process);
    start(&config);
    let from = Instant::now();
    fill::sqlite(&file, entries);
    Large {
        store: "SQLite",
        entries,
        bytes: std::fs::metadata(&file).unwrap().len(),
        filled: from.elapsed(),
        starts: [start(&config), start(&config)],
        commands: commands(scratch.path(), &format!("sqlite:{}", file.display())),
    }
}

fn on_postgres(entries: u64) -> Large {
    println!("PostgreSQL: {entries} entries");
    let database = Database::new();
    let scratch = Scratch::new();
    let config = sample::postgres(&database, Durability::Process);
    start(&config);
    let from = Instant::now();
    fill::postgres(&database, entries);
    let filled = from.elapsed();
    let bytes = database.rows("SELECT pg_database_size(current_database())");
    Large {
        store: "PostgreSQL",
        entries,
        bytes: bytes[0][0].parse().unwrap(),
        filled,
        starts: [start(&config), start(&config)],
        commands: commands(scratch.path(), &database.url()),
    }
}

/// How long a gateway's start waits for its ledger.
fn start(config: &config::Ledger) -> Duration {
    let from = Instant::now();
    let (ledger, _) = Ledger::start(config, Box::new(Nobody)).unwrap();
    let took = from.elapsed();
    apart(|| ledger.close());
    took
}

fn commands(folder: &Path, url: &str) -> Vec<(&'static str, Duration)> {
    let file = folder.join("streamgate.toml");
    std::fs::write(&file, text(folder, url)).unwrap();
    COMMANDS
        .map(|words| (words, command(&file, words)))
        .to_vec()
}

/// One run of the real binary, from its start to its end.
fn command(file: &Path, words: &str) -> Duration {
    let from = Instant::now();
    let ran = Command::new(BINARY)
        .arg("-c")
        .arg(file)
        .arg("ledger")
        .args(words.split(' '))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let took = from.elapsed();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.success() && !ran.stdout.is_empty(),
        "ledger {words}: {told}"
    );
    took
}

fn text(folder: &Path, url: &str) -> String {
    format!(
        r#"[server]
data_dir = "{}"
[[listen]]
addr = "127.0.0.1:1"
[[tenant]]
name = "t7"
anonymous = true
[[pool]]
name = "llama"
models = ["model-0"]
backends = [{{ addr = "127.0.0.1:1" }}]
[ledger]
url = "{url}"
"#,
        folder.display()
    )
}
