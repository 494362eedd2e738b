//! What the thread does while the ledger cannot be written: waits, tries again, and tells who asks at once.

use super::Worker;
use crate::clock;
use crate::ledger::error::LedgerError;
use crate::ledger::queue::Job;
use crate::ledger::trouble::Trouble;
use std::time::Duration;

impl Worker {
    pub(super) fn fail(&mut self, group: Vec<Job>, error: &LedgerError) {
        self.backlog.take_back(group, error);
        self.suffer(error);
    }

    /// The ledger cannot be written: waits a while.
    pub(super) fn suffer(&mut self, error: &LedgerError) {
        self.observer.failed(error);
        let trouble = self.trouble.get_or_insert_with(Trouble::new);
        trouble.again(error);
        let lasting = trouble.is_lasting().then(|| error.clone());
        self.sight.down.fails(lasting);
        self.complain(&format!("{error}; {} writes wait", self.backlog.len()));
    }

    /// Logs an error, unless one was logged a moment ago.
    pub(super) fn complain(&mut self, text: &str) {
        const PAUSE: Duration = Duration::from_secs(10);
        let now = clock::instant();
        if self
            .logged_at
            .is_none_or(|at| now.saturating_duration_since(at) >= PAUSE)
        {
            self.logged_at = Some(now);
            log::error!("{text}");
        }
    }

    /// In trouble: once the ledger takes a write again, first writes what must not be lost, then goes on as usual.
    pub(super) fn retry(&mut self) {
        let Some(trouble) = self.trouble.as_ref().filter(|t| t.is_due()) else {
            return;
        };
        self.sight.pulse.asks();
        let ready = match trouble.asks_for_reopening() {
            true => self.store.reopen(),
            false => Ok(()),
        };
        if let Err(error) = ready.and_then(|()| self.store.probe(clock::now())) {
            return self.suffer(&error);
        }
        while let Some(group) = self.backlog.next_settlements() {
            let Err((group, error)) = self.commit(group) else {
                continue;
            };
            let of_all = group.len() > 1 || error.is_locked();
            if of_all || self.store.probe(clock::now()).is_err() {
                return self.fail(group, &error);
            }
            log::error!("{error}; set aside and tried again every now and then: {group:?}");
            self.backlog.set_aside(group);
        }
        self.recover();
    }

    fn recover(&mut self) {
        if let Some(trouble) = self.trouble.take() {
            log::info!(
                "the ledger is written again, after {:.1?}",
                trouble.lasted()
            );
        }
        self.sight.down.is_over();
        self.is_unsure = true;
        self.tick_at = clock::instant();
    }

    /// A commit that was reported failed may have come through all the same: what it added was never noted.
    pub(super) fn recount(&mut self) {
        match self.store.total() {
            Ok(total) => {
                self.total = total;
                self.tell();
            }
            Err(error) => self.complain(&format!("{error}; the counts of entries may be off")),
        }
    }
}
