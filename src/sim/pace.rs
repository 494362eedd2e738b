//! The time model: when the tokens of one answer are due.

use crate::clock;
use std::pin::Pin;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// How far a wait may reach; what lies beyond is as good as never.
const FAR: Duration = Duration::from_secs(10 * 365 * 86_400);

/// An absolute schedule, so that a late wake-up delays one token and not all.
/// One timer serves the whole answer.
pub struct Pace {
    next_at: Instant,
    every: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Pace {
    /// Begins the prefill now; the first token is due at its end.
    pub fn start(prefill: Duration, every: Duration) -> Pace {
        let next_at = later(now(), prefill);
        Pace {
            next_at,
            every,
            timer: Box::pin(tokio::time::sleep_until(next_at)),
        }
    }

    /// Waits for the end of the prefill.
    pub async fn prefilled(&mut self) {
        self.wait_until(self.next_at).await;
    }

    /// Waits until the next token is due.
    pub async fn token(&mut self) {
        self.wait_until(self.next_at).await;
        self.next_at = later(self.next_at, self.every);
    }

    /// Stops for a while; all tokens to come are due later by as much.
    pub async fn stall(&mut self, lasts: Duration) {
        if !lasts.is_zero() {
            self.wait_until(later(now(), lasts)).await;
            self.next_at = later(self.next_at, lasts);
        }
    }

    async fn wait_until(&mut self, at: Instant) {
        if self.timer.deadline() != at {
            self.timer.as_mut().reset(at);
        }
        self.timer.as_mut().await;
    }
}

fn now() -> Instant {
    Instant::from_std(clock::instant())
}

fn later(at: Instant, by: Duration) -> Instant {
    at.checked_add(by.min(FAR)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tokens_are_due_on_a_schedule_that_does_not_drift() {
        let started = now();
        let mut pace = Pace::start(Duration::from_millis(4), Duration::from_micros(500));
        pace.prefilled().await;
        for _ in 0..5 {
            pace.token().await;
        }
        assert_eq!(
            pace.next_at,
            later(pace.timer.deadline(), Duration::from_micros(500))
        );
        assert!(now() >= later(started, Duration::from_millis(6)));
        pace.stall(Duration::from_millis(3)).await;
        pace.token().await;
        assert!(now() >= later(started, Duration::from_micros(9500)));
    }

    #[tokio::test]
    async fn absurd_times_do_not_overflow() {
        let mut pace = Pace::start(Duration::MAX, Duration::MAX);
        let token = tokio::time::timeout(Duration::ZERO, pace.token()).await;
        assert!(token.is_err());
    }
}
