//! A large ledger: how long a start takes, each command of the real binary, and how many entries a second it takes.

use crate::admission;
use crate::bounds::Bounds;
use crate::fill;
use crate::sample::{self, Nobody};
use crate::support::database::{Database, apart};
use std::path::{Path, PathBuf};
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
    /// Entries opened and settled.
    pub per_second: f64,
}

/// Where a large file lies: always in the same place, so that one that a killed run left is removed by the next.
struct Folder(PathBuf);

impl Folder {
    fn fresh() -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("large-ledger");
        std::fs::remove_dir_all(&path).ok();
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

const COMMANDS: [&str; 6] = [
    "report",
    "report --tenant t7 --format json",
    "list",
    "list --tenant t7 --limit 500 --format jsonl",
    "list --state unknown --limit 100",
    "show 0019f0a0-0064-7000-8000-000000000064",
];

/// Each is told as soon as it is measured.
pub fn measure(entries: u64, tell: fn(&Large)) -> [Large; 2] {
    let measures: [fn(u64) -> Large; 2] = [on_sqlite, on_postgres];
    measures.map(|measure| {
        let large = measure(entries);
        tell(&large);
        large
    })
}

fn on_sqlite(entries: u64) -> Large {
    println!("SQLite: {entries} entries");
    let folder = Folder::fresh();
    let file = folder.0.join("ledger.db");
    let config = sample::sqlite(&file, Durability::Process);
    start(&config);
    let from = Instant::now();
    let entries = fill::sqlite(&file, entries, &Bounds::on(&folder.0));
    Large {
        store: "SQLite",
        entries,
        bytes: std::fs::metadata(&file).unwrap().len(),
        filled: from.elapsed(),
        starts: [start(&config), start(&config)],
        commands: commands(&folder.0, &format!("sqlite:{}", file.display())),
        per_second: admission::per_second(&config),
    }
}

/// The server's files are the tests' script's: it removes them when it ends the server, a while after its last use.
fn on_postgres(entries: u64) -> Large {
    println!("PostgreSQL: {entries} entries");
    let database = Database::new();
    let folder = Folder::fresh();
    let config = sample::postgres(&database, Durability::Process);
    start(&config);
    let from = Instant::now();
    let entries = fill::postgres(&database, entries, &Bounds::on_server(&database));
    let filled = from.elapsed();
    let bytes = database.rows("SELECT pg_database_size(current_database())");
    Large {
        store: "PostgreSQL",
        entries,
        bytes: bytes[0][0].parse().unwrap(),
        filled,
        starts: [start(&config), start(&config)],
        commands: commands(&folder.0, &database.url()),
        per_second: admission::per_second(&config),
    }
}

/// How long a gateway's start waits for its ledger.
fn start(config: &config::Ledger) -> Duration {
    let from = Instant::now();
    let (ledger, _) = Ledger::start(config, Box::new(Nobody)).unwrap();
    let took = from.elapsed();
    apart(|| ledger.close()).unwrap();
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
