//! The group commit: reads what the group names, works it out, writes it, all in one transaction. A single write is tried
//! without reading first.

use super::direct::Direct;
use super::doubt::{Doubt, Sign};
use super::fault::Fault;
use super::group::Group;
use super::link::{Link, Session};
use super::mirror::Mirror;
use super::own::Own;
use super::write::{self, Writing};
use crate::clock::Timestamp;
use crate::ledger::error::LedgerError;
use crate::ledger::judge::Judge;
use crate::ledger::store::{Applied, Committed, Write};
use crate::ledger::sums::Change;

/// A group and what it is judged by.
pub(super) struct Batch<'a> {
    pub writes: &'a [Write],
    pub judge: &'a Judge,
    pub now: Timestamp,
    pub place: &'a str,
}

/// Applies a group. Where one of its entries cannot be written, the others are all the same. Where the connection is
/// lost on the way, whether it was applied is in doubt.
pub(super) fn commit(
    link: &mut Link,
    batch: &Batch<'_>,
    mirror: &mut Mirror,
    own: &mut Own,
) -> Result<Committed, LedgerError> {
    let mut doubt = None;
    let done = match Direct::of(batch, own) {
        Some(direct) => batch.directly(link, direct, own, &mut doubt),
        None => batch.by_reading(link, own, &mut doubt),
    };
    match &done {
        Ok(committed) => mirror.note(&committed.postings),
        Err(fault) => {
            own.forget_all();
            if fault.ends_the_connection() {
                mirror.doubt = doubt;
            }
        }
    }
    done.map_err(|fault| fault.at(batch.place))
}

impl Batch<'_> {
    /// Where the entry is not as presumed, or the server does not take it, it is as if nothing had been known of it.
    fn directly(
        &self,
        link: &mut Link,
        direct: Direct,
        own: &mut Own,
        doubt: &mut Option<Doubt>,
    ) -> Result<Committed, Fault> {
        let run = &*self.judge.run;
        match link.attempt(async |session| direct.commit(session, run, doubt).await) {
            Ok(true) => {
                own.note(&direct.entry, run);
                Ok(direct.committed())
            }
            Err(fault) if !fault.is_of_one_entry() => Err(fault),
            Ok(false) | Err(_) => {
                doubt.take();
                self.by_reading(link, own, doubt)
            }
        }
    }

    fn by_reading(
        &self,
        link: &mut Link,
        own: &mut Own,
        doubt: &mut Option<Doubt>,
    ) -> Result<Committed, Fault> {
        let names = self.writes.iter().map(Write::names);
        names.for_each(|names| own.forget(names));
        match link.attempt(async |session| self.together(session, own, doubt).await) {
            Err(fault) if fault.is_of_one_entry() => {
                doubt.take();
                link.attempt(async |session| self.one_by_one(session, doubt).await)
            }
            other => other,
        }
    }

    async fn together(
        &self,
        session: &Session,
        own: &mut Own,
        doubt: &mut Option<Doubt>,
    ) -> Result<Committed, Fault> {
        let ids: Vec<&str> = self.writes.iter().map(|w| w.names().1.as_str()).collect();
        let (rows, transaction) = write::begin_with(session, &ids).await?;
        let mut group = Group::of(&rows, self.place);
        let apply = |write| group.apply(write, self.judge, self.now);
        let applied = self.writes.iter().map(apply).collect();
        let writing = Writing {
            entries: group.to_write(),
            change: &group.change,
            run: &self.judge.run,
        };
        let postings = group.change.postings();
        doubt.replace(Doubt {
            sign: Sign::Transaction(transaction),
            postings: postings.clone(),
        });
        writing.commit(session).await?;
        let written = writing.entries.iter();
        written.for_each(|entry| own.note(entry, &self.judge.run));
        Ok(Committed { applied, postings })
    }

    async fn one_by_one(
        &self,
        session: &Session,
        doubt: &mut Option<Doubt>,
    ) -> Result<Committed, Fault> {
        let (_, transaction) = write::begin_with(session, &[]).await?;
        let mut all = Change::default();
        let mut applied = Vec::with_capacity(self.writes.len());
        for write in self.writes {
            session.batch("SAVEPOINT entry").await?;
            match self.only(session, write).await {
                Ok((done, change)) => {
                    applied.push(done);
                    all.absorb(change);
                }
                Err(fault) if fault.is_of_one_entry() => {
                    session.batch("ROLLBACK TO SAVEPOINT entry").await?;
                    applied.push(Applied::Failed(fault.at(self.place)));
                }
                Err(fault) => return Err(fault),
            }
        }
        let sums = Writing {
            entries: Vec::new(),
            change: &all,
            run: &self.judge.run,
        };
        let postings = all.postings();
        doubt.replace(Doubt {
            sign: Sign::Transaction(transaction),
            postings: postings.clone(),
        });
        sums.commit(session).await?;
        Ok(Committed { applied, postings })
    }

    /// Writes one entry, and leaves the sums to the end.
    async fn only(&self, session: &Session, write: &Write) -> Result<(Applied, Change), Fault> {
        let rows = write::find(session, &[write.names().1.as_str()]).await?;
        let mut group = Group::of(&rows, self.place);
        let applied = group.apply(write, self.judge, self.now);
        let entries = Writing {
            entries: group.to_write(),
            change: &Change::default(),
            run: &self.judge.run,
        };
        entries.put(session).await?;
        Ok((applied, group.change))
    }
}
