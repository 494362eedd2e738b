//! Small builders: scratch folders, ledgers, records, an observer that remembers.

use super::database::apart;
use crate::budget::Units;
use crate::clock::Timestamp;
use crate::config::{self, Durability, LedgerStore, OnError, OnUnknown};
use crate::ledger::handle::Observer;
use crate::ledger::{End, Fingerprint, Ledger, LedgerError, Opening, Posting, Recovered};
use crate::record::{Admitted, Api, EndedBy, Record, RequestId, State, UpstreamEnd, UsageSource};
use crate::tenant::TenantName;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A folder of its own, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        let path = std::env::temp_dir().join(format!("streamgate-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn database(&self) -> PathBuf {
        self.join("ledger.db")
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

pub fn config(file: &Path) -> config::Ledger {
    let beside = match file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => std::env::temp_dir().join(format!("streamgate-{}", uuid::Uuid::now_v7())),
    };
    config::Ledger {
        leftovers: beside.join("unsettled"),
        store: LedgerStore::Sqlite(file.to_owned()),
        durability: Durability::Process,
        on_error: OnError::Refuse,
        on_unknown: OnUnknown::Hold,
        retention: Duration::from_secs(100 * 365 * 86400),
    }
}

pub fn id(text: &str) -> RequestId {
    RequestId::parse(text).unwrap()
}

pub fn acme() -> TenantName {
    TenantName::new("acme")
}

/// An hour long ago, and moments in it.
pub const ADMITTED: Timestamp = Timestamp(1_700_000_000_000_000);

/// A request of acme's that has just been admitted, with 100 units reserved.
pub fn running(request_id: &str) -> Record {
    let admitted = Admitted {
        request_id: id(request_id),
        tenant: acme(),
        api: Api::Chat,
        model: "fast".into(),
        pool: "llama".into(),
        node: "gw-1".into(),
        at: ADMITTED,
    };
    Record {
        reserved_units: Units(100),
        input_units: Units(28),
        ..Record::new(admitted)
    }
}

/// The same at its end: complete, 40 units charged.
pub fn complete(record: &Record) -> Record {
    Record {
        state: State::Completed,
        ended_by: Some(EndedBy::Upstream),
        upstream_end: UpstreamEnd::Complete,
        ended_at: Some(record.admitted_at.plus(Duration::from_secs(2))),
        generated_units: Units(12),
        delivered_units: Units(12),
        charged_units: record.charged_units.plus(Units(40)),
        usage_source: UsageSource::Upstream,
        ..record.clone()
    }
}

/// The same, failed before anything was shown, with so much charged.
pub fn failed(record: &Record, charged: u64) -> Record {
    Record {
        state: State::Failed,
        ended_by: Some(EndedBy::Upstream),
        upstream_end: UpstreamEnd::Error,
        ended_at: Some(record.admitted_at.plus(Duration::from_secs(1))),
        charged_units: Units(charged),
        ..record.clone()
    }
}

/// The end of the first life of an id, with output shown.
pub fn ended(record: Record) -> End {
    End {
        charge: record.charged_units,
        record,
        fingerprint: print("payload"),
        shown: true,
    }
}

pub fn print(text: &str) -> Fingerprint {
    Fingerprint::of(&acme(), "POST", "/v1/chat/completions", text.as_bytes())
}

pub fn opening(request_id: &str) -> Opening {
    Opening {
        record: running(request_id),
        fingerprint: print("payload"),
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    Committed(usize),
    State(u64, u64),
    Failed(LedgerError),
    Adjusted(Posting),
}

/// Remembers all it hears.
#[derive(Clone, Default)]
pub struct Ears(Arc<Mutex<Vec<Heard>>>);

impl Ears {
    pub fn heard(&self) -> Vec<Heard> {
        self.0.lock().unwrap().clone()
    }

    pub fn adjustments(&self) -> Vec<Posting> {
        let adjusted = |h| match h {
            Heard::Adjusted(posting) => Some(posting),
            Heard::Committed(_) | Heard::State(..) | Heard::Failed(_) => None,
        };
        self.heard().into_iter().filter_map(adjusted).collect()
    }

    pub fn failures(&self) -> usize {
        self.heard()
            .iter()
            .filter(|h| matches!(h, Heard::Failed(_)))
            .count()
    }

    /// The counts of open and unknown entries, as last told.
    pub fn state(&self) -> Option<(u64, u64)> {
        let state = |h| match h {
            Heard::State(open, unknown) => Some((open, unknown)),
            Heard::Committed(_) | Heard::Adjusted(_) | Heard::Failed(_) => None,
        };
        self.heard().into_iter().filter_map(state).last()
    }

    fn note(&self, heard: Heard) {
        self.0.lock().unwrap().push(heard);
    }
}

impl Observer for Ears {
    fn committed(&self, _: Duration, writes: usize) {
        self.note(Heard::Committed(writes));
    }

    fn state(&self, open: u64, unknown: u64) {
        self.note(Heard::State(open, unknown));
    }

    fn failed(&self, error: &LedgerError) {
        self.note(Heard::Failed(error.clone()));
    }

    fn adjusted(&self, change: &Posting) {
        self.note(Heard::Adjusted(change.clone()));
    }
}

pub fn start(config: &config::Ledger) -> (Ledger, Recovered, Ears) {
    let ears = Ears::default();
    let heard = Box::new(ears.clone());
    let (ledger, recovered) = apart(|| Ledger::start(config, heard).unwrap());
    (ledger, recovered, ears)
}

/// Polls until it is so; fails with what was awaited.
pub async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = crate::clock::instant() + Duration::from_secs(10);
    while !is_so() {
        assert!(
            crate::clock::instant() < deadline,
            "waited in vain for {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The same, on a thread that may block.
pub fn until_so(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = crate::clock::instant() + Duration::from_secs(10);
    while !is_so() {
        assert!(
            crate::clock::instant() < deadline,
            "waited in vain for {what}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What a future says when it is polled once.
pub fn polled<F: Future>(future: std::pin::Pin<&mut F>) -> std::task::Poll<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    future.poll(&mut context)
}

/// A small generator, so that a failure replays by its seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    /// One of so many places.
    pub fn pick(&mut self, places: usize) -> usize {
        let sides = u64::try_from(places.max(1)).unwrap();
        usize::try_from(self.roll(sides)).unwrap()
    }
}
