//! What entries add up to: accounts (what a tenant was charged, by hour of admission) and usage (by tenant, model and
//! day). Pure.

use super::entry::Entry;
use crate::budget::{Hour, Units};
use crate::clock::Timestamp;
use crate::config::Period;
use crate::record::State;
use crate::tenant::TenantName;
use std::collections::BTreeMap;

const DAY_US: i64 = 24 * 3_600_000_000;

/// A day of UTC, counted from the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Day(pub i64);

impl Day {
    pub fn of(at: Timestamp) -> Day {
        Day(at.0.div_euclid(DAY_US))
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let date = Timestamp(self.0.saturating_mul(DAY_US)).date_time().date();
        write!(
            f,
            "{:04}-{:02}-{:02}",
            date.year(),
            u8::from(date.month()),
            date.day()
        )
    }
}

/// What one tenant's requests of one hour take from its budget: as a standing sum, or as a change of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    pub charged: i64,
    /// By entries that await their bill.
    pub held: i64,
    /// By entries that are open.
    pub reserved: i64,
    /// How many entries are open.
    pub open: i64,
    /// How many await their bill.
    pub unknown: i64,
}

impl Amounts {
    pub const NONE: Amounts = Amounts {
        charged: 0,
        held: 0,
        reserved: 0,
        open: 0,
        unknown: 0,
    };

    #[must_use]
    pub fn plus(self, other: Amounts) -> Amounts {
        Amounts {
            charged: self.charged.saturating_add(other.charged),
            held: self.held.saturating_add(other.held),
            reserved: self.reserved.saturating_add(other.reserved),
            open: self.open.saturating_add(other.open),
            unknown: self.unknown.saturating_add(other.unknown),
        }
    }

    #[must_use]
    pub fn minus(self, other: Amounts) -> Amounts {
        Amounts {
            charged: self.charged.saturating_sub(other.charged),
            held: self.held.saturating_sub(other.held),
            reserved: self.reserved.saturating_sub(other.reserved),
            open: self.open.saturating_sub(other.open),
            unknown: self.unknown.saturating_sub(other.unknown),
        }
    }

    pub(super) fn of(entry: &Entry) -> Amounts {
        let open = entry.is_open();
        Amounts {
            charged: signed(entry.record.charged_units).saturating_sub(signed(entry.earlier)),
            held: signed(entry.held),
            reserved: if open {
                signed(entry.record.reserved_units)
            } else {
                0
            },
            open: i64::from(open),
            unknown: i64::from(entry.is_unknown()),
        }
    }
}

/// The amounts of one tenant and one hour of admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posting {
    pub tenant: TenantName,
    pub hour: Hour,
    pub amounts: Amounts,
}

/// Whose usage a row of the report sums.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UsageKey {
    pub day: Day,
    pub tenant: TenantName,
    pub model: String,
}

/// A row of the report: counts of entries and sums of their units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub requests: i64,
    pub completed: i64,
    pub cancelled: i64,
    pub failed: i64,
    pub unknown: i64,
    pub input_units: i64,
    pub generated_units: i64,
    pub delivered_units: i64,
    pub charged_units: i64,
}

impl Usage {
    const NONE: Usage = Usage {
        requests: 0,
        completed: 0,
        cancelled: 0,
        failed: 0,
        unknown: 0,
        input_units: 0,
        generated_units: 0,
        delivered_units: 0,
        charged_units: 0,
    };

    /// An open entry adds nothing but what its id was charged before.
    fn of(entry: &Entry) -> Usage {
        let record = &entry.record;
        if entry.is_open() {
            return Usage {
                charged_units: signed(record.charged_units),
                ..Usage::NONE
            };
        }
        let ended_as = |state| i64::from(record.state == state);
        Usage {
            requests: 1,
            completed: ended_as(State::Completed),
            cancelled: ended_as(State::Cancelled),
            failed: ended_as(State::Failed),
            unknown: i64::from(entry.is_unknown()),
            input_units: signed(record.input_units),
            generated_units: signed(record.generated_units),
            delivered_units: signed(record.delivered_units),
            charged_units: signed(record.charged_units),
        }
    }

    #[must_use]
    pub fn plus(self, other: Usage) -> Usage {
        self.with(other, i64::saturating_add)
    }

    #[must_use]
    fn minus(self, other: Usage) -> Usage {
        self.with(other, i64::saturating_sub)
    }

    fn with(self, other: Usage, op: fn(i64, i64) -> i64) -> Usage {
        Usage {
            requests: op(self.requests, other.requests),
            completed: op(self.completed, other.completed),
            cancelled: op(self.cancelled, other.cancelled),
            failed: op(self.failed, other.failed),
            unknown: op(self.unknown, other.unknown),
            input_units: op(self.input_units, other.input_units),
            generated_units: op(self.generated_units, other.generated_units),
            delivered_units: op(self.delivered_units, other.delivered_units),
            charged_units: op(self.charged_units, other.charged_units),
        }
    }
}

/// Which life of its id an entry's new state belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// The same as before: what it added before is taken back.
    Same,
    /// The next one: what earlier lives were charged stays in the hours of their admission.
    Next,
}

/// What a transaction changes in the sums.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub accounts: BTreeMap<(TenantName, Hour), Amounts>,
    pub usage: BTreeMap<UsageKey, Usage>,
}

impl Change {
    /// Notes that `old` has become `new`.
    pub fn replace(&mut self, old: Option<&Entry>, new: &Entry, life: Life) {
        if let Some(old) = old {
            let before = self.usage_of(old);
            *before = before.minus(Usage::of(old));
            if life == Life::Same {
                let before = self.account_of(old);
                *before = before.minus(Amounts::of(old));
            }
        }
        let now = self.usage_of(new);
        *now = now.plus(Usage::of(new));
        let now = self.account_of(new);
        *now = now.plus(Amounts::of(new));
    }

    /// Adds another change to it.
    pub fn absorb(&mut self, other: Change) {
        for (key, amounts) in other.accounts {
            let sum = self.accounts.entry(key).or_default();
            *sum = sum.plus(amounts);
        }
        for (key, usage) in other.usage {
            let sum = self.usage.entry(key).or_default();
            *sum = sum.plus(usage);
        }
    }

    /// What it does to the accounts, leaving out those it does not move.
    pub fn postings(&self) -> Vec<Posting> {
        let moved = self.accounts.iter().filter(|(_, a)| **a != Amounts::NONE);
        moved
            .map(|((tenant, hour), amounts)| Posting {
                tenant: tenant.clone(),
                hour: *hour,
                amounts: *amounts,
            })
            .collect()
    }

    /// What it does to the report, leaving out the rows it does not move.
    pub fn usages(&self) -> impl Iterator<Item = (&UsageKey, &Usage)> {
        self.usage.iter().filter(|(_, u)| **u != Usage::NONE)
    }

    fn account_of(&mut self, entry: &Entry) -> &mut Amounts {
        let key = (
            entry.record.tenant.clone(),
            Hour::of(entry.record.admitted_at),
        );
        self.accounts.entry(key).or_default()
    }

    fn usage_of(&mut self, entry: &Entry) -> &mut Usage {
        let key = UsageKey {
            day: Day::of(entry.record.admitted_at),
            tenant: entry.record.tenant.clone(),
            model: entry.record.model.clone(),
        };
        self.usage.entry(key).or_default()
    }
}

/// The hour in which the month of a moment began.
pub(super) fn month_of(now: Timestamp) -> Hour {
    Hour::of(now).period_start(Period::Month)
}

/// Units as the database holds them.
pub(super) fn signed(units: Units) -> i64 {
    i64::try_from(units.0).unwrap_or(i64::MAX)
}

/// Units as the database held them; a negative figure was never written by us and counts as none.
pub(super) fn unsigned(units: i64) -> Units {
    Units(u64::try_from(units).unwrap_or(0))
}
