//! What an admission waits for, and how many entries a second are opened and settled.

use crate::median::median;
use crate::sample::{self, Nobody};
use crate::support::database::{Database, apart};
use crate::support::scratch::Scratch;
use std::time::{Duration, Instant};
use streamgate::config::{self, Durability};
use streamgate::ledger::Ledger;
use tokio::runtime::Runtime;

pub const ROUNDS: usize = 5;

/// One at a time, with a pause between two, as on a gateway that has time.
const ALONE: usize = 200;
const PAUSE: Duration = Duration::from_millis(3);

/// Many at once, as fast as they can.
pub const CROWD: usize = 128;
const EACH: usize = 40;

/// Which ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    None,
    Sqlite(Durability),
    Postgres(Durability),
}

pub const KINDS: [Kind; 5] = [
    Kind::None,
    Kind::Sqlite(Durability::Process),
    Kind::Sqlite(Durability::Power),
    Kind::Postgres(Durability::Process),
    Kind::Postgres(Durability::Power),
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::None => "no ledger",
            Kind::Sqlite(Durability::Process) => "SQLite, process",
            Kind::Sqlite(Durability::Power) => "SQLite, power",
            Kind::Postgres(Durability::Process) => "PostgreSQL, process",
            Kind::Postgres(Durability::Power) => "PostgreSQL, power",
        }
    }
}

/// What one turn of one ledger measured. Times in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub kind: Kind,
    pub alone_p50: f64,
    pub alone_p99: f64,
    pub crowd_p50: f64,
    pub crowd_p99: f64,
    /// Entries opened and settled.
    pub per_second: f64,
}

pub fn measure() -> Vec<Turn> {
    let runtime = runtime();
    let mut turns = Vec::new();
    for round in 1..=ROUNDS {
        println!("round {round} of {ROUNDS}");
        turns.extend(KINDS.map(|kind| turn(&runtime, kind)));
    }
    turns
}

/// Entries that a ledger opens and settles a second.
pub fn per_second(config: &config::Ledger) -> f64 {
    let runtime = runtime();
    let rates = [(); ROUNDS].map(|()| {
        let ledger = Ledger::start(config, Box::new(Nobody)).unwrap().0;
        rate(&runtime, Some(ledger)).1
    });
    median(rates)
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// One turn, on a ledger of its own.
fn turn(runtime: &Runtime, kind: Kind) -> Turn {
    let scratch = Scratch::new();
    match kind {
        Kind::None => on(runtime, kind, None),
        Kind::Sqlite(durability) => {
            let config = sample::sqlite(&scratch.join("ledger.db"), durability);
            on(runtime, kind, Some(&config))
        }
        Kind::Postgres(durability) => {
            let database = Database::new();
            on(
                runtime,
                kind,
                Some(&sample::postgres(&database, durability)),
            )
        }
    }
}

fn on(runtime: &Runtime, kind: Kind, config: Option<&config::Ledger>) -> Turn {
    let ledger = config.map(|config| Ledger::start(config, Box::new(Nobody)).unwrap().0);
    let alone = runtime.block_on(alone(ledger.as_ref()));
    let (crowd, per_second) = rate(runtime, ledger);
    Turn {
        kind,
        alone_p50: percentile(&alone, 50),
        alone_p99: percentile(&alone, 99),
        crowd_p50: percentile(&crowd, 50),
        crowd_p99: percentile(&crowd, 99),
        per_second,
    }
}

/// What many admissions at once wait, and how many entries a second that makes; all are written when it ends.
fn rate(runtime: &Runtime, ledger: Option<Ledger>) -> (Vec<Duration>, f64) {
    let from = Instant::now();
    let crowd = runtime.block_on(crowd(ledger.clone()));
    if let Some(ledger) = ledger {
        apart(|| ledger.close()).unwrap();
    }
    let rate = crowd.len() as f64 / from.elapsed().as_secs_f64();
    (crowd, rate)
}

async fn alone(ledger: Option<&Ledger>) -> Vec<Duration> {
    let mut waits = Vec::with_capacity(ALONE);
    for _ in 0..ALONE {
        waits.push(request(ledger).await);
        tokio::time::sleep(PAUSE).await;
    }
    waits
}

async fn crowd(ledger: Option<Ledger>) -> Vec<Duration> {
    let clients = (0..CROWD).map(|_| {
        let ledger = ledger.clone();
        tokio::spawn(async move {
            let mut waits = Vec::with_capacity(EACH);
            for _ in 0..EACH {
                waits.push(request(ledger.as_ref()).await);
            }
            waits
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut waits = Vec::with_capacity(CROWD * EACH);
    for client in clients {
        waits.extend(client.await.unwrap());
    }
    waits
}

/// A request from its admission to its end; how long its admission took.
async fn request(ledger: Option<&Ledger>) -> Duration {
    let from = Instant::now();
    let opening = sample::opening();
    let end = sample::ended(opening.clone());
    if let Some(ledger) = ledger {
        ledger.open(opening).await.unwrap();
    }
    let took = from.elapsed();
    if let Some(ledger) = ledger {
        ledger.settle(end);
    }
    took
}

/// In microseconds.
fn percentile(waits: &[Duration], percent: usize) -> f64 {
    let mut sorted = waits.to_vec();
    sorted.sort();
    sorted[(sorted.len() - 1) * percent / 100].as_secs_f64() * 1e6
}
