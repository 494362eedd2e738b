//! What the thread does unasked: follows other processes, forgets what is old, tries again what was set aside.

use super::Worker;
use crate::clock;
use std::time::{Duration, Instant};

/// How often the thread does what nobody asks for, and how patient it is.
#[derive(Clone, Copy, Debug)]
pub(in crate::ledger) struct Clockwork {
    /// How long entries are kept after their end.
    pub retention: Duration,
    /// Between two looks at what other processes did.
    pub tick: Duration,
    /// How long closing tries to write what waits.
    pub farewell: Duration,
}

impl Clockwork {
    pub fn of(retention: Duration) -> Clockwork {
        Clockwork {
            retention,
            tick: Duration::from_secs(1),
            farewell: Duration::from_secs(10),
        }
    }

    /// Between two rounds of forgetting: short while there is more to forget, else a small part of the retention.
    fn forget_pause(&self, more: bool) -> Duration {
        match more {
            true => Duration::from_millis(10),
            false => (self.retention / 10).clamp(Duration::from_secs(1), Duration::from_secs(60)),
        }
    }
}

impl Worker {
    /// Once a tick: what other processes did, and what was set aside. More rarely: what is old enough to forget.
    pub(super) fn tick(&mut self) {
        let now = clock::instant();
        if self.trouble.is_none() && now >= self.forget_at {
            self.forget(now);
        }
        if self.trouble.is_some() || now < self.tick_at {
            return;
        }
        self.tick_at = now + self.clockwork.tick;
        self.sight.pulse.asks();
        match self.store.follow(clock::now()) {
            Ok(postings) => {
                postings.iter().for_each(|p| self.observer.adjusted(p));
                self.note(&postings);
            }
            Err(error) => return self.suffer(&error),
        }
        if std::mem::take(&mut self.is_unsure) {
            self.recount();
        }
        self.retry_aside();
    }

    /// Tries what was set aside again, to the first failure; what failed goes to the end.
    fn retry_aside(&mut self) {
        let mut aside = self.backlog.take_aside();
        while !aside.is_empty() {
            if let Err((group, _)) = self.commit(vec![aside.remove(0)]) {
                aside.extend(group);
                break;
            }
        }
        self.backlog.set_aside(aside);
        self.weigh_aside();
    }

    fn forget(&mut self, now: Instant) {
        self.sight.pulse.asks();
        let retention = i64::try_from(self.clockwork.retention.as_micros()).unwrap_or(i64::MAX);
        let before = clock::Timestamp(clock::now().0.saturating_sub(retention));
        let more = self.store.forget(before).unwrap_or_else(|error| {
            self.complain(&format!("{error}; old entries stay for now"));
            false
        });
        self.forget_at = now + self.clockwork.forget_pause(more);
    }
}
