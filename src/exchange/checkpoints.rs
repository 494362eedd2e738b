//! When the ledger is told how far a running request has come, for the case of a crash.

use crate::clock;
use std::time::{Duration, Instant};

const FIRST: Duration = Duration::from_secs(1);
/// Where the figures that the ledger last held are charged after a crash.
const OFTEN: Duration = Duration::from_secs(1);
const SELDOM: Duration = Duration::from_secs(10);

/// The next time that is due. What is told beside it, because something happened, puts it off for nothing.
#[derive(Debug)]
pub struct Checkpoints(Instant);

impl Checkpoints {
    pub fn new() -> Checkpoints {
        Checkpoints(clock::instant() + FIRST)
    }

    /// Whether it is time, and if so when the next is.
    pub fn is_due(&mut self, often: bool) -> bool {
        self.is_due_at(clock::instant(), often)
    }

    fn is_due_at(&mut self, now: Instant, often: bool) -> bool {
        if now < self.0 {
            return false;
        }
        self.0 = now + if often { OFTEN } else { SELDOM };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_after_a_second_and_the_others_as_often_as_is_asked() {
        let mut checkpoints = Checkpoints::new();
        let start = checkpoints.0 - FIRST;
        let mut due = |ms, often| checkpoints.is_due_at(start + Duration::from_millis(ms), often);
        assert!(!due(999, false));
        assert!(due(1000, false));
        assert!(!due(10_999, false));
        assert!(due(11_000, true));
        assert!(!due(11_999, true));
        assert!(due(12_000, true));
    }
}
