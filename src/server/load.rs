//! What the process carries at present, told to those who turn requests away over it, and what there is to carry it.

use crate::clock;
use crate::exchange::Readings;
use crate::ops;
use crate::proxy::Hub;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Counting descriptors takes the longer the more there are.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// Reads what there is to read, a few times a second.
pub struct Load {
    hub: Arc<Hub>,
    counted_at: Option<Instant>,
    open_fds: u64,
    max_fds: u64,
}

impl Load {
    pub fn new(hub: Arc<Hub>) -> Load {
        Load {
            hub,
            counted_at: None,
            open_fds: 0,
            max_fds: 0,
        }
    }

    /// The event loop woke so late.
    pub fn note(&mut self, late: Duration) {
        let rules = self.hub.rules();
        rules.pools.all().iter().for_each(|pool| pool.count_slots());
        if rules.config.shed.is_none() {
            return;
        }
        let now = clock::instant();
        self.count_fds(now);
        for pool in rules.pools.all() {
            if let Some(shed) = &pool.shed {
                let readings = Readings {
                    queue_wait: pool.queue.mean_wait(),
                    loop_lag: late,
                    open_fds: self.open_fds,
                    max_fds: self.max_fds,
                };
                shed.note(&readings, now);
            }
        }
    }

    fn count_fds(&mut self, now: Instant) {
        let is_due = |at: Instant| now.saturating_duration_since(at) >= COUNT_EVERY;
        if self.counted_at.is_none_or(is_due) {
            self.counted_at = Some(now);
            self.max_fds = ops::max_fds();
            // where there is none left to look with, all are open
            self.open_fds = ops::open_fds().unwrap_or(self.max_fds);
        }
    }
}
