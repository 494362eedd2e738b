//! A time in which the ledger cannot be written: when to try again, and what to log of it.

use super::error::LedgerError;
use crate::clock;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// From here on new openings are refused at once instead of waiting.
const LASTING: Duration = Duration::from_secs(1);
const LOG_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Trouble {
    since: Instant,
    retry_at: Instant,
    pause: Duration,
    logged_at: Option<Instant>,
    reopen: bool,
}

impl Trouble {
    pub fn new() -> Trouble {
        let now = clock::instant();
        Trouble {
            since: now,
            retry_at: now,
            pause: FIRST_PAUSE,
            logged_at: None,
            reopen: false,
        }
    }

    /// One more failure: waits twice as long, and logs it now and then.
    pub fn again(&mut self, error: &LedgerError, waiting: usize) {
        let now = clock::instant();
        self.retry_at = now + self.pause;
        self.pause = self.pause.saturating_mul(2).min(PAUSE_MAX);
        self.reopen = error.asks_for_reopening();
        let due = self
            .logged_at
            .is_none_or(|at| now.saturating_duration_since(at) >= LOG_EVERY);
        if due {
            self.logged_at = Some(now);
            log::error!("{error}; {waiting} writes wait");
        }
    }

    pub fn retry_at(&self) -> Instant {
        self.retry_at
    }

    pub fn is_due(&self) -> bool {
        clock::instant() >= self.retry_at
    }

    pub fn is_lasting(&self) -> bool {
        clock::instant().saturating_duration_since(self.since) >= LASTING
    }

    pub fn asks_for_reopening(&self) -> bool {
        self.reopen
    }

    pub fn over(self) {
        let lasted = clock::instant().saturating_duration_since(self.since);
        log::info!("the ledger is written again, after {lasted:.1?}");
    }
}
