//! One backend: its name, its slots, and whether it is thought to work.

use crate::clock;
use crate::config;
use crate::slots::Slots;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a backend is passed over after it could not be reached; doubled with each further failure.
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A backend of a pool, over all the addresses its name resolves to. Kept over discoveries, so that its count is one.
#[derive(Debug)]
pub struct Member {
    /// As configured: what records and metrics call it.
    pub addr: String,
    pub weight: u32,
    pub slots: Arc<Slots>,
    /// As configured; in force once its configuration is.
    pub max_streams: Option<usize>,
    marks: Arc<Marks>,
}

/// What is held against a backend. Outlives its rules, as its slots do.
#[derive(Debug, Default)]
struct Marks {
    failures: AtomicU64,
    paused_until: Mutex<Option<Instant>>,
}

impl Member {
    pub fn new(backend: &config::Backend) -> Arc<Member> {
        Member::with(backend, Slots::new(backend.max_streams), Arc::default())
    }

    /// The same backend under new rules, which are in force once they are put so: what runs on it goes on being counted,
    /// and what is held against it stays so.
    pub fn again(&self, backend: &config::Backend) -> Arc<Member> {
        Member::with(backend, self.slots.clone(), self.marks.clone())
    }

    fn with(backend: &config::Backend, slots: Arc<Slots>, marks: Arc<Marks>) -> Arc<Member> {
        Arc::new(Member {
            addr: backend.addr.clone(),
            weight: backend.weight.max(1),
            max_streams: backend.max_streams,
            slots,
            marks,
        })
    }

    /// Puts the bound of its slots in force.
    pub fn put_in_force(&self) {
        self.slots.set_max(self.max_streams);
    }

    /// Whether nothing speaks against trying it.
    pub fn is_up(&self) -> bool {
        self.marks.failures.load(Ordering::Relaxed) == 0
            || self.paused().is_none_or(|until| until <= clock::instant())
    }

    /// It could not be reached: pass it over for a while.
    pub fn failed(&self) {
        let before = self.marks.failures.fetch_add(1, Ordering::Relaxed).min(8);
        let pause = (PAUSE * (1 << before)).min(PAUSE_MAX);
        *self.pause_lock() = Some(clock::instant() + pause);
    }

    /// It answered: whatever was held against it is forgotten.
    pub fn answered(&self) {
        if self.marks.failures.swap(0, Ordering::Relaxed) != 0 {
            *self.pause_lock() = None;
        }
    }

    fn paused(&self) -> Option<Instant> {
        *self.pause_lock()
    }

    fn pause_lock(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.marks
            .paused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_that_failed_is_passed_over_until_it_answers() {
        let member = Member::new(&config::Backend {
            addr: "127.0.0.1:1".to_owned(),
            weight: 1,
            max_streams: None,
        });
        assert!(member.is_up());
        member.failed();
        assert!(!member.is_up());
        member.answered();
        assert!(member.is_up());
    }
}
