//! A time in which the ledger cannot be written: how long it lasts, when to try again, who is told at once.

use super::error::LedgerError;
use crate::clock;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// From here on new openings are refused at once instead of waiting.
const LASTING: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Trouble {
    since: Instant,
    retry_at: Instant,
    pause: Duration,
    reopen: bool,
}

impl Trouble {
    pub fn new() -> Trouble {
        let now = clock::instant();
        Trouble {
            since: now,
            retry_at: now,
            pause: FIRST_PAUSE,
            reopen: false,
        }
    }

    /// One more failure: the next try waits twice as long.
    pub fn again(&mut self, error: &LedgerError) {
        self.retry_at = clock::instant() + self.pause;
        self.pause = self.pause.saturating_mul(2).min(PAUSE_MAX);
        self.reopen = error.asks_for_reopening();
    }

    pub fn retry_at(&self) -> Instant {
        self.retry_at
    }

    pub fn is_due(&self) -> bool {
        clock::instant() >= self.retry_at
    }

    pub fn lasted(&self) -> Duration {
        clock::instant().saturating_duration_since(self.since)
    }

    pub fn is_lasting(&self) -> bool {
        self.lasted() >= LASTING
    }

    pub fn asks_for_reopening(&self) -> bool {
        self.reopen
    }
}

/// What the handle sees of a trouble: while one lasts, openings fail at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Down(Arc<RwLock<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    is_failing: bool,
    lasting: Option<LedgerError>,
    /// The last look-up failed.
    is_unreadable: bool,
}

impl Down {
    /// Why writes have failed for a while.
    pub fn why(&self) -> Option<LedgerError> {
        let seen = self.0.read().unwrap_or_else(PoisonError::into_inner);
        seen.lasting.clone()
    }

    /// Whether the last write, or the last look-up, failed.
    pub fn is_failing(&self) -> bool {
        let seen = self.0.read().unwrap_or_else(PoisonError::into_inner);
        seen.is_failing || seen.is_unreadable
    }

    /// A write failed; `lasting` says why where that has gone on for a while.
    pub fn fails(&self, lasting: Option<LedgerError>) {
        let mut seen = self.seen();
        seen.is_failing = true;
        seen.lasting = lasting;
    }

    /// Writes succeed again.
    pub fn recovers(&self) {
        let mut seen = self.seen();
        seen.is_failing = false;
        seen.lasting = None;
    }

    /// A look-up succeeded, or failed.
    pub fn reads(&self, succeeded: bool) {
        self.seen().is_unreadable = !succeeded;
    }

    fn seen(&self) -> RwLockWriteGuard<'_, Seen> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
