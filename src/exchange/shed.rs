//! Adaptive load shedding: who is turned away while there is too much to do. Each pool has one; the event loop and the
//! descriptors weigh in every one of them, the wait only in its own pool's.
//!
//! Over a mark, batch requests are refused at once, and normal ones too where that has not helped within
//! [`STEP_UP`]; core ones never, and what runs goes on. The way back is slower: a class is let in again only after the
//! load has stayed under [`CALM`] of every mark for [`STEP_DOWN`], so that the load it brings does not shut it out in
//! the next moment.

use crate::config::{self, Priority};
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long batch requests are refused before normal ones are too.
const STEP_UP: Duration = Duration::from_secs(1);
/// How long the load must be low before a class is let in again.
const STEP_DOWN: Duration = Duration::from_secs(2);
/// What is low: this share of a mark.
const CALM: f64 = 0.7;
/// Lateness of the event loop counts where it lasts: the least of so many readings.
const LAGS: usize = 5;

/// What is measured, a few times a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Readings {
    /// The mean wait for a slot of the pool.
    pub queue_wait: Duration,
    /// How late the event loop woke, last.
    pub loop_lag: Duration,
    /// Descriptors that are open, and that may be; 0 where that is not known.
    pub open_fds: u64,
    pub max_fds: u64,
}

impl fmt::Display for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Readings {
            queue_wait,
            loop_lag,
            open_fds,
            max_fds,
        } = self;
        write!(
            f,
            "mean queue wait {queue_wait:.0?}, event loop late by {loop_lag:.0?}, {open_fds} of {max_fds} descriptors open"
        )
    }
}

/// Who is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Nobody,
    Batch,
    Normal,
}

impl Level {
    fn turned_away(self) -> &'static str {
        match self {
            Level::Nobody => "none",
            Level::Batch => "batch",
            Level::Normal => "batch and normal",
        }
    }
}

/// The state of one pool's shedding. Pure: the time is given.
#[derive(Debug)]
struct Shedding {
    marks: config::Shed,
    level: Level,
    /// The last readings of the loop's lateness, the last first.
    lags: [Duration; LAGS],
    /// Since when the level stands.
    since: Option<Instant>,
    /// Since when the load has been low.
    calm_since: Option<Instant>,
}

impl Shedding {
    fn new(marks: config::Shed) -> Shedding {
        Shedding {
            marks,
            level: Level::Nobody,
            lags: [Duration::ZERO; LAGS],
            since: None,
            calm_since: None,
        }
    }

    fn note(&mut self, readings: &Readings, now: Instant) {
        let load = self.load(readings);
        if load > 1.0 {
            self.calm_since = None;
            self.step_up(now);
        } else if load < CALM {
            self.step_down(now);
        } else {
            self.calm_since = None;
        }
    }

    fn step_up(&mut self, now: Instant) {
        let lasts = |since: Option<Instant>| {
            since.is_some_and(|since| now.saturating_duration_since(since) >= STEP_UP)
        };
        match self.level {
            Level::Nobody => self.set(Level::Batch, now),
            Level::Batch if lasts(self.since) => self.set(Level::Normal, now),
            Level::Batch | Level::Normal => {}
        }
    }

    fn step_down(&mut self, now: Instant) {
        let since = *self.calm_since.get_or_insert(now);
        if now.saturating_duration_since(since) < STEP_DOWN {
            return;
        }
        let lower = match self.level {
            Level::Nobody => return,
            Level::Batch => Level::Nobody,
            Level::Normal => Level::Batch,
        };
        self.set(lower, now);
        // the next class waits as long again
        self.calm_since = Some(now);
    }

    fn set(&mut self, level: Level, now: Instant) {
        self.level = level;
        self.since = Some(now);
    }

    /// The load as a share of its mark, by whichever is the worst.
    fn load(&mut self, readings: &Readings) -> f64 {
        self.lags.rotate_right(1);
        if let Some(last) = self.lags.first_mut() {
            *last = readings.loop_lag;
        }
        let lasting = self.lags.iter().min().copied().unwrap_or_default();
        let wait = share(readings.queue_wait, self.marks.queue_wait);
        let lag = share(lasting, self.marks.loop_lag);
        wait.max(lag).max(self.descriptors(readings))
    }

    /// The room that is to stay free over the room that is free.
    fn descriptors(&self, readings: &Readings) -> f64 {
        if readings.max_fds == 0 {
            return 0.0;
        }
        let max = as_f64(readings.max_fds);
        let free = (max - as_f64(readings.open_fds)).max(1.0) / max;
        self.marks.fd_headroom / free
    }
}

fn share(of: Duration, mark: Duration) -> f64 {
    of.as_secs_f64() / mark.as_secs_f64().max(0.000_001)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "descriptors are counted in millions at most"
)]
fn as_f64(n: u64) -> f64 {
    n as f64
}

/// One pool's shedding as requests see it: two atomics, written by whoever measures.
#[derive(Debug)]
pub struct Shed {
    pool: String,
    state: Mutex<Shedding>,
    level: AtomicU8,
    /// When another try may succeed, in milliseconds.
    retry_ms: AtomicU64,
}

impl Shed {
    pub fn new(pool: &str, marks: config::Shed) -> Shed {
        Shed {
            pool: pool.to_owned(),
            state: Mutex::new(Shedding::new(marks)),
            level: AtomicU8::new(0),
            retry_ms: AtomicU64::new(0),
        }
    }

    /// Takes readings in. To be called a few times a second, by one task.
    pub fn note(&self, readings: &Readings, now: Instant) {
        let mut state = self.lock();
        let before = state.level;
        state.note(readings, now);
        let level = state.level;
        drop(state);
        let wait = STEP_DOWN.max(readings.queue_wait);
        let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        self.retry_ms.store(ms, Ordering::Relaxed);
        self.level.store(level as u8, Ordering::Relaxed);
        if level != before {
            log::warn!(
                "pool {}: load shedding goes from {} to {} ({readings})",
                self.pool,
                before.turned_away(),
                level.turned_away()
            );
        }
    }

    /// Whether it was made for these marks.
    pub fn has(&self, marks: &config::Shed) -> bool {
        self.lock().marks == *marks
    }

    /// Which requests are turned away, in words.
    pub fn turned_away(&self) -> &'static str {
        self.lock().level.turned_away()
    }

    fn lock(&self) -> MutexGuard<'_, Shedding> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request of this priority is let in; when to come back where it is not.
    pub fn admits(&self, priority: Priority) -> Result<(), Duration> {
        let from = match priority {
            Priority::Batch => Level::Batch,
            Priority::Normal => Level::Normal,
            Priority::Core => return Ok(()),
        };
        if self.level.load(Ordering::Relaxed) < from as u8 {
            return Ok(());
        }
        Err(Duration::from_millis(self.retry_ms.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn shed() -> Shed {
        Shed::new(
            "p",
            config::Shed {
                queue_wait: MS(500),
                loop_lag: MS(100),
                fd_headroom: 0.1,
            },
        )
    }

    fn waits(ms: u64) -> Readings {
        Readings {
            queue_wait: MS(ms),
            ..Readings::default()
        }
    }

    /// Who is let in after readings that are 100 ms apart: batch, normal, core.
    fn after(shed: &Shed, now: &mut Instant, times: usize, readings: &Readings) -> [bool; 3] {
        for _ in 0..times {
            *now += MS(100);
            shed.note(readings, *now);
        }
        [Priority::Batch, Priority::Normal, Priority::Core].map(|p| shed.admits(p).is_ok())
    }

    #[test]
    fn batch_goes_first_then_normal_and_core_never() {
        let (shed, mut now) = (shed(), clock::instant());
        assert_eq!(after(&shed, &mut now, 50, &waits(499)), [true; 3]);
        assert_eq!(after(&shed, &mut now, 1, &waits(501)), [false, true, true]);
        assert_eq!(after(&shed, &mut now, 9, &waits(501)), [false, true, true]);
        assert_eq!(after(&shed, &mut now, 1, &waits(501)), [false, false, true]);
        assert_eq!(
            after(&shed, &mut now, 600, &waits(90_000)),
            [false, false, true]
        );
    }

    #[test]
    fn what_is_shed_comes_back_a_class_at_a_time_and_only_when_the_load_stays_low() {
        let (shed, mut now) = (shed(), clock::instant());
        after(&shed, &mut now, 30, &waits(900));
        assert_eq!(
            after(&shed, &mut now, 100, &waits(400)),
            [false, false, true]
        );
        assert_eq!(
            after(&shed, &mut now, 20, &waits(100)),
            [false, false, true]
        );
        assert_eq!(after(&shed, &mut now, 1, &waits(100)), [false, true, true]);
        assert_eq!(after(&shed, &mut now, 19, &waits(100)), [false, true, true]);
        assert_eq!(after(&shed, &mut now, 1, &waits(100)), [true; 3]);
    }

    #[test]
    fn a_load_that_swings_about_its_mark_does_not_flap() {
        let (shed, mut now) = (shed(), clock::instant());
        let mut changes = 0;
        let mut last = after(&shed, &mut now, 1, &waits(600));
        for turn in 0..600 {
            let is = after(
                &shed,
                &mut now,
                1,
                &waits(if turn % 2 == 0 { 300 } else { 600 }),
            );
            changes += usize::from(is != last);
            last = is;
        }
        assert!(changes <= 1, "{changes} changes in a minute");
    }

    #[test]
    fn a_single_late_wake_up_sheds_nobody_and_lasting_lateness_does() {
        let (shed, mut now) = (shed(), clock::instant());
        let late = Readings {
            loop_lag: MS(300),
            ..Readings::default()
        };
        assert_eq!(after(&shed, &mut now, 4, &late), [true; 3]);
        assert_eq!(after(&shed, &mut now, 1, &waits(0)), [true; 3]);
        assert_eq!(after(&shed, &mut now, 5, &late), [false, true, true]);
    }

    #[test]
    fn too_few_free_descriptors_shed_and_unknown_ones_do_not() {
        let (shed, mut now) = (shed(), clock::instant());
        let open = |open_fds, max_fds| Readings {
            open_fds,
            max_fds,
            ..Readings::default()
        };
        assert_eq!(after(&shed, &mut now, 1, &open(900, 0)), [true; 3]);
        assert_eq!(after(&shed, &mut now, 1, &open(899, 1000)), [true; 3]);
        assert_eq!(
            after(&shed, &mut now, 1, &open(901, 1000)),
            [false, true, true]
        );
        assert_eq!(
            after(&shed, &mut now, 11, &open(2000, 1000)),
            [false, false, true]
        );
    }

    #[test]
    fn the_wait_that_is_told_is_what_is_measured_and_no_shorter_than_the_way_back() {
        let (shed, mut now) = (shed(), clock::instant());
        after(&shed, &mut now, 1, &waits(700));
        assert_eq!(shed.admits(Priority::Batch), Err(STEP_DOWN));
        after(&shed, &mut now, 1, &waits(7000));
        assert_eq!(shed.admits(Priority::Batch), Err(MS(7000)));
    }
}
