//! A commit in one round trip: of a single write whose entry need not be read first, because the id is new or the entry
//! this run's own. What is presumed of it is looked at as it is written, and where it is not so nothing is.

use super::commit::Batch;
use super::doubt::{Doubt, Sign};
use super::fault::Fault;
use super::link::Session;
use super::own::Own;
use super::row;
use super::single::{Before, Single};
use super::write;
use crate::ledger::entry::Entry;
use crate::ledger::rules::Verdict;
use crate::ledger::store::{Applied, Committed, Write};
use crate::ledger::sums::{Change, Posting, Usage, UsageKey};

/// A write, worked out on what is presumed.
pub(super) struct Direct {
    before: Before,
    /// What the entry becomes.
    pub entry: Box<Entry>,
    applied: Applied,
    posting: Option<Posting>,
    usage: Option<(UsageKey, Usage)>,
}

impl Direct {
    /// Nothing where the group must be read first.
    pub fn of(batch: &Batch<'_>, own: &Own) -> Option<Direct> {
        let [write] = batch.writes else { return None };
        let old = own.get(write.names());
        let before = match (write, old) {
            (Write::Open(..), None) => Before::Missing,
            (Write::Open(..), Some(_)) => return None,
            (_, old) => Before::Own(old?.owner.as_ref()?.opening, old?.record.state),
        };
        let (verdict, opened) = batch.judge.judge(old, write, batch.now);
        let Verdict::Put(entry, life) = verdict else {
            return None;
        };
        let mut change = Change::default();
        change.replace(old, &entry, life);
        let direct = Direct {
            before,
            applied: opened.map_or(Applied::Done, Applied::Opened),
            posting: only(change.postings().into_iter())?,
            usage: only(change.usages().map(|(key, usage)| (key.clone(), *usage)))?,
            entry,
        };
        // The statement for a new entry has no place for usage, which none of them adds.
        let fits = direct.before != Before::Missing || direct.usage.is_none();
        fits.then_some(direct)
    }

    fn postings(&self) -> Vec<Posting> {
        self.posting.iter().cloned().collect()
    }

    /// What it did, once it has.
    pub fn committed(self) -> Committed {
        Committed {
            postings: self.postings(),
            applied: vec![self.applied],
        }
    }

    fn doubt(&self) -> Doubt {
        Doubt {
            sign: Sign::Entry(self.entry.clone()),
            postings: self.postings(),
        }
    }

    /// Whether it was as presumed, and is written.
    pub async fn commit(
        &self,
        session: &Session,
        run: &str,
        doubt: &mut Option<Doubt>,
    ) -> Result<bool, Fault> {
        let single = Single {
            before: self.before,
            entry: &self.entry,
            posting: self.posting.as_ref(),
            usage: self.usage.as_ref(),
            run,
        };
        let statement = single.statement(session).await?;
        let lock = write::lock_statement(session).await?;
        let record = row::record(&self.entry)?;
        // From here on nothing fails before it is sent: the commit would go without it.
        doubt.replace(self.doubt());
        let (begun, locked, written, committed) = tokio::join!(
            biased;
            session.batch("BEGIN"),
            session.client.execute(&lock, &[]),
            single.write(session, &statement, &record),
            session.batch("COMMIT")
        );
        begun?;
        locked?;
        let is_written = written?;
        committed?;
        Ok(is_written)
    }
}

/// The only one there is, if any; nothing where there are more.
fn only<T>(mut all: impl Iterator<Item = T>) -> Option<Option<T>> {
    let first = all.next();
    all.next().is_none().then_some(first)
}
