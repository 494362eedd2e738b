//! One tenant's part of a queue: its requests in the order they came, and where it stands in virtual time. Pure.

use crate::budget::Units;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A moment of virtual time, which goes on by the cost of what is served, divided by its tenant's weight. Of equal
/// weights, the tenant that was served less has the smaller one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag(u128);

/// A cost of one unit at weight 1. Weights reach a million: what is lost in a division stays far below a unit.
const UNIT: u128 = 1 << 32;
/// The least that a turn costs: a slot is taken however little is asked, so that requests without output cannot take
/// nearly every turn.
const COST_MIN: u64 = 16;
/// The most: far over what a request may cost, and sums of it stay within virtual time.
const COST_MAX: u64 = 1 << 40;

/// What a turn costs, in virtual time at weight 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cost(u128);

impl Cost {
    pub fn of(units: Units) -> Cost {
        Cost(u128::from(units.0.clamp(COST_MIN, COST_MAX)) * UNIT)
    }
}

impl Tag {
    pub fn after(self, cost: Cost, weight: u32) -> Tag {
        Tag(self.0.saturating_add(cost.0 / u128::from(weight.max(1))))
    }
}

/// One that waits.
#[derive(Debug)]
pub(super) struct Waiting<W> {
    pub number: u64,
    pub cost: Cost,
    pub since: Instant,
    pub waiter: W,
}

#[derive(Debug)]
pub(super) struct Flow<W> {
    pub weight: u32,
    /// Where the first that waits starts; with none waiting, where the last that was served ended.
    pub tag: Tag,
    pub waiting: VecDeque<Waiting<W>>,
    /// When its turn was last passed over because the tenant had no slot of its own left.
    pub passed_over: Option<Instant>,
}

impl<W> Flow<W> {
    pub fn new(tag: Tag) -> Flow<W> {
        Flow {
            weight: 1,
            tag,
            waiting: VecDeque::new(),
            passed_over: None,
        }
    }

    /// Where one that comes now would start: after all that wait.
    pub fn end(&self, now: Tag) -> Tag {
        let start = self.tag.max(now);
        self.waiting
            .iter()
            .fold(start, |tag, w| tag.after(w.cost, self.weight))
    }

    /// How many that wait start no later than `start`.
    pub fn ahead_of(&self, start: Tag, now: Tag) -> usize {
        let mut tag = self.tag.max(now);
        let ahead = self.waiting.iter().take_while(|w| {
            let before = tag <= start;
            tag = tag.after(w.cost, self.weight);
            before
        });
        ahead.count()
    }

    /// How long one has waited for the pool: not for a slot of its own tenant, which is the tenant's own affair.
    pub fn waited(&self, since: Instant, now: Instant) -> Duration {
        let since = self.passed_over.map_or(since, |over| over.max(since));
        now.saturating_duration_since(since)
    }

    /// Takes one out by its number.
    pub fn remove(&mut self, number: u64) -> Option<Waiting<W>> {
        let at = self.waiting.binary_search_by_key(&number, |w| w.number);
        self.waiting.remove(at.ok()?)
    }
}
