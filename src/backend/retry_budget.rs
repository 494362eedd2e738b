//! How many retries a pool allows: a share of the requests of the last minute, and never less than a handful, so that a
//! pool in trouble is not asked twice for everything.

use crate::clock;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A minute in slices.
const SLICES: usize = 6;
const SLICE: Duration = Duration::from_secs(10);
/// Retries a minute that are always allowed.
const HANDFUL: u64 = 10;

#[derive(Debug)]
pub struct RetryBudget {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// (requests, retries) of each slice, the current one first.
    slices: [(u64, u64); SLICES],
    began: Instant,
}

impl Default for RetryBudget {
    fn default() -> RetryBudget {
        RetryBudget {
            state: Mutex::new(State {
                slices: [(0, 0); SLICES],
                began: clock::instant(),
            }),
        }
    }
}

impl RetryBudget {
    /// A request of the pool was sent.
    pub fn request(&self) {
        self.with(clock::instant(), |s| s.slices[0].0 += 1);
    }

    /// Takes a retry out of the budget, where there is one.
    pub fn take(&self, share: f64) -> bool {
        self.take_at(share, clock::instant())
    }

    fn take_at(&self, share: f64, now: Instant) -> bool {
        self.with(now, |s| {
            let (requests, retries) = s
                .slices
                .iter()
                .fold((0, 0), |(a, b), (c, d)| (a + c, b + d));
            let allowed = allowed(requests, share);
            let taken = retries < allowed;
            s.slices[0].1 += u64::from(taken);
            taken
        })
    }

    fn with<T>(&self, now: Instant, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while now.saturating_duration_since(state.began) >= SLICE {
            state.slices.rotate_right(1);
            state.slices[0] = (0, 0);
            state.began += SLICE;
        }
        change(&mut state)
    }
}

/// A share of the requests, rounded down, or the handful.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a float to an integer saturates, and counts of a minute lie far below its precision"
)]
fn allowed(requests: u64, share: f64) -> u64 {
    ((requests as f64 * share) as u64).max(HANDFUL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handful_is_always_allowed_and_more_only_as_a_share() {
        let budget = RetryBudget::default();
        let now = clock::instant();
        let taken = (0..20).filter(|_| budget.take_at(0.2, now)).count();
        assert_eq!(taken, 10);
        for _ in 0..100 {
            budget.request();
        }
        let taken = (0..40).filter(|_| budget.take_at(0.2, now)).count();
        assert_eq!(taken, 10, "a fifth of a hundred, less the ten before");
    }

    #[test]
    fn what_is_a_minute_old_is_forgotten() {
        let budget = RetryBudget::default();
        let now = clock::instant();
        while budget.take_at(0.2, now) {}
        assert!(budget.take_at(0.2, now + SLICE * 6));
    }
}
