//! Entries whose usage nobody knows: how a crash makes them, what they hold of a budget, how a bill settles them. Pure.

use super::entry::Entry;
use super::store::Settlement;
use crate::budget::Units;
use crate::clock::Timestamp;
use crate::config::OnUnknown;
use crate::record::{Attempt, EndedBy, Outcome, Record, State, UpstreamEnd, UsageSource};

/// What a crash leaves in the record of a request that ran.
const CRASH: &str = "the gateway stopped before the request ended";
/// What it leaves in that of one that had no slot yet when the ledger last heard of it. Its call may have been under way.
const CRASH_IN_LINE: &str =
    "the gateway stopped while the request waited for a slot or had just got one";

/// An open entry whose process is dead: what it used is unknown, its id counts as shown, its budget is held or
/// charged as the policy says. It stays owned, should the process live after all.
pub(super) fn crash(old: &Entry, policy: OnUnknown, now: Timestamp) -> Entry {
    let was = &old.record;
    let added = match policy {
        OnUnknown::Hold => Units::ZERO,
        OnUnknown::ChargeReserved => was.reserved_units,
        OnUnknown::ChargeCounted => was.input_units.plus(was.generated_units),
    };
    let was_in_line = was.state == State::Queued;
    let why = if was_in_line { CRASH_IN_LINE } else { CRASH };
    let record = Record {
        state: State::Failed,
        ended_by: Some(EndedBy::Crash),
        // `none` would say that it was never called
        upstream_end: UpstreamEnd::Error,
        usage_source: UsageSource::Unknown,
        error: Some(why.to_owned()),
        ended_at: Some(now),
        charged_units: was.charged_units.plus(added),
        attempts: attempts(was),
        ..was.clone()
    };
    Entry {
        held: held_units(&record, old.earlier, policy),
        record,
        shown: true,
        ..old.clone()
    }
}

/// The tries the ledger heard of, and the one that was under way: a record that names a backend was last written while
/// it was tried.
fn attempts(was: &Record) -> Vec<Attempt> {
    let mut attempts = was.attempts.clone();
    attempts.extend(was.backend.clone().map(|backend| Attempt {
        backend,
        outcome: Outcome::Error,
        status: None,
    }));
    attempts
}

/// An entry that a bill settles, before and after.
#[derive(Debug)]
pub(super) struct Billed {
    pub old: Box<Entry>,
    pub new: Box<Entry>,
}

impl Billed {
    pub fn settlement(&self) -> Settlement {
        Settlement::Reconciled {
            before: self.old.record.charged_units,
            held: self.old.held,
        }
    }
}

/// What a line of a bill does to the entries of its id: one that awaits its bill is charged what the line says, and
/// holds nothing any more. Or why nothing is to be done.
pub(super) fn reconcile(mut found: Vec<Entry>, units: Units) -> Result<Billed, Settlement> {
    let old = found.pop().ok_or(Settlement::NotFound)?;
    if !found.is_empty() {
        found.push(old);
        let tenants = found.into_iter().map(|entry| entry.record.tenant);
        let mut tenants: Vec<_> = tenants.collect();
        tenants.sort();
        return Err(Settlement::Ambiguous(tenants));
    }
    if old.is_open() {
        return Err(Settlement::Running);
    }
    let charged = old.record.charged_units;
    match old.record.usage_source {
        UsageSource::Unknown => Ok(Billed {
            new: Box::new(billed(&old, units)),
            old: Box::new(old),
        }),
        UsageSource::Reconciled if charged == units => Err(Settlement::Already),
        UsageSource::Reconciled => Err(Settlement::AlreadyOtherwise { charged }),
        UsageSource::Upstream | UsageSource::Counted => Err(Settlement::Known { charged }),
    }
}

fn billed(old: &Entry, units: Units) -> Entry {
    let record = Record {
        charged_units: units,
        usage_source: UsageSource::Reconciled,
        ..old.record.clone()
    };
    Entry {
        record,
        owner: None,
        held: Units::ZERO,
        ..old.clone()
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
