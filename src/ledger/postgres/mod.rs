//! The ledger in a PostgreSQL database, for gateways on one machine or several: the tables of the SQLite ledger, in a
//! schema of their own, `streamgate`.
//!
//! `address`, `tls` and `link` are the way there; `schema`, `row` and `sums` the tables; `write` says how transactions
//! that change entries exclude each other, `group` and `commit` what one of them does. `direct` is the short way of one
//! write whose entry need not be read: `own` remembers what is open, `single` is the statement. `alive` tells the living
//! from the dead, `recover` is what follows from that, `mirror` how a run that was taken for dead learns what it missed,
//! `doubt` what it may have done itself. A pooler between must keep sessions, not only transactions: the liveness of a
//! run is a lock of its session.
//!
//! Durability: a commit has left the process when it returns, so no death of a gateway loses it. With "process" the
//! server may acknowledge it before its own log is on disk (`synchronous_commit = off`): what it acknowledged in its
//! last moments, three times its `wal_writer_delay` at most, is lost if the server itself crashes. With "power" the log
//! is on disk first.

mod address;
mod alive;
mod books;
mod commit;
mod direct;
mod doubt;
mod fault;
mod group;
mod link;
mod mirror;
mod own;
mod recover;
mod row;
mod schema;
mod settings;
mod single;
mod sums;
mod tls;
mod write;

pub(super) use books::PostgresBooks;

#[cfg(test)]
mod tests;

use super::entry::{Entry, Known, RunId};
use super::error::LedgerError;
use super::judge::Judge;
use super::store::{Committed, Standing, Store, Write};
use super::sums::{Amounts, Posting, month_of};
use crate::clock::{self, Timestamp};
use crate::config::{self, Durability, Secret};
use crate::record::RequestId;
use crate::tenant::TenantName;
use address::Address;
use alive::{BEAT, Suspects};
use commit::Batch;
use fault::Fault;
use group::Group;
use link::Link;
use mirror::Mirror;
use own::Own;
use recover::Member;
use std::time::Instant;

/// Why a URL cannot be used, in words that hold no piece of it.
pub fn url_fault(url: &str) -> Option<String> {
    Address::parse(url).err()
}

/// A gateway's hold of a ledger.
pub(super) struct PostgresStore {
    place: String,
    link: Link,
    judge: Judge,
    durability: Durability,
    mirror: Mirror,
    own: Own,
    /// Whether the connection is a new one, by which nobody has looked yet what happened meanwhile.
    is_away: bool,
    /// Whether others took this run for dead, and what it missed is not known yet.
    is_behind: bool,
    /// What was missed, to be told.
    news: Vec<Posting>,
    suspects: Suspects,
    /// The newest posting read.
    followed: i64,
    noted_at: Instant,
}

impl PostgresStore {
    pub fn start(
        url: &Secret,
        config: &config::Ledger,
        run: RunId,
    ) -> Result<PostgresStore, LedgerError> {
        let address = Address::of(url)?;
        let place = address.place.clone();
        let mut link = Link::open(address, settings::starting(config.durability))?;
        link.run(async |session| schema::migrate(session, &place).await)?;
        Ok(PostgresStore {
            place,
            link,
            judge: Judge {
                run,
                policy: config.on_unknown,
            },
            durability: config.durability,
            mirror: Mirror::default(),
            own: Own::default(),
            is_away: false,
            is_behind: false,
            news: Vec::new(),
            suspects: Suspects::default(),
            followed: 0,
            noted_at: clock::instant(),
        })
    }

    /// Comes back after the connection was lost, or others took this run for dead.
    fn come_back(&mut self, now: Timestamp) -> Result<(), LedgerError> {
        let member = Member {
            judge: &self.judge,
            place: &self.place,
        };
        self.own.forget_all();
        // Kept only where all of it succeeds.
        let mut mirror = self.mirror.clone();
        let (is_behind, followed) = (&mut self.is_behind, self.followed);
        let (news, followed) = self.link.run(async |session| {
            recover::come_back(session, &member, (&mut mirror, is_behind), followed, now).await
        })?;
        self.mirror = mirror;
        self.is_away = false;
        self.is_behind = false;
        self.suspects = Suspects::default();
        self.followed = followed;
        self.news.extend(news);
        Ok(())
    }

    fn is_registered(&mut self) -> Result<bool, LedgerError> {
        let run = &*self.judge.run;
        self.link
            .run(async |session| alive::is_registered(session, run).await)
    }

    /// Tells others how far this run has read, and that it lives, where either is due.
    fn note(&mut self, has_read: bool) -> Result<(), LedgerError> {
        let at = clock::instant();
        if !has_read && at.saturating_duration_since(self.noted_at) < BEAT {
            return Ok(());
        }
        self.noted_at = at;
        let (run, followed) = (&*self.judge.run, self.followed);
        self.link
            .run(async |session| recover::note(session, run, followed).await)
    }
}

impl Store for PostgresStore {
    fn place(&self) -> &str {
        &self.place
    }

    fn recover(&mut self, now: Timestamp) -> Result<Standing, LedgerError> {
        let member = Member {
            judge: &self.judge,
            place: &self.place,
        };
        let (standing, followed) = self
            .link
            .run(async |session| recover::join(session, &member, now).await)?;
        self.followed = followed;
        self.mirror = Mirror::of(&standing, month_of(now));
        self.link.retune(settings::running(self.durability))?;
        Ok(standing)
    }

    fn commit(&mut self, writes: &[Write], now: Timestamp) -> Result<Committed, LedgerError> {
        let batch = Batch {
            writes,
            judge: &self.judge,
            now,
            place: &self.place,
        };
        commit::commit(&mut self.link, &batch, &mut self.mirror, &mut self.own)
    }

    fn probe(&mut self, now: Timestamp) -> Result<(), LedgerError> {
        if self.is_away {
            self.come_back(now)?;
        }
        let (run, followed) = (&*self.judge.run, self.followed);
        self.link
            .run(async |session| recover::probe(session, run, followed).await)
    }

    fn find(&mut self, tenant: &TenantName, id: &RequestId) -> Result<Option<Known>, LedgerError> {
        let found = self.link.run(async |session| {
            let rows = write::find(session, &[id.as_str()]).await?;
            Group::of(&rows, &self.place)
                .named(id, Some(tenant))
                .map_err(Fault::Refused)
        })?;
        Ok(found.first().map(Entry::known))
    }

    fn follow(&mut self, now: Timestamp) -> Result<Vec<Posting>, LedgerError> {
        if !self.is_registered()? {
            self.come_back(now)?;
        }
        let member = Member {
            judge: &self.judge,
            place: &self.place,
        };
        let (suspects, followed) = (&mut self.suspects, self.followed);
        let (postings, newest) = self.link.run(async |session| {
            recover::follow(session, &member, suspects, followed, now).await
        })?;
        self.followed = newest;
        self.mirror.note(&postings);
        self.mirror.turn_to(month_of(now));
        // What was read is told whatever becomes of the note: it is made again.
        if let Err(error) = self.note(newest > followed) {
            log::warn!("{error}");
        }
        let mut news = std::mem::take(&mut self.news);
        news.extend(postings);
        Ok(news)
    }

    fn total(&mut self) -> Result<Amounts, LedgerError> {
        Ok(self.mirror.total())
    }

    fn forget(&mut self, before: Timestamp) -> Result<bool, LedgerError> {
        self.link
            .run(async |session| recover::forget(session, before).await)
    }

    fn configure(&mut self, config: &config::Ledger) {
        self.judge.policy = config.on_unknown;
        self.durability = config.durability;
        if let Err(error) = self.link.retune(settings::running(self.durability)) {
            log::error!("{error}; `ledger.durability` counts from the next connection on");
        }
    }

    fn act_as(&mut self, run: RunId) -> RunId {
        std::mem::replace(&mut self.judge.run, run)
    }

    fn reopen(&mut self) -> Result<(), LedgerError> {
        self.is_away = true;
        self.link.connect()?;
        self.come_back(clock::now())
    }

    fn close(&mut self) {
        let run = &*self.judge.run;
        let left = self
            .link
            .run(async |session| recover::leave(session, run).await);
        if let Err(error) = left {
            log::warn!("{error}");
        }
        self.link.close();
    }
}
