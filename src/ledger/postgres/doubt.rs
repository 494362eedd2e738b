//! A commit of which nobody knows whether it came through, because the connection was lost on the way, and how that is
//! found out afterwards.

use super::fault::Fault;
use super::group::Group;
use super::link::Session;
use super::write;
use crate::ledger::entry::Entry;
use crate::ledger::sums::Posting;
use crate::record::EndedBy;

#[derive(Clone, Debug)]
pub(super) struct Doubt {
    pub sign: Sign,
    /// What it did to the accounts, if it came through.
    pub postings: Vec<Posting>,
}

/// By what it is seen that a commit came through.
#[derive(Clone, Debug)]
pub(super) enum Sign {
    /// The transaction's number.
    Transaction(i64),
    /// What it made of its only entry, which was new or this run's own and open.
    Entry(Box<Entry>),
}

impl Doubt {
    pub async fn came_through(&self, session: &Session, place: &str) -> Result<bool, Fault> {
        let written = match &self.sign {
            Sign::Transaction(number) => return write::came_through(session, *number).await,
            Sign::Entry(entry) => entry,
        };
        let rows = write::find(session, &[written.record.request_id.as_str()]).await?;
        let mut found = Group::of(&rows, place).all();
        found.retain(|entry| entry.record.tenant == written.record.tenant);
        Ok(was_written(written, found.first()))
    }
}

/// Whether what is found of an entry follows from what was to be written of it. One that stayed open was taken for
/// crashed with all that this run had open, and a crash is told from any other end for ever.
fn was_written(written: &Entry, found: Option<&Entry>) -> bool {
    let same_life = found.filter(|now| now.record.admitted_at == written.record.admitted_at);
    match written.is_open() {
        true => same_life.is_some_and(|now| now.owner.is_none() || now.owner == written.owner),
        // One that is gone was forgotten, which only what has ended is.
        false => !same_life
            .is_some_and(|now| now.is_open() || now.record.ended_by == Some(EndedBy::Crash)),
    }
}
