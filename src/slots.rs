//! Execution slots: a bounded count of what may run at once, for tenants, pools and backends alike.
//! A slot is a guard: it is given back when it is dropped, and nowhere else.

use crate::clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The wait that is told before any slot was given back, and the bounds of what is told afterwards.
const WAIT_UNKNOWN: Duration = Duration::from_secs(1);
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The slots of one tenant, pool or backend.
#[derive(Debug)]
pub struct Slots {
    max: AtomicUsize,
    used: AtomicUsize,
    since: Instant,
    /// When a slot was last given back, in microseconds of `since`; 0: never.
    returned_at: AtomicU64,
    /// The time between two returns, in microseconds, smoothed over about eight of them; 0: not known.
    interval: AtomicU64,
}

/// One taken slot.
#[derive(Debug)]
pub struct Slot {
    of: Arc<Slots>,
}

impl Slots {
    /// `None`: unlimited.
    pub fn new(max: Option<usize>) -> Arc<Slots> {
        Arc::new(Slots {
            max: AtomicUsize::new(max.unwrap_or(usize::MAX)),
            used: AtomicUsize::new(0),
            since: clock::instant(),
            returned_at: AtomicU64::new(0),
            interval: AtomicU64::new(0),
        })
    }

    /// Takes a slot, or nothing where all are taken.
    pub fn take(self: &Arc<Slots>) -> Option<Slot> {
        let max = self.max.load(Ordering::Relaxed);
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                (used < max).then_some(used + 1)
            })
            .ok()
            .map(|_| Slot { of: self.clone() })
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// `None`: unlimited.
    pub fn max(&self) -> Option<usize> {
        let max = self.max.load(Ordering::Relaxed);
        (max != usize::MAX).then_some(max)
    }

    /// Changes the bound. Slots already taken stay taken, also over a smaller bound.
    pub fn set_max(&self, max: Option<usize>) {
        self.max.store(max.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// How long it takes, by the last returns, until the next slot comes free.
    pub fn expected_wait(&self) -> Duration {
        match self.interval.load(Ordering::Relaxed) {
            0 => WAIT_UNKNOWN,
            micros => Duration::from_micros(micros).clamp(WAIT_MIN, WAIT_MAX),
        }
    }

    /// Returns race each other here; an estimate may lose one.
    fn note_return(&self) {
        let now = u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let last = self.returned_at.swap(now.max(1), Ordering::Relaxed);
        if last == 0 {
            return;
        }
        let gap = now.saturating_sub(last).max(1);
        let before = self.interval.load(Ordering::Relaxed);
        let smoothed = if before == 0 {
            gap
        } else {
            (before.saturating_mul(7).saturating_add(gap)) / 8
        };
        self.interval.store(smoothed, Ordering::Relaxed);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.of.note_return();
        self.of.used.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_slots_are_taken_than_there_are_and_a_dropped_one_is_free_again() {
        let slots = Slots::new(Some(2));
        let first = slots.take();
        let second = slots.take();
        assert!(first.is_some() && second.is_some());
        assert!(slots.take().is_none());
        drop(first);
        assert_eq!(slots.used(), 1);
        assert!(slots.take().is_some());
    }

    #[test]
    fn the_expected_wait_is_told_from_returns() {
        let slots = Slots::new(Some(1));
        assert_eq!(slots.expected_wait(), WAIT_UNKNOWN);
        for _ in 0..20 {
            drop(slots.take());
        }
        assert_eq!(slots.expected_wait(), WAIT_MIN);
    }

    #[test]
    fn a_smaller_bound_leaves_taken_slots_alone_and_refuses_new_ones() {
        let slots = Slots::new(None);
        let taken: Vec<_> = (0..3).filter_map(|_| slots.take()).collect();
        slots.set_max(Some(2));
        assert!(slots.take().is_none());
        assert_eq!((slots.used(), slots.max()), (3, Some(2)));
        drop(taken);
        assert!(slots.take().is_some());
    }
}
