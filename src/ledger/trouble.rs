//! A time in which the ledger cannot be written: how long it lasts, and when to try again.

use super::error::LedgerError;
use crate::clock;
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
