//! The order of turns on a virtual clock, and the queue of a pool with real slots.

mod fair;
mod slots;

use super::bounds::{Bound, Pace};
use super::fair::{Ask, FairQueue, Ticket};
use super::place::{Place, TimedOut};
use super::pool::{PoolQueue, Refused, tell};
use crate::budget::Units;
use crate::clock;
use crate::config;
use crate::metrics::Metrics;
use crate::slots::Slots;
use crate::tenant::{Directory, Holdings, Tenant, TenantName};
use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

pub(super) const MS: fn(u64) -> Duration = Duration::from_millis;

/// A line of tenants that are named by letters.
struct Row {
    fair: FairQueue<&'static str>,
    rules: config::Queue,
    pace: Pace,
    now: Instant,
    weights: HashMap<&'static str, u32>,
    full: Vec<&'static str>,
}

impl Row {
    fn new() -> Row {
        Row {
            fair: FairQueue::default(),
            rules: config::Queue {
                max_wait: MS(1000),
                max_len: 1000,
            },
            pace: Pace::default(),
            now: clock::instant(),
            weights: HashMap::new(),
            full: Vec::new(),
        }
    }

    fn weigh(mut self, tenant: &'static str, weight: u32) -> Row {
        self.weights.insert(tenant, weight);
        self
    }

    fn try_enter(
        &mut self,
        tenant: &'static str,
        cost: u64,
        max_queued: Option<usize>,
    ) -> Result<Ticket, (Bound, Duration)> {
        let name = TenantName::new(tenant);
        let ask = Ask {
            tenant: &name,
            weight: self.weights.get(tenant).copied().unwrap_or(1),
            cost: Units(cost),
            max_queued,
            pace: self.pace,
        };
        self.fair.enter(&ask, &self.rules, self.now, tenant)
    }

    fn enter(&mut self, tenant: &'static str, cost: u64) -> Ticket {
        self.try_enter(tenant, cost, None).unwrap()
    }

    fn next(&mut self) -> Option<&'static str> {
        let full = &self.full;
        self.fair
            .next(self.now, |w| (!full.contains(w)).then_some(()))
            .map(|n| n.waiter)
    }

    /// The next turns, as a word.
    fn turns(&mut self, n: usize) -> String {
        (0..n).filter_map(|_| self.next()).collect()
    }
}

/// A pool with real slots and tenants.
pub(super) struct Pool {
    pub queue: Arc<PoolQueue>,
    pub slots: Arc<Slots>,
    metrics: Metrics,
    tenants: Directory,
}

pub(super) const RULES: config::Queue = config::Queue {
    max_wait: Duration::from_secs(600),
    max_len: 256,
};

impl Pool {
    /// Tenants by the lines of their tables.
    pub fn new(slots: usize, rules: Option<config::Queue>, tenants: &[&str]) -> Pool {
        let mut text = "[[listen]]\naddr = \"127.0.0.1:1\"\n".to_owned();
        for (n, lines) in tenants.iter().enumerate() {
            let key = format!("{n:064x}");
            text += &format!(
                "[[tenant]]\nname = \"t{n}\"\nkeys = [{{ sha256 = \"{key}\" }}]\n{lines}\n"
            );
        }
        text +=
            "[[pool]]\nname = \"p\"\nmodels = [\"m\"]\nbackends = [{ addr = \"127.0.0.1:2\" }]\n";
        let config = config::parse(&text, std::path::Path::new("/x/t.toml")).unwrap();
        let (slots, metrics) = (Slots::new(Some(slots)), Metrics::new().unwrap());
        Pool {
            queue: PoolQueue::new("p", slots.clone(), rules, &metrics),
            slots,
            metrics,
            tenants: Directory::new(&config.tenants, &Holdings::default()),
        }
    }

    pub fn tenant(&self, n: usize) -> &Arc<Tenant> {
        &self.tenants.all()[n]
    }

    fn enter(&self, n: usize) -> Result<Place, Refused> {
        self.queue.enter(self.tenant(n), Units(100))
    }

    pub fn gauge(&self, tenant: &str) -> i64 {
        let labels = ["p", tenant];
        self.metrics
            .table
            .queue_length
            .with_label_values(&labels)
            .get()
    }

    fn used(&self) -> (usize, usize) {
        (self.slots.used(), self.tenant(0).slots().used())
    }
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Lets some microseconds pass.
fn spin() {
    let start = clock::instant();
    while start.elapsed() < Duration::from_micros(50) {
        std::hint::spin_loop();
    }
}
