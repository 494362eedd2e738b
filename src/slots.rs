//! Execution slots: a bounded count of what may run at once, for tenants, pools and backends alike.
//! A slot is a guard: it is given back when it is dropped, and nowhere else. Whoever waits for one watches for that.

use crate::clock;
use arc_swap::ArcSwap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The wait that is told before any slot was given back, and the bounds of what is told afterwards.
pub const WAIT_UNKNOWN: Duration = Duration::from_secs(1);
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(60);
/// Returns over which the time that a slot is held is averaged, and how many of them make a measurement.
const RETURNS_SMOOTHED: u64 = 16;
const RETURNS_MEASURED: u64 = 3;

/// Hears that a slot was given back, or that there are more of them.
pub trait Watch: Send + Sync {
    fn freed(&self);
}

/// The slots of one tenant, pool or backend.
#[derive(Debug)]
pub struct Slots {
    max: AtomicUsize,
    used: AtomicUsize,
    since: Instant,
    held: Held,
    /// Whether there is any watcher: most tenants have none, and need not look.
    watched: AtomicBool,
    watchers: ArcSwap<Vec<Weak<dyn Watch>>>,
    /// Which watcher hears of the next return first.
    turn: AtomicUsize,
}

/// How long slots are held. Returns race each other in it; an estimate may lose one.
#[derive(Debug, Default)]
struct Held {
    returns: AtomicU64,
    /// The mean of the last returns, in microseconds.
    mean: AtomicU64,
}

/// One taken slot.
#[derive(Debug)]
pub struct Slot {
    of: Arc<Slots>,
    /// When it was taken, in microseconds of the slots' `since`; nothing once it goes back unused.
    taken_at: Option<u64>,
}

impl Slots {
    /// `None`: unlimited.
    pub fn new(max: Option<usize>) -> Arc<Slots> {
        Arc::new(Slots {
            max: AtomicUsize::new(max.unwrap_or(usize::MAX)),
            used: AtomicUsize::new(0),
            since: clock::instant(),
            held: Held::default(),
            watched: AtomicBool::new(false),
            watchers: ArcSwap::from_pointee(Vec::new()),
            turn: AtomicUsize::new(0),
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
            .map(|_| Slot {
                of: self.clone(),
                taken_at: Some(self.micros()),
            })
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub fn is_full(&self) -> bool {
        self.used.load(Ordering::Acquire) >= self.max.load(Ordering::Relaxed)
    }

    /// `None`: unlimited.
    pub fn max(&self) -> Option<usize> {
        let max = self.max.load(Ordering::Relaxed);
        (max != usize::MAX).then_some(max)
    }

    /// Changes the bound. Slots already taken stay taken, also over a smaller bound.
    pub fn set_max(&self, max: Option<usize>) {
        self.max.store(max.unwrap_or(usize::MAX), Ordering::Relaxed);
        self.tell_watchers();
    }

    /// The time from one return to the next while all are taken: what a slot was held for, by the last returns, over
    /// the number of slots. Nothing before there were a few returns, and where slots are unlimited.
    pub fn interval(&self) -> Option<Duration> {
        let slots = u64::try_from(self.max()?).unwrap_or(u64::MAX).max(1);
        let mean = self.held.mean()?;
        Some(Duration::from_nanos(
            mean.saturating_mul(1000).checked_div(slots).unwrap_or(0),
        ))
    }

    /// How long it takes until the next slot comes free.
    pub fn expected_wait(&self) -> Duration {
        self.interval()
            .map_or(WAIT_UNKNOWN, |t| t.clamp(WAIT_MIN, WAIT_MAX))
    }

    /// Has a watcher told of every return from now on. Whoever finds no slot after this misses no return.
    pub fn watch<W: Watch + 'static>(&self, watcher: &Weak<W>) {
        let is_it = |w: &Weak<dyn Watch>| std::ptr::addr_eq(w.as_ptr(), watcher.as_ptr());
        if !self.watchers.load().iter().any(is_it) {
            self.watchers.rcu(|all| {
                let others = all.iter().filter(|w| w.strong_count() > 0 && !is_it(w));
                let mut all: Vec<Weak<dyn Watch>> = others.cloned().collect();
                all.push(watcher.clone());
                all
            });
            self.watched.store(true, Ordering::Release);
        }
        // a return that does not see the watcher is seen by the look for a slot that follows
        fence(Ordering::SeqCst);
    }

    /// The watchers take turns in being the first to hear: none of them is always late.
    fn tell_watchers(&self) {
        fence(Ordering::SeqCst);
        if !self.watched.load(Ordering::Acquire) {
            return;
        }
        let watchers = self.watchers.load();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % watchers.len();
        let in_turn = watchers.iter().cycle().skip(first).take(watchers.len());
        for watcher in in_turn.filter_map(Weak::upgrade) {
            watcher.freed();
        }
    }

    fn micros(&self) -> u64 {
        let elapsed = clock::instant().saturating_duration_since(self.since);
        u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX)
    }
}

impl Held {
    /// The first returns are averaged in full, so that one odd first return does not last.
    fn note(&self, micros: u64) {
        let over = (self.returns.fetch_add(1, Ordering::Relaxed) + 1).min(RETURNS_SMOOTHED);
        let before = self.mean.load(Ordering::Relaxed);
        let sum = before.saturating_mul(over - 1).saturating_add(micros);
        self.mean.store(sum / over, Ordering::Relaxed);
    }

    fn mean(&self) -> Option<u64> {
        let enough = self.returns.load(Ordering::Relaxed) >= RETURNS_MEASURED;
        enough.then(|| self.mean.load(Ordering::Relaxed))
    }
}

impl Slot {
    /// Gives a slot back that was not used: it counts as no return and nobody is told.
    pub fn put_back(mut self) {
        self.taken_at = None;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let held = self.taken_at.map(|t| self.of.micros().saturating_sub(t));
        if let Some(held) = held {
            self.of.held.note(held);
        }
        self.of.used.fetch_sub(1, Ordering::AcqRel);
        if held.is_some() {
            self.of.tell_watchers();
        }
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
        assert!(slots.take().is_none() && slots.is_full());
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
    fn the_interval_is_the_mean_time_held_over_the_slots() {
        let held = Held::default();
        for micros in [9_000_000, 1_000_000, 2_000_000] {
            assert_eq!(held.mean(), None);
            held.note(micros);
        }
        assert_eq!(held.mean(), Some(4_000_000));
        for _ in 0..200 {
            held.note(1_000_000);
        }
        let mean = held.mean().unwrap();
        assert!((999_900..1_000_100).contains(&mean), "{mean}");

        let slots = Slots::new(Some(4));
        slots.held.returns.store(3, Ordering::Relaxed);
        slots.held.mean.store(2_000_000, Ordering::Relaxed);
        assert_eq!(slots.interval(), Some(Duration::from_millis(500)));
        slots.set_max(None);
        assert_eq!(slots.interval(), None);
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

    #[derive(Default)]
    struct Ear(AtomicUsize);

    impl Watch for Ear {
        fn freed(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn watchers_hear_of_each_return_once_and_of_a_slot_put_back_never() {
        let slots = Slots::new(Some(1));
        let ears: [Arc<Ear>; 2] = Default::default();
        for ear in ears.iter().chain(&ears) {
            slots.watch(&Arc::downgrade(ear));
        }
        drop(slots.take());
        slots.take().unwrap().put_back();
        assert_eq!(slots.used(), 0);
        slots.set_max(Some(5));
        let heard = |ear: &Arc<Ear>| ear.0.load(Ordering::Relaxed);
        assert_eq!(ears.each_ref().map(heard), [2, 2]);
        let [gone, stays] = ears;
        drop(gone);
        slots.watch(&Arc::downgrade(&Arc::new(Ear::default())));
        drop(slots.take());
        assert_eq!(heard(&stays), 3);
        assert_eq!(slots.watchers.load().len(), 2, "the dead are forgotten");
    }
}
