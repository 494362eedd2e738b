//! A pool: backends that serve the same models, its slots, and the pick of the next backend.

use super::discovery::Named;
use super::member::Member;
use super::retry_budget::RetryBudget;
use super::selection::LeastStreams;
use crate::config::{self, Balance};
use crate::exchange::{PoolQueue, Shed};
use crate::metrics::Metrics;
use crate::slots::{Slot, Slots};
use pingora_load_balancing::selection::RoundRobin;
use pingora_load_balancing::{Backend, Backends, LoadBalancer};
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::Arc;

pub struct Pool {
    pub rules: config::Pool,
    pub slots: Arc<Slots>,
    /// Who waits for the slots; outlives the rules as they do.
    pub queue: Arc<PoolQueue>,
    /// Who is turned away while there is too much to do.
    pub shed: Option<Arc<Shed>>,
    pub retries: Arc<RetryBudget>,
    members: Vec<Arc<Member>>,
    /// Backends that a reload took away and that something still runs on: one that comes back finds it counted.
    gone: Vec<Arc<Member>>,
    balancer: Balancer,
}

/// Pingora's load balancer, by the order it walks in.
enum Balancer {
    RoundRobin(LoadBalancer<RoundRobin>),
    LeastStreams(LoadBalancer<LeastStreams>),
}

/// A backend with its slot taken.
#[derive(Debug)]
pub struct Picked {
    pub member: Arc<Member>,
    pub addr: SocketAddr,
    pub slot: Slot,
}

/// Why there is no backend to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPick {
    /// The pool has none, or none that was not tried.
    NoBackend,
    /// All that are left have no free slot.
    Full,
}

impl Pool {
    /// A pool with its backends looked up once; names that do not resolve yet are found by a later `refresh`. What runs in
    /// the pool of the same name `before` goes on being counted, by the bounds of before until these are put in force.
    pub async fn start(
        rules: &config::Pool,
        shed: Option<&config::Shed>,
        before: Option<&Pool>,
        metrics: &Metrics,
    ) -> Pool {
        let known: Vec<_> =
            before.map_or_else(Vec::new, |p| p.members.iter().chain(&p.gone).collect());
        let member = |backend: &config::Backend| {
            let same = known.iter().find(|m| m.addr == backend.addr);
            same.map_or_else(|| Member::new(backend), |m| m.again(backend))
        };
        let members: Vec<_> = rules.backends.iter().map(member).collect();
        let is_gone = |m: &Member| members.iter().all(|is| is.addr != m.addr);
        let gone = known.iter().filter(|m| m.slots.used() > 0 && is_gone(m));
        let slots = before.map_or_else(|| Slots::new(None), |p| p.slots.clone());
        let queue = before.map_or_else(
            || PoolQueue::new(&rules.name, slots.clone(), rules.queue.clone(), metrics),
            |p| p.queue.clone(),
        );
        let backends = Backends::new(Box::new(Named::new(members.clone())));
        let balancer = match rules.balance {
            Balance::RoundRobin => Balancer::RoundRobin(LoadBalancer::from_backends(backends)),
            // hash and affinity are named as not in effect at start; the fewest streams is the nearest
            Balance::LeastStreams | Balance::Hash | Balance::Affinity => {
                Balancer::LeastStreams(LoadBalancer::from_backends(backends))
            }
        };
        let pool = Pool {
            slots,
            queue,
            shed: shed.map(|marks| shedding(&rules.name, marks, before)),
            retries: before.map_or_else(Arc::default, |p| p.retries.clone()),
            gone: gone.map(|m| Arc::clone(m)).collect(),
            members,
            balancer,
            rules: rules.clone(),
        };
        pool.refresh().await;
        pool
    }

    /// Puts its bounds in force: on slots and a queue that the rules before it may have had too.
    pub fn put_in_force(&self) {
        self.queue.set_rules(self.rules.queue.clone());
        self.members.iter().for_each(|m| m.put_in_force());
        self.count_slots();
    }

    /// Counts the slots there are now. To be called now and then, of pools that are in force: backends come and go.
    pub fn count_slots(&self) {
        let now = slots_of(&self.rules, &self.members);
        if now != self.slots.max() {
            self.slots.set_max(now);
        }
    }

    /// Whether anything runs in it or waits to.
    pub fn is_used(&self) -> bool {
        self.slots.used() > 0 || !self.queue.is_empty()
    }

    /// Discovers the backends anew.
    pub async fn refresh(&self) {
        let found = match &self.balancer {
            Balancer::RoundRobin(b) => b.update().await,
            Balancer::LeastStreams(b) => b.update().await,
        };
        if let Err(e) = found {
            log::error!("pool {}: discovery failed: {e}", self.rules.name);
        }
    }

    /// Whether any backend is listed by a name that may come to mean another address.
    pub fn has_names(&self) -> bool {
        self.members
            .iter()
            .any(|m| m.addr.parse::<SocketAddr>().is_err())
    }

    pub fn members(&self) -> &[Arc<Member>] {
        &self.members
    }

    /// The upstream's name of a public model of this pool.
    pub fn upstream_model(&self, public: &str) -> Option<&str> {
        self.rules
            .models
            .iter()
            .find(|m| m.public == public)
            .map(|m| m.upstream.as_str())
    }

    /// Picks the next backend and takes a slot of it: first one that is up and was not tried, then one that was not
    /// tried, then any, so that a pool whose backends are all down still tries.
    pub fn pick(&self, tried: &[String]) -> Result<Picked, NoPick> {
        let full = Cell::new(false);
        let untried = |m: &Member| !tried.contains(&m.addr);
        let picked = self
            .walk(&full, |m| m.is_up() && untried(m))
            .or_else(|| self.walk(&full, untried))
            .or_else(|| self.walk(&full, |_| true));
        picked.ok_or(if full.get() {
            NoPick::Full
        } else {
            NoPick::NoBackend
        })
    }

    fn walk(&self, full: &Cell<bool>, wanted: impl Fn(&Member) -> bool) -> Option<Picked> {
        let taken = RefCell::new(None);
        let accept = |backend: &Backend, _healthy: bool| {
            let Some(member) = backend.ext.get::<Arc<Member>>().filter(|m| wanted(m)) else {
                return false;
            };
            let slot = member.slots.take();
            full.set(full.get() || slot.is_none());
            *taken.borrow_mut() = slot.map(|s| (member.clone(), s));
            taken.borrow().is_some()
        };
        let backend = self.select(accept)?;
        let (member, slot) = taken.into_inner()?;
        let addr = backend.addr.as_inet().copied()?;
        Some(Picked { member, addr, slot })
    }

    fn select(&self, accept: impl Fn(&Backend, bool) -> bool) -> Option<Backend> {
        // the balancer's walk may name a backend more than once before it has named all
        let steps = self.members.len().saturating_mul(16).saturating_add(64);
        match &self.balancer {
            Balancer::RoundRobin(b) => b.select_with(b"", steps, accept),
            Balancer::LeastStreams(b) => b.select_with(b"", steps, accept),
        }
    }
}

/// The slots of a pool. Where requests may wait for one, no more than its backends have together that are up: who was let
/// go on by the queue must not find them all full. Where none is up all are tried, and all count.
fn slots_of(rules: &config::Pool, members: &[Arc<Member>]) -> Option<usize> {
    let none_up = members.iter().all(|m| !m.is_up());
    let counted = members.iter().filter(|m| none_up || m.is_up());
    let together = || counted.map(|m| m.max_streams).sum::<Option<usize>>();
    let bounded = rules
        .queue
        .as_ref()
        .filter(|_| !members.is_empty())
        .and_then(|_| together());
    [rules.max_streams, bounded].into_iter().flatten().min()
}

/// The state of shedding is kept for as long as its marks are the same.
fn shedding(pool: &str, marks: &config::Shed, before: Option<&Pool>) -> Arc<Shed> {
    before
        .and_then(|p| p.shed.as_ref())
        .filter(|shed| shed.has(marks))
        .cloned()
        .unwrap_or_else(|| Arc::new(Shed::new(pool, marks.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pool(balance: &str, backends: &str) -> Pool {
        let text = format!(
            "[[listen]]\naddr = \"127.0.0.1:1\"\n[[tenant]]\nname = \"t\"\nanonymous = true\n[[pool]]\nname = \"p\"\nmodels = [\"m\"]\nbalance = \"{balance}\"\nbackends = [{backends}]\n"
        );
        let config = config::parse(&text, std::path::Path::new("/x/test.toml")).unwrap();
        let metrics = Metrics::new().unwrap();
        let pool = Pool::start(&config.pools[0], None, None, &metrics).await;
        pool.put_in_force();
        pool
    }

    const TWO: &str =
        "{ addr = \"127.0.0.1:1\", max_streams = 2 }, { addr = \"127.0.0.1:2\", max_streams = 2 }";

    #[tokio::test]
    async fn least_streams_evens_out_and_a_full_pool_says_so() {
        let pool = pool("least_streams", TWO).await;
        let first = pool.pick(&[]).unwrap();
        let second = pool.pick(&[]).unwrap();
        assert_ne!(first.addr, second.addr);
        let rest = (pool.pick(&[]).unwrap(), pool.pick(&[]).unwrap());
        assert_eq!(pool.pick(&[]).unwrap_err(), NoPick::Full);
        drop((first, second, rest));
        assert!(pool.pick(&[]).is_ok());
    }

    #[tokio::test]
    async fn a_queue_before_bounded_backends_has_the_slots_of_those_that_are_up() {
        let with = |lines: &str| {
            let text = format!(
                "[[listen]]\naddr = \"127.0.0.1:1\"\n[[tenant]]\nname = \"t\"\nanonymous = true\n[[pool]]\nname = \"p\"\nmodels = [\"m\"]\n{lines}\n"
            );
            let config = config::parse(&text, std::path::Path::new("/x/test.toml")).unwrap();
            let rules = &config.pools[0];
            let members: Vec<_> = rules.backends.iter().map(Member::new).collect();
            let all = slots_of(rules, &members);
            members[0].failed();
            (all, slots_of(rules, &members))
        };
        let queue = "queue = { max_wait = \"1s\", max_len = 4 }";
        let (two, open) = (
            format!("backends = [{TWO}]"),
            "backends = [{ addr = \"127.0.0.1:1\" }]",
        );
        assert_eq!(with(&two), (None, None));
        assert_eq!(with(&format!("{queue}\n{two}")), (Some(4), Some(2)));
        assert_eq!(with(&format!("{queue}\n{open}")), (None, None));
        for (max, all, up) in [(3, 3, 2), (64, 4, 2)] {
            let slots = with(&format!("max_streams = {max}\n{queue}\n{two}"));
            assert_eq!(slots, (Some(all), Some(up)));
        }
        let unqueued = with(&format!("max_streams = 64\n{two}"));
        assert_eq!(unqueued, (Some(64), Some(64)));
    }

    #[tokio::test]
    async fn round_robin_takes_turns() {
        let pool = pool("round_robin", TWO).await;
        let ports: Vec<_> = (0..4)
            .map(|_| pool.pick(&[]).unwrap().addr.port())
            .collect();
        assert_eq!(ports.iter().filter(|p| **p == 1).count(), 2, "{ports:?}");
    }

    #[tokio::test]
    async fn a_backend_that_failed_comes_last_and_is_still_tried() {
        let pool = pool("round_robin", TWO).await;
        let down = pool.pick(&[]).unwrap();
        down.member.failed();
        for _ in 0..2 {
            let other = pool.pick(&[]).unwrap();
            assert_ne!(other.addr, down.addr);
            std::mem::drop(other);
        }
        let tried = vec![if down.addr.port() == 1 {
            "127.0.0.1:2".to_owned()
        } else {
            "127.0.0.1:1".to_owned()
        }];
        assert_eq!(pool.pick(&tried).unwrap().addr, down.addr);
    }

    #[tokio::test]
    async fn a_name_that_does_not_resolve_leaves_the_pool_empty_but_standing() {
        let pool = pool("round_robin", "{ addr = \"no-such-host.invalid:80\" }").await;
        assert_eq!(pool.pick(&[]).unwrap_err(), NoPick::NoBackend);
        assert!(pool.has_names());
    }
}
