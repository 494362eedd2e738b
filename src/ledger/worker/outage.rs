//! What the thread does while the ledger cannot be written: waits, tries again, and tells who asks at once.

use super::Worker;
use crate::clock;
use crate::ledger::error::LedgerError;
use crate::ledger::queue::Job;
use crate::ledger::trouble::Trouble;
use std::time::Duration;

/// So many writes may fail for themselves while the others succeed.
const ASIDE_MAX: usize = 32;

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
            self.is_told = true;
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
            let count = self.backlog.aside() + group.len();
            self.complain(&format!(
                "{error}; {count} writes fail though others succeed, and are tried again every now and then"
            ));
            self.backlog.set_aside(group);
            self.aside_error = Some(error);
        }
        self.recover();
    }

    fn recover(&mut self) {
        if let Some(trouble) = self.trouble.take()
            && std::mem::take(&mut self.is_told)
        {
            log::info!(
                "the ledger is written again, after {:.1?}",
                trouble.lasted()
            );
        }
        self.weigh_aside();
        self.sight.down.reads(true);
        self.is_unsure = true;
        self.tick_at = clock::instant();
    }

    /// A ledger that takes openings, and the ends of too many of them not, counts as down.
    pub(super) fn weigh_aside(&mut self) {
        let aside = self.backlog.aside();
        if aside == 0 {
            self.aside_error = None;
            return self.sight.down.recovers();
        }
        let error = self.aside_error.as_ref();
        let lasting = error.filter(|_| aside >= ASIDE_MAX).cloned();
        self.sight.down.fails(lasting);
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
