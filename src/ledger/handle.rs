//! What the gateway holds of the ledger: a handle to the thread that writes it.

use super::entry::{End, Known, Opened, Opening, RunId};
use super::error::{Kind, LedgerError};
use super::leftovers::{self, Leftovers};
use super::owner;
use super::postgres::PostgresStore;
use super::queue::{Command, Find};
use super::rules::Abandoned;
use super::sight::{PATIENCE, Sight};
use super::sqlite::SqliteStore;
use super::store::{Standing, Store};
use super::sums::{Amounts, Posting};
use super::thread::Running;
use super::waiting::Waiting;
use super::worker::{Clockwork, Worker};
use crate::clock;
use crate::config::{self, LedgerStore};
use crate::record::{Record, RequestId};
use crate::tenant::TenantName;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Between two lines of the log that say the same.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// Hears what the ledger's thread does. Called on that thread only; it must not block.
pub trait Observer {
    /// A group was committed: so many writes, in this time.
    fn committed(&self, took: Duration, writes: usize);

    /// How many entries of the ledger are open, and how many await their bill, those of other processes included.
    fn state(&self, open: u64, unknown: u64);

    /// A write failed. What waits is kept and tried again. The thread logs it, now and then.
    fn failed(&self, _error: &LedgerError) {}

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
    sight: Sight,
    thread: Mutex<Option<Running>>,
    leftovers: Leftovers,
    said: Mutex<Option<Instant>>,
}

impl Ledger {
    /// Opens the ledger, brings it up to date, takes what dead processes left open for crashed, and starts its
    /// thread.
    pub fn start(
        config: &config::Ledger,
        observer: Box<dyn Observer + Send>,
    ) -> Result<(Ledger, Recovered), LedgerError> {
        let run = owner::fresh_run();
        let mut store = open(config, run.clone())?;
        leftovers::bring_in(&mut *store, &config.leftovers)?;
        let leftovers = Leftovers {
            folder: config.leftovers.clone(),
            run,
        };
        let clockwork = Clockwork::of(config.retention);
        Ledger::on(store, observer, clockwork, leftovers)
    }

    /// Recovers a store and starts the thread on it.
    pub(super) fn on(
        mut store: Box<dyn Store>,
        observer: Box<dyn Observer + Send>,
        clockwork: Clockwork,
        leftovers: Leftovers,
    ) -> Result<(Ledger, Recovered), LedgerError> {
        let place = store.place().to_owned();
        let standing = store.recover(clock::now())?;
        let recovered = recovered(&standing);
        let (queue, commands) = mpsc::channel();
        let sight = Sight::new();
        let worker = Worker::new(store, observer, standing.total, sight.clone(), clockwork);
        let thread = Running::start(worker, commands, clockwork.farewell)
            .map_err(|e| LedgerError::new(place.as_str(), Kind::Io, format!("no thread: {e}")))?;
        let shared = Arc::new(Shared {
            place,
            queue,
            openings: AtomicI64::new(1),
            sight,
            thread: Mutex::new(Some(thread)),
            leftovers,
            said: Mutex::new(None),
        });
        Ok((Ledger { shared }, recovered))
    }

    /// Opens an entry, durable when it returns. An opening that is not waited for to the end is undone.
    pub async fn open(&self, opening: Opening) -> Result<Opened, LedgerError> {
        if let Some(why) = self.shared.sight.down.why() {
            return Err(why);
        }
        self.refuse_to_wait()?;
        let number = self.shared.openings.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        let mut waiting = Waiting::of(&self.shared.queue, &opening.record, number);
        self.send(Command::Open(Box::new(opening), number, reply))?;
        let result = self.answer(answer, &mut waiting.why).await;
        waiting.end(&result);
        result
    }

    /// Settles an entry at its end. Never blocks; kept until it is written, and known from now on. A request whose
    /// opening failed is settled all the same, if it was served.
    pub fn settle(&self, end: End) {
        let end = Arc::new(end);
        self.shared.sight.unwritten.add(&end);
        if self
            .shared
            .queue
            .send(Command::Settle(end.clone()))
            .is_err()
        {
            self.shared.sight.unwritten.remove(&end);
            self.log_unsettled(&end);
        }
    }

    /// Whether so many ends wait to be written that no more should be added.
    pub fn is_overfull(&self) -> bool {
        let is_full = self.shared.sight.unwritten.is_full();
        if is_full {
            let (place, count) = (&self.shared.place, self.unwritten());
            self.say(&format!(
                "ledger {place}: {count} ends of requests wait to be written: no more are begun until it can be written"
            ));
        }
        is_full
    }

    /// Ends that wait to be written.
    pub fn unwritten(&self) -> usize {
        self.shared.sight.unwritten.count()
    }

    /// Whether the last write succeeded, and none has been waiting for long.
    pub fn is_up(&self) -> bool {
        let sight = &self.shared.sight;
        !sight.down.is_failing() && sight.hangs(&self.shared.place).is_none()
    }

    /// Moves an open entry on, so that after a crash it says more of what was used. Never blocks; left out while the
    /// ledger cannot be written.
    pub fn checkpoint(&self, record: Record) {
        let checkpoint = Command::Checkpoint(Box::new(record));
        let sight = &self.shared.sight;
        let is_of_no_use = sight.down.why().is_some() || sight.hangs(&self.shared.place).is_some();
        if !is_of_no_use && self.shared.queue.send(checkpoint).is_err() {
            log::debug!(
                "ledger {}: a checkpoint came after its close",
                self.shared.place
            );
        }
    }

    /// What the ledger knows of an id. Sees every opening and end that was sent before it.
    pub async fn find(
        &self,
        tenant: &TenantName,
        id: &RequestId,
    ) -> Result<Option<Known>, LedgerError> {
        if let Some(known) = self.shared.sight.unwritten.find(tenant, id) {
            return Ok(Some(known));
        }
        self.refuse_to_wait()?;
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

    /// Writes what waits, ends the thread and waits for its end, but not for ever. What could not be written is kept for the
    /// next start; the error says where. Blocks: for `main`, after the server returned.
    pub fn close(self) -> Result<(), String> {
        if self.send(Command::Close).is_err() {
            log::debug!("ledger {}: closed twice", self.shared.place);
        }
        let thread = self
            .shared
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(running) = thread {
            running.wait(&self.shared.place);
        }
        self.keep(&self.shared.sight.unwritten.all())
    }

    fn keep(&self, unsettled: &[Arc<End>]) -> Result<(), String> {
        if unsettled.is_empty() {
            return Ok(());
        }
        let (place, count) = (&self.shared.place, unsettled.len());
        match self.shared.leftovers.keep(unsettled) {
            Ok(file) => Err(format!(
                "ledger {place}: {count} ends of requests could not be written; they are in {}, and the next start brings \
                 them in",
                file.display()
            )),
            Err(e) => {
                unsettled.iter().for_each(|end| self.log_unsettled(end));
                Err(format!(
                    "ledger {place}: {count} ends of requests could not be written, nor kept in {}: {e}; the log has their \
                     records: book those by hand",
                    self.shared.leftovers.folder.display()
                ))
            }
        }
    }

    fn log_unsettled(&self, end: &End) {
        let (place, text) = (&self.shared.place, end.record.to_json());
        log::error!("ledger {place}: not settled before the end: {text}");
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
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(self.error(Kind::Closed, "it has been closed")),
            Err(_) => {
                *why = Abandoned::Late;
                let late = self.error(Kind::Late, format!("no answer within {PATIENCE:?}"));
                self.say(&late.to_string());
                Err(late)
            }
        }
    }

    /// Where the thread waits for its database for long, others need not wait for the thread.
    fn refuse_to_wait(&self) -> Result<(), LedgerError> {
        match self.shared.sight.hangs(&self.shared.place) {
            Some(late) => {
                self.say(&late.to_string());
                Err(late)
            }
            None => Ok(()),
        }
    }

    /// Logs what the thread cannot say itself, now and then.
    fn say(&self, text: &str) {
        let said = self.shared.said.lock();
        let mut said = said.unwrap_or_else(PoisonError::into_inner);
        let now = clock::instant();
        if said.is_none_or(|at| now.saturating_duration_since(at) >= LOG_PAUSE) {
            *said = Some(now);
            log::error!("{text}");
        }
    }

    fn error(&self, kind: Kind, cause: impl Into<String>) -> LedgerError {
        LedgerError::new(self.shared.place.as_str(), kind, cause)
    }
}

/// Opens the ledger that the configuration names.
fn open(config: &config::Ledger, run: RunId) -> Result<Box<dyn Store>, LedgerError> {
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
