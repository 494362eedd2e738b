//! The time between the content events of a stream, and the longest of a pool within the last minute.

use crate::clock;
use prometheus::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The maximum is kept over this half window and the one before it.
const HALF: Duration = Duration::from_secs(30);

/// The longest gap of a pool in the last 30 to 60 seconds.
#[derive(Debug)]
pub struct Longest {
    /// The current half's maximum in nanoseconds: looked at on each event without the lock.
    current: AtomicU64,
    halves: Mutex<Halves>,
}

#[derive(Debug)]
struct Halves {
    began: Instant,
    previous: u64,
}

impl Longest {
    pub fn new() -> Arc<Longest> {
        Arc::new(Longest {
            current: AtomicU64::new(0),
            halves: Mutex::new(Halves {
                began: clock::instant(),
                previous: 0,
            }),
        })
    }

    fn see(&self, gap: Duration, now: Instant) {
        let nanos = u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX);
        if nanos > self.current.load(Ordering::Relaxed) {
            self.turn(now);
            self.current.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    /// Seconds.
    pub fn longest(&self, now: Instant) -> f64 {
        let previous = self.turn(now);
        let nanos = previous.max(self.current.load(Ordering::Relaxed));
        Duration::from_nanos(nanos).as_secs_f64()
    }

    /// Goes on to the half of `now`; the maximum of the half before it.
    fn turn(&self, now: Instant) -> u64 {
        let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        let past = now.saturating_duration_since(halves.began);
        if past >= HALF {
            let current = self.current.swap(0, Ordering::Relaxed);
            halves.previous = if past < HALF * 2 { current } else { 0 };
            halves.began = now;
        }
        halves.previous
    }
}

/// The gap meter of one stream, with its pool's series looked up once.
pub struct Gaps {
    histogram: Histogram,
    longest: Arc<Longest>,
    last: Option<Instant>,
}

impl Gaps {
    pub(super) fn new(histogram: Histogram, longest: Arc<Longest>) -> Gaps {
        Gaps {
            histogram,
            longest,
            last: None,
        }
    }

    /// A content event has come, now.
    pub fn event(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            let gap = now.duration_since(last);
            self.histogram.observe(gap.as_secs_f64());
            self.longest.see(gap, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_gap_is_forgotten_after_a_minute() {
        let longest = Longest::new();
        let start = clock::instant();
        longest.see(Duration::from_secs(3), start);
        longest.see(Duration::from_secs(1), start);
        assert_eq!(longest.longest(start), 3.0);
        assert_eq!(longest.longest(start + HALF + HALF / 2), 3.0);
        assert_eq!(longest.longest(start + HALF * 4), 0.0);
    }
}
