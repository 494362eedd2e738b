//! An opening that is waited for: where its answer is not taken, it is undone.

use super::entry::Opened;
use super::error::LedgerError;
use super::queue::{Abandon, Command};
use super::rules::Abandoned;
use crate::record::Record;
use std::sync::mpsc::Sender;

/// Undoes an opening whose answer was not taken: the client left, or it came too late.
pub(super) struct Waiting<'a> {
    queue: &'a Sender<Command>,
    abandon: Option<Abandon>,
    pub why: Abandoned,
}

impl<'a> Waiting<'a> {
    pub fn of(queue: &'a Sender<Command>, record: &Record, opening: i64) -> Waiting<'a> {
        let abandon = Abandon {
            tenant: record.tenant.clone(),
            id: record.request_id.clone(),
            opening,
            why: Abandoned::Left,
        };
        Waiting {
            queue,
            abandon: Some(abandon),
            why: Abandoned::Left,
        }
    }

    /// The answer was taken: there is nothing to undo, unless it came too late.
    pub fn end(&mut self, result: &Result<Opened, LedgerError>) {
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
        let undo = Command::Abandon(Abandon { why, ..abandon });
        if self.queue.send(undo).is_err() {
            log::debug!("an opening was abandoned after the ledger's close");
        }
    }
}
