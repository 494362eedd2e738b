//! The queue of one pool, as requests use it: the pool's slots, the line before them, and the turns that returns bring.

use super::bounds::{Bound, Pace};
use super::fair::{Ask, FairQueue, Next, Ticket};
use super::place::{Granted, Place};
use super::wait::MeanWait;
use crate::budget::Units;
use crate::clock;
use crate::config;
use crate::metrics::Metrics;
use crate::slots::{Slots, WAIT_UNKNOWN, Watch};
use crate::tenant::{Tenant, TenantName};
use prometheus::{Histogram, IntGauge, IntGaugeVec};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Waits are cut to what can be added to a clock: ten years.
const WAIT_LONGEST: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The slots of a pool and those who wait for them. Slots of the pool are taken here and nowhere else.
#[derive(Debug)]
pub struct PoolQueue {
    pool: String,
    slots: Arc<Slots>,
    line: Mutex<Line>,
    length: IntGaugeVec,
    wait: Histogram,
}

#[derive(Debug)]
pub(super) struct Line {
    /// Absent: nobody waits, full means no.
    rules: Option<config::Queue>,
    fair: FairQueue<Waiter>,
    waits: MeanWait,
}

#[derive(Debug)]
struct Waiter {
    /// The slots of its tenant.
    slots: Arc<Slots>,
    granted: oneshot::Sender<Granted>,
}

/// A request that gets neither a slot nor a place in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Nothing: the pool has no queue.
    pub bound: Option<Bound>,
    /// Whether it is the tenant's own slots that are taken, and not the pool's.
    pub tenant_full: bool,
    /// When another try may succeed: the wait that was to be expected.
    pub retry_after: Duration,
}

/// A turn that is to be told to its waiter, once the line is not locked any more.
pub(super) type Turn = (oneshot::Sender<Granted>, Granted);

impl PoolQueue {
    pub fn new(
        pool: &str,
        slots: Arc<Slots>,
        rules: Option<config::Queue>,
        metrics: &Metrics,
    ) -> Arc<PoolQueue> {
        let line = Line {
            rules,
            fair: FairQueue::default(),
            waits: MeanWait::new(clock::instant()),
        };
        let queue = Arc::new(PoolQueue {
            pool: pool.to_owned(),
            slots,
            line: Mutex::new(line),
            length: metrics.table.queue_length.clone(),
            wait: metrics.table.queue_wait.with_label_values(&[pool]),
        });
        queue.slots.watch(&Arc::downgrade(&queue));
        queue
    }

    /// Other bounds from now on. Those in line keep their places and the wait they came with.
    pub fn set_rules(&self, rules: Option<config::Queue>) {
        self.lock().rules = rules;
    }

    /// A slot of the tenant and one of the pool, or a place in line for them.
    pub fn enter(
        self: &Arc<PoolQueue>,
        tenant: &Arc<Tenant>,
        cost: Units,
    ) -> Result<Place, Refused> {
        let now = clock::instant();
        let mut turns = Vec::new();
        let entered = {
            let mut line = self.lock();
            // who waits already goes first, also to a slot whose return is not told yet
            self.take_turns(&mut line, now, &mut turns);
            match self.take_at_once(&mut line, tenant, now) {
                Some(granted) => Ok(Place::granted_at_once(granted)),
                None => self.line_up(&mut line, (tenant, cost), now, &mut turns),
            }
        };
        tell(turns);
        entered
    }

    /// Slots without waiting, where there are some and none of the tenant waits.
    fn take_at_once(&self, line: &mut Line, tenant: &Tenant, now: Instant) -> Option<Granted> {
        let first = line.fair.is_empty() || line.fair.len_of(tenant.name()) == 0;
        let granted = first.then(|| self.take(tenant.slots())).flatten()?;
        line.fair.rest();
        line.waits.note(Duration::ZERO, now);
        self.wait.observe(0.0);
        Some(granted)
    }

    /// A place in line, where one is to be had.
    pub(super) fn line_up(
        self: &Arc<PoolQueue>,
        line: &mut Line,
        (tenant, cost): (&Arc<Tenant>, Units),
        now: Instant,
        turns: &mut Vec<Turn>,
    ) -> Result<Place, Refused> {
        let Some(rules) = line.rules.clone() else {
            return Err(self.full(tenant.slots()));
        };
        let (send, receive) = oneshot::channel();
        let waiter = Waiter {
            slots: tenant.slots().clone(),
            granted: send,
        };
        tenant.slots().watch(&Arc::downgrade(self));
        let asked = ask(tenant, cost, self.pace(tenant.slots()));
        let ticket = line
            .fair
            .enter(&asked, &rules, now, waiter)
            .map_err(|(bound, expected)| self.refused(bound, expected, tenant.slots()))?;
        // the tenant's slot may have come back after the look for it and before it was watched
        self.take_turns(line, now, turns);
        let deadline = now + rules.max_wait.min(WAIT_LONGEST);
        Ok(Place::waiting(self, tenant, ticket, (receive, deadline)))
    }

    /// Gives turns for as long as there are slots and somebody who can use them.
    fn take_turns(&self, line: &mut Line, now: Instant, turns: &mut Vec<Turn>) {
        while !line.fair.is_empty() {
            let Some(pool) = self.slots.take() else {
                return;
            };
            let Some(next) = line.fair.next(now, |w| w.slots.take()) else {
                pool.put_back();
                return;
            };
            let Next {
                waiter,
                taken: tenant,
                waited,
                waited_for_pool,
            } = next;
            line.waits.note(waited_for_pool, now);
            self.wait.observe(waited.as_secs_f64());
            turns.push((waiter.granted, Granted { tenant, pool }));
        }
    }

    fn take(&self, tenant: &Arc<Slots>) -> Option<Granted> {
        let pool = self.slots.take()?;
        match tenant.take() {
            Some(tenant) => Some(Granted { tenant, pool }),
            None => {
                pool.put_back();
                None
            }
        }
    }

    fn full(&self, tenant: &Slots) -> Refused {
        // a slot of the tenant may have come back since: where the pool has one, it was the tenant's that was missing
        let tenant_full = tenant.is_full() || !self.slots.is_full();
        let full = if tenant_full { tenant } else { &self.slots };
        Refused {
            bound: None,
            tenant_full,
            retry_after: full.expected_wait(),
        }
    }

    fn refused(&self, bound: Bound, expected: Duration, tenant: &Slots) -> Refused {
        Refused {
            bound: Some(bound),
            tenant_full: tenant.is_full(),
            retry_after: told(expected),
        }
    }

    fn pace(&self, tenant: &Slots) -> Pace {
        let of = |slots: &Slots| {
            let interval = slots.is_full().then(|| slots.interval()).flatten();
            interval.unwrap_or_default()
        };
        Pace {
            pool: of(&self.slots),
            tenant: of(tenant),
        }
    }

    /// How long one more of a tenant would wait now.
    pub(super) fn expected(&self, tenant: &Tenant) -> Duration {
        let pace = self.pace(tenant.slots());
        told(self.lock().fair.expected(tenant.name(), &pace))
    }

    /// The mean wait for this pool: of the turns of the last seconds or, where it is more, of those that wait now. A
    /// tenant that waits for a slot of its own adds nothing.
    pub fn mean_wait(&self) -> Duration {
        let now = clock::instant();
        let mut line = self.lock();
        let served = line.waits.mean(now);
        if self.slots.is_full() {
            served.max(line.fair.mean_age(now))
        } else {
            served
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.lock().fair.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of a tenant wait.
    pub fn len_of(&self, tenant: &TenantName) -> usize {
        self.lock().fair.len_of(tenant)
    }

    /// Gives up a place. Whether it was still in line; else its turn has come.
    pub(super) fn leave(&self, ticket: &Ticket) -> bool {
        self.lock().fair.leave(ticket)
    }

    pub(super) fn length_gauge(&self, tenant: &TenantName) -> IntGauge {
        self.length
            .with_label_values(&[self.pool.as_str(), tenant.as_str()])
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch for PoolQueue {
    fn freed(&self) {
        let mut turns = Vec::new();
        {
            let mut line = self.lock();
            if !line.fair.is_empty() {
                self.take_turns(&mut line, clock::instant(), &mut turns);
            }
        }
        tell(turns);
    }
}

fn ask(tenant: &Tenant, cost: Units, pace: Pace) -> Ask<'_> {
    Ask {
        tenant: tenant.name(),
        weight: tenant.rules.weight,
        cost,
        max_queued: tenant.rules.max_queued,
        pace,
    }
}

/// What is not known yet is told as a wait all the same.
fn told(expected: Duration) -> Duration {
    if expected.is_zero() {
        WAIT_UNKNOWN
    } else {
        expected
    }
}

/// A turn whose waiter has just left is dropped here, unlocked: its slots are given back and go to the next.
pub(super) fn tell(turns: Vec<Turn>) {
    for (waiter, granted) in turns {
        drop(waiter.send(granted));
    }
}
