//! What is right, counted a second time: every admission and every end, by the hour of admission.

use crate::budget::{Hour, Sums, Units};
use crate::clock::Timestamp;
use crate::config::{Budget, Period};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// One tenant's page.
#[derive(Debug, Default)]
pub struct Page {
    hours: BTreeMap<Hour, Sums>,
    /// What was taken of the minute's units and not given back.
    pub drawn: u64,
}

/// What runs, by life.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    pub tenant: usize,
    pub hour: Hour,
    pub reserved: Units,
}

#[derive(Debug, Default)]
pub struct Book {
    pub pages: Vec<Page>,
    pub open: HashMap<u64, Open>,
    /// Crashed, and awaiting their bill.
    pub unknown: Vec<Open>,
}

impl Page {
    fn change(&mut self, hour: Hour, change: impl FnOnce(&mut Sums)) {
        change(self.hours.entry(hour).or_default());
    }

    /// The sums of the period that a moment lies in.
    pub fn sums(&self, now: Timestamp, period: Period) -> Sums {
        let start = Hour::of(now).period_start(period);
        self.hours
            .range(start..)
            .fold(Sums::default(), |a, (_, s)| Sums {
                charged: a.charged.plus(s.charged),
                reserved: a.reserved.plus(s.reserved),
                held: a.held.plus(s.held),
            })
    }

    /// What a budget has left; less than nothing where an overrun was charged.
    pub fn left(&self, now: Timestamp, budget: Budget) -> i128 {
        let sums = self.sums(now, budget.period);
        let taken =
            u128::from(sums.charged.0) + u128::from(sums.reserved.0) + u128::from(sums.held.0);
        i128::from(budget.units.0) - i128::try_from(taken).unwrap()
    }

    pub fn hours(&self) -> impl Iterator<Item = (&Hour, &Sums)> {
        self.hours.iter()
    }

    /// The most that may have been drawn since the start.
    pub fn drawable(limit: u64, since: Duration) -> u128 {
        let limit = u128::from(limit);
        limit + limit * since.as_nanos() / 60_000_000_000 + 1
    }
}

impl Book {
    pub fn admitted(&mut self, life: u64, open: Open) {
        let page = &mut self.pages[open.tenant];
        page.change(open.hour, |s| s.reserved = s.reserved.plus(open.reserved));
        page.drawn += open.reserved.0;
        let before = self.open.insert(life, open);
        assert!(before.is_none(), "life {life} was admitted twice");
    }

    pub fn settled(&mut self, life: u64, charge: Units) {
        let open = self.open.remove(&life);
        let open = open.unwrap_or_else(|| panic!("life {life} was settled twice"));
        let page = &mut self.pages[open.tenant];
        page.drawn -= open.reserved.minus(charge).0;
        page.change(open.hour, |s| {
            s.reserved = Units(s.reserved.0 - open.reserved.0);
            s.charged = s.charged.plus(charge);
        });
    }

    /// The process is gone: what was open is held, and nobody knows what it cost.
    pub fn crashed(&mut self) {
        let mut lives: Vec<_> = self.open.drain().collect();
        lives.sort_unstable_by_key(|(life, _)| *life);
        for (_, open) in lives {
            self.pages[open.tenant].change(open.hour, |s| {
                s.reserved = Units(s.reserved.0 - open.reserved.0);
                s.held = s.held.plus(open.reserved);
            });
            self.unknown.push(open);
        }
        for page in &mut self.pages {
            page.drawn = 0;
        }
    }

    /// A bill says what one of the unknown cost.
    pub fn reconciled(&mut self, open: Open, charge: Units) {
        self.pages[open.tenant].change(open.hour, |s| {
            s.held = Units(s.held.0 - open.reserved.0);
            s.charged = s.charged.plus(charge);
        });
    }
}
