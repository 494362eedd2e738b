//! Whether the ledger's thread gets on: since when it waits for its database. A disk or a server that hangs holds up the
//! thread, which cannot say so itself.

use crate::clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shared by the handle and its thread.
#[derive(Clone, Debug)]
pub(super) struct Pulse(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    born: Instant,
    /// Microseconds of life at which the wait began, at least 1; 0 where there is none.
    since: AtomicU64,
}

impl Pulse {
    pub fn new() -> Pulse {
        Pulse(Arc::new(Shared {
            born: clock::instant(),
            since: AtomicU64::new(0),
        }))
    }

    /// The thread asks its database for something.
    pub fn asks(&self) {
        self.0.since.store(self.age().max(1), Ordering::Relaxed);
    }

    /// The thread has nothing to do.
    pub fn rests(&self) {
        self.0.since.store(0, Ordering::Relaxed);
    }

    /// How long the thread has waited for an answer; zero where it waits for none.
    pub fn waits(&self) -> Duration {
        match self.0.since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => Duration::from_micros(self.age().saturating_sub(since)),
        }
    }

    fn age(&self) -> u64 {
        let age = clock::instant().saturating_duration_since(self.0.born);
        u64::try_from(age.as_micros()).unwrap_or(u64::MAX)
    }
}
