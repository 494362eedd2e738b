//! What the gateway holds of the ledger: a handle to the thread that writes it.

use super::entry::{Known, Opened, Opening};
use super::error::{Kind, LedgerError};
use super::owner;
use super::postgres::PostgresStore;
use super::queue::{Abandon, Command, Find};
use super::rules::Abandoned;
use super::sqlite::SqliteStore;
use super::store::{Standing, Store};
use super::sums::{Amounts, Posting};
use super::trouble::Down;
use super::worker::{Clockwork, Worker};

use crate::clock;
use crate::config::{self, LedgerStore};
use crate::record::{Record, RequestId};
use crate::tenant::TenantName;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long an opening or a look-up waits for its answer.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Hears what the ledger's thread does. Called on that thread only; it must not block.
pub trait Observer {
    /// A group was committed: so many writes, in this time.
    fn committed(&self, took: Duration, writes: usize);

    /// How many entries of the ledger are open, and how many await their bill, those of other processes included.
    fn state(&self, open: u64, unknown: u64);

    /// A write failed. What waits is kept and tried again. The thread logs it, now and then.
    fn failed(&self, _error: &LedgerError) {}

    /// The first write succeeded after one or more failed.
    fn recovered_writes(&self) {}

    /// The accounts changed by what this gateway did not do itself: a reconciliation, a crash found, another process
    /// on the same ledger. The amounts are differences.
    fn adjusted(&self, change: &Posting);
}

/// What a gateway's accounts start from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovered {
    /// Each tenant's amounts by hour of admission since the month began, and one posting at hour 0 for all before,
    /// which counts in a `total` only. `reserved` is what other living processes have open.
    pub accounts: Vec<Posting>,
    /// Entries of the whole ledger that are open, by other living processes.
    pub open: u64,
    /// Entries that await their bill.
    pub unknown: u64,
}

/// A handle to the ledger. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ledger {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    place: String,
    queue: Sender<Command>,
    openings: AtomicI64,
    down: Down,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Ledger {
    /// Opens the ledger, brings it up to date, takes what dead processes left open for crashed, and starts its
    /// thread.
    pub fn start(
        config: &config::Ledger,
        observer: Box<dyn Observer + Send>,
    ) -> Result<(Ledger, Recovered), LedgerError> {
        let clockwork = Clockwork::of(config.retention);
        Ledger::on(open(config)?, observer, clockwork)
    }

    /// Recovers a store and starts the thread on it.
    pub(super) fn on(
        mut store: Box<dyn Store>,
        observer: Box<dyn Observer + Send>,
        clockwork: Clockwork,
    ) -> Result<(Ledger, Recovered), LedgerError> {
        let place = store.place().to_owned();
        let standing = store.recover(clock::now())?;
        let recovered = recovered(&standing);
        let (queue, commands) = mpsc::channel();
        let down = Down::default();
        let worker = Worker::new(store, observer, standing.total, down.clone(), clockwork);
        let thread = std::thread::Builder::new()
            .name("ledger".into())
            .spawn(move || worker.run(&commands))
            .map_err(|e| LedgerError::new(place.as_str(), Kind::Io, format!("no thread: {e}")))?;
        let shared = Arc::new(Shared {
            place,
            queue,
            openings: AtomicI64::new(1),
            down,
            thread: Mutex::new(Some(thread)),
        });
        Ok((Ledger { shared }, recovered))
    }

    /// Opens an entry, durable when it returns. An opening that is not waited for to the end is undone.
    pub async fn open(&self, opening: Opening) -> Result<Opened, LedgerError> {
        if let Some(why) = self.shared.down.why() {
            return Err(why);
        }
        let number = self.shared.openings.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let mut waiting = Waiting::of(self, &opening.record, number);
        self.send(Command::Open(Box::new(opening), number, reply))?;
        let result = self.answer(answer, &mut waiting.why).await;
        waiting.end(&result);
        result
    }

    /// Settles an entry at its end. Never blocks; kept until it is written. The record has the `admitted_at` of its
    /// opening, and in `charged_units` all that its id was ever charged. A request whose opening failed is settled
    /// all the same, if it was served.
    pub fn settle(&self, record: Record, shown: bool) {
        let Err(mpsc::SendError(command)) = self
            .shared
            .queue
            .send(Command::Settle(Box::new(record), shown))
        else {
            return;
        };
        log::error!(
            "ledger {}: not settled, it has been closed: {command:?}",
            self.shared.place
        );
    }

    /// Moves an open entry's figures on, so that after a crash they are nearer to what was used. Never blocks; may
    /// be dropped while the ledger cannot be written.
    pub fn checkpoint(&self, record: Record) {
        if self
            .shared
            .queue
            .send(Command::Checkpoint(Box::new(record)))
            .is_err()
        {
            log::debug!(
                "ledger {}: a checkpoint came after its close",
                self.shared.place
            );
        }
    }

    /// What the ledger knows of an id. Sees everything sent before it.
    pub async fn find(
        &self,
        tenant: &TenantName,
        id: &RequestId,
    ) -> Result<Option<Known>, LedgerError> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Find(Find {
            tenant: tenant.clone(),
            id: id.clone(),
            reply,
        }))?;
        self.answer(answer, &mut Abandoned::Left).await
    }

    /// Takes over a reloaded configuration: policy, durability and retention. Another store needs a new process.
    pub fn configure(&self, config: &config::Ledger) {
        let command = Command::Configure(Box::new(config.clone()));
        if self.shared.queue.send(command).is_err() {
            log::debug!("ledger {}: configured after its close", self.shared.place);
        }
    }

    /// Writes what waits, ends the thread and waits for its end. Blocks: for `main`, after the server returned.
    pub fn close(self) {
        if self.send(Command::Close).is_err() {
            log::debug!("ledger {}: closed twice", self.shared.place);
        }
        let thread = self
            .shared
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if thread.is_some_and(|t| t.join().is_err()) {
            log::error!("ledger {}: its thread panicked", self.shared.place);
        }
    }

    fn send(&self, command: Command) -> Result<(), LedgerError> {
        let sent = self.shared.queue.send(command);
        sent.map_err(|_| self.error(Kind::Closed, "it has been closed"))
    }

    /// Waits for an answer; notes in `why` where that took too long.
    async fn answer<T>(
        &self,
        answer: oneshot::Receiver<Result<T, LedgerError>>,
        why: &mut Abandoned,
    ) -> Result<T, LedgerError> {
        match tokio::time::timeout(ANSWER_WAIT, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(self.error(Kind::Closed, "it has been closed")),
            Err(_) => {
                *why = Abandoned::Late;
                Err(self.error(Kind::Late, format!("no answer within {ANSWER_WAIT:?}")))
            }
        }
    }

    fn error(&self, kind: Kind, cause: impl Into<String>) -> LedgerError {
        LedgerError::new(self.shared.place.as_str(), kind, cause)
    }
}

/// Opens the ledger that the configuration names.
fn open(config: &config::Ledger) -> Result<Box<dyn Store>, LedgerError> {
    let run = owner::fresh_run();
    Ok(match &config.store {
        LedgerStore::Sqlite(file) => Box::new(SqliteStore::start(file, config, run)?),
        LedgerStore::Postgres(url) => Box::new(PostgresStore::start(url, config, run)?),
    })
}

fn recovered(standing: &Standing) -> Recovered {
    let (open, unknown) = counts(&standing.total);
    Recovered {
        accounts: standing.accounts.clone(),
        open,
        unknown,
    }
}

/// The counts of open and unknown entries.
pub(super) fn counts(total: &Amounts) -> (u64, u64) {
    let count = |n: i64| u64::try_from(n).unwrap_or(0);
    (count(total.open), count(total.unknown))
}

/// Undoes an opening whose answer was not taken: the client left, or it came too late.
struct Waiting<'a> {
    ledger: &'a Ledger,
    abandon: Option<Abandon>,
    why: Abandoned,
}

impl<'a> Waiting<'a> {
    fn of(ledger: &'a Ledger, record: &Record, opening: i64) -> Waiting<'a> {
        let abandon = Abandon {
            tenant: record.tenant.clone(),
            id: record.request_id.clone(),
            opening,
            why: Abandoned::Left,
        };
        Waiting {
            ledger,
            abandon: Some(abandon),
            why: Abandoned::Left,
        }
    }

    /// The answer was taken: there is nothing to undo, unless it came too late.
    fn end(&mut self, result: &Result<Opened, LedgerError>) {
        if result.is_ok() {
            self.abandon = None;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(abandon) = self.abandon.take() else {
            return;
        };
        let why = self.why;
        if self
            .ledger
            .send(Command::Abandon(Abandon { why, ..abandon }))
            .is_err()
        {
            log::debug!(
                "ledger {}: an opening was abandoned after its close",
                self.ledger.shared.place
            );
        }
    }
}
