//! What a queue refuses at the door: too long a line, too many of one tenant, too long a wait. Pure.

use crate::config;
use std::time::Duration;

/// Which bound a request ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The pool's `queue.max_len`.
    Length,
    /// The tenant's `max_queued`.
    OfTenant,
    /// The pool's `queue.max_wait`: it would not be served in time.
    Wait,
}

/// The time between two completions where slots are all taken; zero where one is free, and where nothing is measured
/// yet: then a wait is refused only once it has lasted too long.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    pub pool: Duration,
    pub tenant: Duration,
}

/// A place in line: how many completions of the pool, and how many of the tenant's own, it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub in_pool: usize,
    pub in_tenant: usize,
}

impl Pace {
    /// Place in line over the rate of completion, of the pool or of the tenant: what takes longer.
    pub(super) fn expected(&self, standing: Standing) -> Duration {
        let times = |t: Duration, n: usize| t.saturating_mul(u32::try_from(n).unwrap_or(u32::MAX));
        times(self.pool, standing.in_pool).max(times(self.tenant, standing.in_tenant))
    }
}

/// Refuses what would stand too far behind: `len` wait in all, `standing` is the place that one more would get.
pub(super) fn check(
    rules: &config::Queue,
    max_queued: Option<usize>,
    len: usize,
    standing: Standing,
    expected: Duration,
) -> Result<(), Bound> {
    if max_queued.is_some_and(|max| standing.in_tenant > max) {
        return Err(Bound::OfTenant);
    }
    if len >= rules.max_len {
        return Err(Bound::Length);
    }
    if expected > rules.max_wait {
        return Err(Bound::Wait);
    }
    Ok(())
}
