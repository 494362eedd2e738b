//! The ledger in a SQLite file: write-ahead log, one writer at a time, readers beside it.

mod books;
mod connect;
mod fault;
mod place;
mod recover;
mod row;
mod schema;
mod sums;

pub(super) use books::SqliteBooks;

#[cfg(test)]
mod tests;

use super::entry::{Known, RunId};
use super::error::{Kind, LedgerError};
use super::judge::Judge;
use super::owner::{self, OwnerLock};
use super::rules::Verdict;
use super::store::{Applied, Committed, Standing, Store, Write};
use super::stored::Line;
use super::sums::{Amounts, Change, Posting};
use crate::clock::Timestamp;
use crate::config::{self, Durability};
use crate::record::RequestId;
use crate::tenant::TenantName;
use fault::fault;
use place::Place;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;

/// A gateway's hold of a ledger file.
pub(super) struct SqliteStore {
    at: Place,
    place: String,
    durability: Durability,
    judge: Judge,
    /// To an empty database in memory where the file was let go and none has taken its place yet.
    db: Connection,
    lock: Option<OwnerLock>,
    /// The newest posting read.
    followed: i64,
}

impl SqliteStore {
    pub fn start(
        file: &Path,
        config: &config::Ledger,
        run: RunId,
    ) -> Result<SqliteStore, LedgerError> {
        let db = patiently(|| connect::writer(file, config.durability))?;
        let mut store = SqliteStore {
            // whatever name it is reached by, the locks of its owners are beside it
            at: Place::of(file.canonicalize().unwrap_or_else(|_| file.to_owned())),
            place: file.display().to_string(),
            durability: config.durability,
            judge: Judge {
                run,
                policy: config.on_unknown,
            },
            db,
            lock: None,
            followed: 0,
        };
        store.take_lock()?;
        Ok(store)
    }

    fn take_lock(&mut self) -> Result<(), LedgerError> {
        let folder = owner::folder(&self.at.file);
        let lock = OwnerLock::take(&folder, &self.judge.run).map_err(|e| {
            let cause = format!("no lock can be taken in {}: {e}", folder.display());
            LedgerError::new(self.place.as_str(), Kind::Unopenable, cause)
        })?;
        self.lock = Some(lock);
        Ok(())
    }

    fn fault(&self, error: &rusqlite::Error) -> LedgerError {
        fault(&self.at.file, error)
    }

    /// Applies one write inside a transaction, and notes what it changes in the sums.
    fn apply(
        &self,
        db: &Connection,
        write: &Write,
        change: &mut Change,
        now: Timestamp,
    ) -> Result<Applied, rusqlite::Error> {
        let (tenant, id) = write.names();
        let old = row::find(db, tenant.as_str(), id.as_str())?;
        let old = old.map(Line::entry_at_least);
        let (verdict, opened) = self.judge.judge(old.as_ref(), write, now);
        match verdict {
            Verdict::Keep => {}
            Verdict::Put(new, life) => {
                row::put(db, &new, old.is_none())?;
                change.replace(old.as_ref(), &new, life);
            }
            Verdict::Broken(why) => return Ok(Applied::Broken(why)),
        }
        Ok(opened.map_or(Applied::Done, Applied::Opened))
    }

    /// Brings the write-ahead log into the file that is open, wherever that has gone: by its name, the log would pass for
    /// that of any file that takes its place. SQLite itself does so for no file that was moved.
    fn empty_log(&self) -> Result<(), LedgerError> {
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy = |row: &rusqlite::Row<'_>| row.get::<_, bool>(0);
        match self.db.query_row(checkpoint, (), busy) {
            Ok(false) => Ok(()),
            Ok(true) => {
                let cause = "another process still reads its write-ahead log";
                Err(LedgerError::new(self.place.as_str(), Kind::Locked, cause))
            }
            Err(e) => Err(self.fault(&e)),
        }
    }

    /// Closes the file, or what was one: nothing of it may be open where it is opened again, or another in its place.
    fn let_go(&mut self) -> Result<(), LedgerError> {
        if let Err(error) = self.empty_log() {
            if error.is_locked() {
                return Err(error);
            }
            log::warn!("{error}; its write-ahead log is set aside beside it, as -wal.lost");
            self.at.set_log_aside().map_err(|e| {
                LedgerError::new(self.place.as_str(), Kind::Unopenable, e.to_string())
            })?;
        }
        let nothing = Connection::open_in_memory().map_err(|e| self.fault(&e))?;
        self.db = nothing;
        Ok(())
    }

    /// Whether the file that other processes see is still the one that is open here.
    fn check_place(&mut self) -> Result<(), LedgerError> {
        if let Some((kind, cause)) = self.at.fault() {
            if let Err(error) = self.empty_log() {
                log::debug!("{error}; its log stays beside it");
            }
            return Err(LedgerError::new(self.place.as_str(), kind, cause));
        }
        Ok(())
    }

    /// Whether other processes still see that this one lives.
    fn check_lock(&mut self) -> Result<(), LedgerError> {
        if !self.lock.as_ref().is_some_and(OwnerLock::is_in_place) {
            log::warn!(
                "ledger {}: the lock of this run was removed, it is made anew",
                self.place
            );
            self.take_lock()?;
        }
        Ok(())
    }
}

impl Store for SqliteStore {
    fn place(&self) -> &str {
        &self.place
    }

    fn recover(&mut self, now: Timestamp) -> Result<Standing, LedgerError> {
        let standing = patiently(|| recover::at_start(self, now))?;
        connect::be_brief(&self.at.file, &self.db)?;
        Ok(standing)
    }

    fn commit(&mut self, writes: &[Write], now: Timestamp) -> Result<Committed, LedgerError> {
        self.check_place()?;
        let transaction = begin(&self.db).map_err(|e| self.fault(&e))?;
        let mut change = Change::default();
        let mut applied = Vec::with_capacity(writes.len());
        for write in writes {
            match self.apply(&transaction, write, &mut change, now) {
                Ok(done) => applied.push(done),
                Err(e) => {
                    let error = self.fault(&e);
                    if !error.is_of_one_entry() {
                        return Err(error);
                    }
                    applied.push(Applied::Failed(error));
                }
            }
        }
        sums::post(&transaction, &change, &self.judge.run)
            .and_then(|()| transaction.commit())
            .map_err(|e| self.fault(&e))?;
        Ok(Committed {
            applied,
            postings: change.postings(),
        })
    }

    fn probe(&mut self, now: Timestamp) -> Result<(), LedgerError> {
        self.check_place()?;
        self.check_lock()?;
        recover::register(&self.db, &self.judge.run, now, self.followed).map_err(|e| self.fault(&e))
    }

    fn find(&mut self, tenant: &TenantName, id: &RequestId) -> Result<Option<Known>, LedgerError> {
        let line = row::find(&self.db, tenant.as_str(), id.as_str()).map_err(|e| self.fault(&e))?;
        Ok(line.map(|line| line.entry_at_least().known()))
    }

    fn follow(&mut self, now: Timestamp) -> Result<Vec<Posting>, LedgerError> {
        self.check_place()?;
        self.check_lock()?;
        recover::follow(self, now).map_err(|e| self.fault(&e))
    }

    fn total(&mut self) -> Result<Amounts, LedgerError> {
        sums::total(&self.db, &self.judge.run, self.followed).map_err(|e| self.fault(&e))
    }

    fn forget(&mut self, before: Timestamp) -> Result<bool, LedgerError> {
        recover::forget(&self.db, before).map_err(|e| self.fault(&e))
    }

    fn configure(&mut self, config: &config::Ledger) {
        self.judge.policy = config.on_unknown;
        self.durability = config.durability;
        if let Err(error) = connect::set_durability(&self.at.file, &self.db, config.durability) {
            log::error!("{error}; `ledger.durability` stays as it was");
        }
    }

    fn act_as(&mut self, run: RunId) -> RunId {
        std::mem::replace(&mut self.judge.run, run)
    }

    fn reopen(&mut self) -> Result<(), LedgerError> {
        let is_another = self.at.is_taken();
        if self.at.file.exists() && self.at.fault().is_some() {
            self.let_go()?;
        }
        let db = connect::writer_again(&self.at.file, self.durability)?;
        connect::be_brief(&self.at.file, &db)?;
        if is_another {
            log::warn!(
                "ledger {}: another file is in its place and is written from now on; budgets go on from what this \
                 process knows, a restart takes what the file says",
                self.place
            );
        }
        let newest = recover::newest_posting(&db).map_err(|e| self.fault(&e))?;
        self.followed = self.followed.min(newest);
        self.db = db;
        self.at = Place::of(self.at.file.clone());
        Ok(())
    }

    fn close(&mut self) {
        if let Err(e) = recover::leave(&self.db, &self.judge.run) {
            log::warn!("{}", self.fault(&e));
        }
        if let Some(lock) = self.lock.take() {
            lock.give_back();
        }
    }
}

/// Starts a transaction that writes. The lock is taken at once, so that nothing it read changes before it writes.
fn begin(db: &Connection) -> Result<Transaction<'_>, rusqlite::Error> {
    Transaction::new_unchecked(db, TransactionBehavior::Immediate)
}

/// Tries again for a while where another process holds the lock: at start there is time.
fn patiently<T>(mut attempt: impl FnMut() -> Result<T, LedgerError>) -> Result<T, LedgerError> {
    const ATTEMPTS: usize = 3;
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(e) if e.is_locked() => {}
            other => return other,
        }
    }
    attempt()
}
