//! Whose turn it is: start-time fair queueing over tenants (Goyal, Vin and Cheng, SIGCOMM 1996), on a clock that is
//! given. Pure.
//!
//! Each tenant has a place in virtual time, which its turns move on by what they cost (the units a request reserves)
//! over the tenant's weight. The smallest place has the next turn. So tenants that wait get shares of the served units
//! by their weights; one with long requests waits longer between its turns; one that comes after a rest starts where
//! the others are, owed nothing and owing nothing.
//!
//! A tenant that has no slot of its own left is passed over: it blocks nobody, and saves up no turns. What a request
//! reserves is its cost, and stays so when it ends up using less: it is known before, and it is the tenant's choice.

use super::bounds::{Bound, Pace, Standing, check};
use super::flow::{Cost, Flow, Tag, Waiting};
use crate::budget::Units;
use crate::config;
use crate::tenant::TenantName;
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Tenants remembered before any is forgotten.
const FLOWS_MIN: usize = 64;

/// Who asks for a turn.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub tenant: &'a TenantName,
    pub weight: u32,
    /// What the request reserves.
    pub cost: Units,
    /// How many of the tenant may wait.
    pub max_queued: Option<usize>,
    pub pace: Pace,
}

/// A place in line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    tenant: TenantName,
    number: u64,
}

/// Whose turn it was.
#[derive(Debug)]
pub struct Next<W, S> {
    pub waiter: W,
    /// What it took of its tenant.
    pub taken: S,
    pub waited: Duration,
    /// The part of that in which the pool, and not the tenant itself, let it wait.
    pub waited_for_pool: Duration,
}

/// Where a tenant with waiting requests stands: the place of its first, then who came first.
type Turn = (Tag, u64, TenantName);

#[derive(Debug)]
pub struct FairQueue<W> {
    flows: HashMap<TenantName, Flow<W>>,
    /// Tenants of which any waits, in order.
    turns: BTreeSet<Turn>,
    /// The virtual time: where what was served last started.
    now: Tag,
    /// Where what was served would all be over.
    latest: Tag,
    len: usize,
    tickets: u64,
    /// How many flows there may be before those that owe nothing are looked for and forgotten.
    flows_max: usize,
}

impl<W> Default for FairQueue<W> {
    fn default() -> FairQueue<W> {
        FairQueue {
            flows: HashMap::new(),
            turns: BTreeSet::new(),
            now: Tag::default(),
            latest: Tag::default(),
            len: 0,
            tickets: 0,
            flows_max: FLOWS_MIN,
        }
    }
}

impl<W> FairQueue<W> {
    /// Gets in line, or is refused with the wait that was to be expected.
    pub fn enter(
        &mut self,
        ask: &Ask<'_>,
        rules: &config::Queue,
        now: Instant,
        waiter: W,
    ) -> Result<Ticket, (Bound, Duration)> {
        let standing = self.standing(ask.tenant);
        let expected = ask.pace.expected(standing);
        check(rules, ask.max_queued, self.len, standing, expected).map_err(|b| (b, expected))?;
        self.tickets += 1;
        let number = self.tickets;
        self.change(ask.tenant, |flow, virtual_now| {
            flow.weight = ask.weight;
            if flow.waiting.is_empty() {
                flow.tag = flow.tag.max(virtual_now);
                flow.passed_over = None;
            }
            flow.waiting.push_back(Waiting {
                number,
                cost: Cost::of(ask.cost),
                since: now,
                waiter,
            });
        });
        self.len += 1;
        Ok(Ticket {
            tenant: ask.tenant.clone(),
            number,
        })
    }

    /// A slot is free and nobody can use it but a newcomer: what was scarce is not any more, and nobody owes or is owed
    /// for what went before.
    pub fn rest(&mut self) {
        if !self.flows.is_empty() {
            self.now = self.latest;
            self.forget();
        }
    }

    /// Whose turn it is now that a slot of the pool is free: the first of those for which `take` finds a slot of their
    /// tenant.
    pub fn next<S>(
        &mut self,
        now: Instant,
        mut take: impl FnMut(&W) -> Option<S>,
    ) -> Option<Next<W, S>> {
        let mut found = None;
        for (_, _, tenant) in &self.turns {
            let Some(flow) = self.flows.get_mut(tenant) else {
                continue;
            };
            let taken = flow.waiting.front().and_then(|w| take(&w.waiter));
            if let Some(taken) = taken {
                found = Some((tenant.clone(), taken));
                break;
            }
            flow.passed_over = Some(now);
        }
        let (tenant, taken) = found?;
        self.serve(&tenant, taken, now)
    }

    fn serve<S>(&mut self, tenant: &TenantName, taken: S, now: Instant) -> Option<Next<W, S>> {
        let (start, end, served) = self.change(tenant, |flow, virtual_now| {
            let served = flow.waiting.pop_front();
            let start = flow.tag.max(virtual_now);
            if let Some(served) = &served {
                flow.tag = start.after(served.cost, flow.weight);
            }
            let waited = served.as_ref().map(|s| flow.waited(s.since, now));
            (start, flow.tag, served.zip(waited))
        });
        self.now = start;
        self.latest = self.latest.max(end);
        let (served, waited_for_pool) = served?;
        self.len -= 1;
        self.forget();
        Some(Next {
            waiter: served.waiter,
            taken,
            waited: now.saturating_duration_since(served.since),
            waited_for_pool,
        })
    }

    /// Leaves the line. Whether it was still in it.
    pub fn leave(&mut self, ticket: &Ticket) -> bool {
        let left = self.flows.contains_key(&ticket.tenant)
            && self.change(&ticket.tenant, |flow, _| {
                flow.remove(ticket.number).is_some()
            });
        self.len -= usize::from(left);
        left
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many of a tenant wait.
    pub fn len_of(&self, tenant: &TenantName) -> usize {
        self.flows.get(tenant).map_or(0, |f| f.waiting.len())
    }

    /// How many tenants are remembered.
    #[cfg(test)]
    pub fn tenants_known(&self) -> usize {
        self.flows.len()
    }

    /// How long one more of a tenant would wait.
    pub fn expected(&self, tenant: &TenantName, pace: &Pace) -> Duration {
        pace.expected(self.standing(tenant))
    }

    /// How long those in line have waited for the pool so far, in the mean.
    pub fn mean_age(&self, now: Instant) -> Duration {
        let ages = self
            .flows
            .values()
            .flat_map(|f| f.waiting.iter().map(move |w| f.waited(w.since, now)));
        let total = ages.fold(Duration::ZERO, Duration::saturating_add);
        total
            .checked_div(u32::try_from(self.len).unwrap_or(u32::MAX))
            .unwrap_or_default()
    }

    /// The place that one more of a tenant would get.
    fn standing(&self, tenant: &TenantName) -> Standing {
        let own = self.flows.get(tenant);
        let start = own.map_or(self.now, |f| f.end(self.now));
        let ahead: usize = self
            .turns
            .iter()
            .take_while(|(tag, _, _)| *tag.max(&self.now) <= start)
            .filter(|(_, _, other)| other != tenant)
            .filter_map(|(_, _, other)| self.flows.get(other))
            .map(|flow| flow.ahead_of(start, self.now))
            .sum();
        let in_tenant = own.map_or(0, |f| f.waiting.len()) + 1;
        Standing {
            in_pool: ahead + in_tenant,
            in_tenant,
        }
    }

    /// Changes a tenant's part and keeps its turn in order.
    fn change<T>(&mut self, tenant: &TenantName, change: impl FnOnce(&mut Flow<W>, Tag) -> T) -> T {
        let now = self.now;
        let flow = self
            .flows
            .entry(tenant.clone())
            .or_insert_with(|| Flow::new(now));
        if let Some(first) = flow.waiting.front() {
            self.turns.remove(&(flow.tag, first.number, tenant.clone()));
        }
        let result = change(flow, now);
        if let Some(first) = flow.waiting.front() {
            self.turns.insert((flow.tag, first.number, tenant.clone()));
        }
        result
    }

    /// Forgets tenants of which none waits and that owe nothing, now and then.
    fn forget(&mut self) {
        if self.flows.len() < self.flows_max {
            return;
        }
        let now = self.now;
        self.flows
            .retain(|_, flow| !flow.waiting.is_empty() || flow.tag > now);
        self.flows_max = (self.flows.len() * 2).max(FLOWS_MIN);
    }
}
