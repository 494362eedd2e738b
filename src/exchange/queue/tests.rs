//! The order of turns on a virtual clock, and the queue of a pool with real slots.

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

#[test]
fn within_a_tenant_who_came_first_goes_first() {
    let mut fair = FairQueue::default();
    let (rules, name) = (Row::new().rules, TenantName::new("a"));
    let ask = |cost| Ask {
        tenant: &name,
        weight: 1,
        cost: Units(cost),
        max_queued: None,
        pace: Pace::default(),
    };
    let now = clock::instant();
    for (number, cost) in [(1, 9000), (2, 16), (3, 500)] {
        fair.enter(&ask(cost), &rules, now, number).unwrap();
    }
    let order: Vec<_> = (0..3)
        .filter_map(|_| fair.next(now, |_| Some(())).map(|n| n.waiter))
        .collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn turns_go_by_weight() {
    let mut row = Row::new().weigh("a", 2);
    for _ in 0..12 {
        row.enter("a", 100);
    }
    for _ in 0..6 {
        row.enter("o", 100);
    }
    let order = row.turns(18);
    for n in [3, 6, 9, 12, 15, 18] {
        let others = order[..n].matches('o').count();
        assert!(others.abs_diff(n / 3) <= 1, "{order}");
    }
}

#[test]
fn a_tenant_with_long_requests_does_not_starve_one_with_short_ones() {
    let mut row = Row::new();
    for _ in 0..6 {
        row.enter("a", 2000);
    }
    for _ in 0..6 {
        row.enter("o", 40);
    }
    assert_eq!(row.turns(12), "aooooooaaaaa");
}

#[test]
fn requests_without_output_do_not_take_every_turn() {
    let mut row = Row::new();
    for _ in 0..400 {
        row.enter("z", 0);
    }
    row.enter("a", 1600);
    row.enter("a", 1600);
    let order = row.turns(402);
    assert!(order.rfind('a').unwrap() <= 110, "{order}");
}

#[test]
fn one_that_comes_after_a_rest_is_owed_nothing() {
    let mut row = Row::new();
    row.enter("b", 100);
    row.next();
    for _ in 0..50 {
        row.enter("a", 100);
    }
    row.turns(40);
    for _ in 0..10 {
        row.enter("b", 100);
    }
    let order = row.turns(10);
    assert!(order.matches('b').count().abs_diff(5) <= 1, "{order}");
}

#[test]
fn a_free_slot_that_nobody_waits_for_ends_what_is_owed() {
    let mut row = Row::new();
    row.enter("a", 100_000);
    row.next();
    row.fair.rest();
    for _ in 0..10 {
        row.enter("a", 100);
        row.enter("b", 100);
    }
    let order = row.turns(10);
    assert!(order.matches('b').count().abs_diff(5) <= 1, "{order}");
}

#[test]
fn a_debt_lasts_while_others_wait() {
    let mut row = Row::new();
    row.enter("a", 1000);
    row.enter("b", 100);
    row.next();
    row.enter("a", 100);
    for _ in 0..20 {
        row.enter("b", 100);
    }
    assert_eq!(row.turns(20).find('a'), Some(10));
}

#[test]
fn a_tenant_without_a_slot_of_its_own_blocks_nobody_and_saves_up_no_turns() {
    let mut row = Row::new();
    row.full = vec!["a"];
    for _ in 0..20 {
        row.enter("a", 100);
    }
    for _ in 0..40 {
        row.enter("b", 100);
    }
    assert_eq!(row.turns(20), "b".repeat(20));
    row.full.clear();
    let order = row.turns(10);
    assert!(order.matches('a').count().abs_diff(5) <= 1, "{order}");
    row.full = vec!["a", "b"];
    assert_eq!(row.next(), None);
    assert_eq!(row.fair.len(), 30);
}

#[test]
fn leaving_gives_the_place_back_and_harms_nobody() {
    let mut row = Row::new();
    let tickets: Vec<_> = (0..4).map(|_| row.enter("a", 100)).collect();
    row.enter("b", 100);
    assert!(row.fair.leave(&tickets[0]) && row.fair.leave(&tickets[2]));
    assert!(!row.fair.leave(&tickets[0]), "a place is given back once");
    assert_eq!((row.fair.len(), row.turns(9)), (3, "aba".to_owned()));
    assert!(!row.fair.leave(&tickets[1]), "its turn has come");
    assert!(row.fair.is_empty());
}

#[test]
fn the_line_is_bounded_in_all_and_for_each_tenant() {
    let mut row = Row::new();
    row.rules.max_len = 3;
    let bound = |r: Result<Ticket, (Bound, Duration)>| r.unwrap_err().0;
    row.try_enter("a", 1, Some(2)).unwrap();
    row.try_enter("a", 1, Some(2)).unwrap();
    assert_eq!(bound(row.try_enter("a", 1, Some(2))), Bound::OfTenant);
    row.try_enter("b", 1, None).unwrap();
    assert_eq!(bound(row.try_enter("b", 1, None)), Bound::Length);
    row.next();
    assert_eq!(bound(row.try_enter("c", 1, Some(0))), Bound::OfTenant);
    row.try_enter("b", 1, None).unwrap();
}

#[test]
fn a_wait_that_would_be_too_long_is_refused_with_what_was_to_be_expected() {
    let mut row = Row::new();
    row.pace.pool = MS(300);
    for _ in 0..3 {
        row.enter("a", 100);
    }
    let refused = row.try_enter("a", 100, None).unwrap_err();
    assert_eq!(refused, (Bound::Wait, MS(1200)));
    row.next();
    row.enter("a", 100);
}

#[test]
fn the_expected_wait_is_by_the_own_place_and_not_by_the_whole_line() {
    let mut row = Row::new();
    row.rules.max_wait = MS(1200);
    for _ in 0..100 {
        row.enter("a", 100);
    }
    row.pace.pool = MS(300);
    assert_eq!(row.try_enter("a", 100, None).unwrap_err().1, MS(30_300));
    row.enter("b", 100);
    row.enter("b", 100);
    let expected = |row: &Row, t| row.fair.expected(&TenantName::new(t), &row.pace);
    // each of its own is behind one of the other's
    assert_eq!(expected(&row, "b"), MS(300) * 6);
    assert_eq!(expected(&row, "c"), MS(300) * 3);
}

#[test]
fn a_tenant_that_waits_for_its_own_slots_is_told_its_own_pace() {
    let mut row = Row::new();
    row.pace.tenant = MS(400);
    row.enter("a", 100);
    row.enter("a", 100);
    let refused = row.try_enter("a", 100, None).unwrap_err();
    assert_eq!(refused, (Bound::Wait, MS(1200)));
}

#[test]
fn the_wait_for_a_slot_of_its_own_is_not_the_pools() {
    let mut row = Row::new();
    row.full = vec!["a"];
    row.enter("a", 100);
    row.now += MS(700);
    assert_eq!(row.next(), None);
    row.now += MS(300);
    assert_eq!(row.fair.mean_age(row.now), MS(300));
    row.full.clear();
    let next = row.fair.next(row.now, |_| Some(())).unwrap();
    assert_eq!((next.waited, next.waited_for_pool), (MS(1000), MS(300)));
    assert_eq!(row.fair.mean_age(row.now), Duration::ZERO);
}

#[test]
fn tenants_that_owe_nothing_are_forgotten() {
    let mut row = Row::new();
    for n in 0..100_000_u32 {
        let name = TenantName::new(&format!("t{n}"));
        let ask = Ask {
            tenant: &name,
            weight: 1,
            cost: Units(100),
            max_queued: None,
            pace: Pace::default(),
        };
        row.fair.enter(&ask, &row.rules, row.now, "t").unwrap();
        row.enter("a", 10_000);
        assert_eq!(row.turns(2).len(), 2);
    }
    let kept = row.fair.tenants_known();
    assert!(kept <= 1000, "{kept} are remembered");
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

#[test]
fn a_free_slot_is_given_at_once_and_a_returned_one_to_the_first_in_line() {
    let pool = Pool::new(1, Some(RULES), &[""]);
    let running = pool.enter(0).unwrap().take_now().unwrap();
    let mut waiting = [pool.enter(0).unwrap(), pool.enter(0).unwrap()];
    assert!(waiting.iter_mut().all(|w| w.take_now().is_none()));
    assert_eq!((pool.gauge("t0"), pool.used()), (2, (1, 1)));
    drop(running);
    let granted = waiting[0].take_now().unwrap();
    assert!(waiting[1].take_now().is_none());
    assert_eq!((pool.gauge("t0"), pool.used()), (1, (1, 1)));
    drop(granted);
    drop(waiting);
    assert_eq!((pool.gauge("t0"), pool.used()), (0, (0, 0)));
}

#[test]
fn a_newcomer_does_not_take_a_slot_whose_return_is_not_told_yet() {
    let pool = Pool::new(1, Some(RULES), &["", ""]);
    let running = pool.enter(0).unwrap().take_now().unwrap();
    let mut first = pool.enter(0).unwrap();
    running.pool.put_back();
    let mut newcomer = pool.enter(1).unwrap();
    assert!(newcomer.take_now().is_none());
    assert!(first.take_now().is_some());
}

#[test]
fn slots_given_to_one_that_has_left_go_to_the_next() {
    let pool = Pool::new(1, Some(RULES), &[""]);
    let running = pool.enter(0).unwrap().take_now();
    let first = pool.enter(0).unwrap();
    let left = pool.enter(0).unwrap();
    let mut last = pool.enter(0).unwrap();
    drop(left);
    assert_eq!(pool.queue.len(), 2);
    drop(running);
    // the first has been given the slots and never looks
    assert!(last.take_now().is_none());
    drop(first);
    assert!(last.take_now().is_some());
}

#[test]
fn a_tenants_own_slots_are_waited_for_and_hold_up_nobody_else() {
    let pool = Pool::new(3, Some(RULES), &["max_streams = 1", ""]);
    let running = pool.enter(0).unwrap().take_now().unwrap();
    let mut waiting = pool.enter(0).unwrap();
    assert!(waiting.take_now().is_none());
    assert!(pool.enter(1).unwrap().take_now().is_some());
    assert_eq!(
        pool.used(),
        (1, 1),
        "nothing is held for one that cannot run"
    );
    drop(running);
    assert!(waiting.take_now().is_some());
}

#[test]
fn a_slot_of_the_tenant_that_returns_in_another_pool_is_not_missed() {
    let pool = Pool::new(3, Some(RULES), &["max_streams = 1"]);
    let other = PoolQueue::new("q", Slots::new(Some(3)), Some(RULES), &pool.metrics);
    let tenant = pool.tenant(0);
    let mut running = pool.enter(0).unwrap().take_now();
    let mut turns = String::new();
    let mut here = pool.enter(0).unwrap();
    let mut there = other.enter(tenant, Units(1)).unwrap();
    for _ in 0..6 {
        drop(running.take());
        if let Some(granted) = here.take_now() {
            (running, here) = (Some(granted), pool.enter(0).unwrap());
            turns.push('h');
        } else if let Some(granted) = there.take_now() {
            (running, there) = (Some(granted), other.enter(tenant, Units(1)).unwrap());
            turns.push('t');
        }
    }
    assert_eq!(turns.len(), 6, "a return went unnoticed: {turns}");
    assert!(turns.matches('h').count() >= 2, "{turns}");
    assert!(turns.matches('t').count() >= 2, "{turns}");
}

#[test]
fn a_slot_that_returns_between_the_look_for_it_and_the_line_is_not_missed() {
    let pool = Pool::new(3, Some(RULES), &["max_streams = 1"]);
    // the look for a slot is over, nobody watches yet, and the slot is free again
    let tenant = pool.tenant(0);
    let mut turns = Vec::new();
    let lined_up = pool.queue.line_up(
        &mut pool.queue.lock(),
        (tenant, Units(1)),
        clock::instant(),
        &mut turns,
    );
    tell(turns);
    assert!(lined_up.unwrap().take_now().is_some());
}

#[test]
fn without_a_queue_full_means_no_and_says_whose_slots_are_taken() {
    let pool = Pool::new(2, None, &["max_streams = 1", ""]);
    let _running = pool.enter(0).unwrap().take_now();
    let refused = pool.enter(0).unwrap_err();
    assert_eq!((refused.bound, refused.tenant_full), (None, true));
    assert_eq!(refused.retry_after, Duration::from_secs(1));
    let _other = pool.enter(1).unwrap().take_now();
    let refused = pool.enter(1).unwrap_err();
    assert_eq!((refused.bound, refused.tenant_full), (None, false));
    assert_eq!(pool.used(), (2, 1));
}

#[test]
fn a_raised_bound_gives_turns_at_once() {
    let pool = Pool::new(1, Some(RULES), &["max_streams = 2"]);
    let _running = pool.enter(0).unwrap().take_now();
    let mut waiting = [pool.enter(0).unwrap(), pool.enter(0).unwrap()];
    pool.slots.set_max(Some(9));
    let first = waiting[0].take_now();
    assert!(first.is_some() && waiting[1].take_now().is_none());
    pool.tenant(0).slots().set_max(None);
    assert!(waiting[1].take_now().is_some());
}

fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_wait_goes_on_over_dropped_futures_and_ends_with_the_slots() {
    let pool = Pool::new(1, Some(RULES), &[""]);
    let running = pool.enter(0).unwrap().take_now();
    let mut waiting = pool.enter(0).unwrap();
    for _ in 0..3 {
        assert!(poll(&mut Box::pin(waiting.granted())).is_pending());
    }
    drop(running);
    assert_eq!(pool.used(), (1, 1));
    drop(waiting.granted().await.unwrap());
    assert_eq!(pool.used(), (0, 0));
}

#[tokio::test]
async fn a_wait_is_over_when_it_has_lasted_for_as_long_as_it_may() {
    let rules = config::Queue {
        max_wait: MS(5),
        ..RULES
    };
    let pool = Pool::new(1, Some(rules), &[""]);
    let running = pool.enter(0).unwrap().take_now();
    let mut waiting = pool.enter(0).unwrap();
    let over = waiting.granted().await.unwrap_err();
    let told = TimedOut {
        retry_after: Duration::from_secs(1),
    };
    assert_eq!((over, pool.gauge("t0"), pool.queue.len()), (told, 0, 0));
    drop(running);
    assert_eq!(
        pool.used(),
        (0, 0),
        "nothing is given to one that timed out"
    );
}

#[test]
fn a_measured_pace_refuses_a_hopeless_wait_at_once() {
    let rules = config::Queue {
        max_wait: Duration::from_nanos(1),
        ..RULES
    };
    let pool = Pool::new(1, Some(rules), &[""]);
    let _first = pool.enter(0).unwrap();
    assert!(pool.enter(0).is_ok(), "nothing is measured yet");
    drop(_first);
    for _ in 0..3 {
        drop(pool.enter(0).unwrap().take_now());
        spin();
    }
    let _running = pool.enter(0).unwrap();
    let refused = pool.enter(0).unwrap_err();
    assert_eq!(refused.bound, Some(Bound::Wait));
    assert!(refused.retry_after > Duration::from_nanos(1));
}

/// Lets some microseconds pass.
fn spin() {
    let start = clock::instant();
    while start.elapsed() < Duration::from_micros(50) {
        std::hint::spin_loop();
    }
}

#[test]
fn the_mean_wait_is_of_turns_and_of_those_that_wait_for_the_pool() {
    let pool = Pool::new(1, Some(RULES), &["max_streams = 1", ""]);
    let running = pool.enter(0).unwrap().take_now();
    assert_eq!(pool.queue.mean_wait(), Duration::ZERO);
    let _blocked_by_itself = pool.enter(0).unwrap();
    let _waiting = pool.enter(1).unwrap();
    spin();
    assert!(pool.queue.mean_wait() >= Duration::from_micros(50));
    drop(running);
    assert!(pool.queue.mean_wait() >= Duration::from_micros(10));
}
