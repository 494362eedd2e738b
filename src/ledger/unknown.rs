//! Entries whose usage nobody knows: how a crash makes them, what they hold of a budget, how a bill settles them. Pure.

use super::entry::Entry;
use crate::budget::Units;
use crate::clock::Timestamp;
use crate::config::OnUnknown;
use crate::exchange::{EndedBy, Record, State, UsageSource};

/// What a crash leaves in the record of a request that ran.
const CRASH: &str = "the gateway stopped before the request ended";

/// An open entry whose process is dead: what it used is unknown, its id counts as shown, its budget is held or
/// charged as the policy says. It stays owned, should the process live after all.
pub(super) fn crash(old: &Entry, policy: OnUnknown, now: Timestamp) -> Entry {
    let was = &old.record;
    let added = match policy {
        OnUnknown::Hold => Units::ZERO,
        OnUnknown::ChargeReserved => was.reserved_units,
        OnUnknown::ChargeCounted => was.input_units.plus(was.generated_units),
    };
    let record = Record {
        state: State::Failed,
        ended_by: Some(EndedBy::Crash),
        usage_source: UsageSource::Unknown,
        error: Some(CRASH.to_owned()),
        ended_at: Some(now),
        charged_units: was.charged_units.plus(added),
        ..was.clone()
    };
    Entry {
        held: held_units(&record, old.earlier, policy),
        record,
        shown: true,
        ..old.clone()
    }
}

/// What a line of a bill does to its entry.
#[derive(Debug)]
pub(super) enum Reconciled {
    Now(Box<Entry>),
    /// It was before, with the same units.
    Already,
    AlreadyOtherwise {
        charged: Units,
    },
    /// Its usage was never in doubt.
    Known {
        charged: Units,
    },
    Running,
}

/// Settles an entry that awaits its bill: it is charged what the bill says, and holds nothing any more.
pub(super) fn reconcile(old: &Entry, units: Units) -> Reconciled {
    let charged = old.record.charged_units;
    if old.is_open() {
        return Reconciled::Running;
    }
    match old.record.usage_source {
        UsageSource::Unknown => {
            let record = Record {
                charged_units: units,
                usage_source: UsageSource::Reconciled,
                ..old.record.clone()
            };
            Reconciled::Now(Box::new(Entry {
                record,
                owner: None,
                held: Units::ZERO,
                ..old.clone()
            }))
        }
        UsageSource::Reconciled if charged == units => Reconciled::Already,
        UsageSource::Reconciled => Reconciled::AlreadyOtherwise { charged },
        UsageSource::Upstream | UsageSource::Counted => Reconciled::Known { charged },
    }
}

/// What the budget of a request whose usage is unknown holds beside its charge, until its bill comes. `earlier` is
/// what earlier lives of its id were charged.
pub fn held_units(record: &Record, earlier: Units, policy: OnUnknown) -> Units {
    let unknown = record.usage_source == UsageSource::Unknown;
    match policy {
        OnUnknown::Hold if unknown => record
            .reserved_units
            .minus(record.charged_units.minus(earlier)),
        OnUnknown::Hold | OnUnknown::ChargeReserved | OnUnknown::ChargeCounted => Units::ZERO,
    }
}
