//! What may happen to an entry, whatever database holds it: opened, moved on, settled, abandoned, found crashed,
//! reconciled. Pure.

use super::entry::{Entry, Fingerprint, Opened, Opening, Owner};
use super::sums::Life;
use crate::budget::Units;
use crate::clock::Timestamp;
use crate::config::OnUnknown;
use crate::exchange::{EndedBy, Record, State, UsageSource};

/// What a crash leaves in the record of a request that ran.
const CRASH: &str = "the gateway stopped before the request ended";

/// What becomes of an entry.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Nothing changes.
    Keep,
    /// The entry is now this.
    Put(Box<Entry>, Life),
    /// What was asked breaks an invariant; in words.
    Broken(String),
}

/// Opens an id, or says why not. A second try of the same opening finds its own entry and succeeds again.
pub(super) fn open(old: Option<&Entry>, opening: &Opening, owner: Owner) -> (Verdict, Opened) {
    let Some(old) = old else {
        return (Verdict::Put(Box::new(first(opening, owner)), Life::Same), Opened::New);
    };
    if old.is_open() && old.owner.as_ref() == Some(&owner) {
        return (Verdict::Keep, opened_before(old));
    }
    let again = !old.is_open() && !old.shown && !old.is_unknown() && !is_crash(&old.record);
    if !again || old.fingerprint != opening.fingerprint {
        return (Verdict::Keep, Opened::Conflict(Box::new(old.known())));
    }
    let entry = Entry {
        record: continued(&old.record, &opening.record),
        earlier: old.record.charged_units,
        ..first(opening, owner)
    };
    (
        Verdict::Put(Box::new(entry), Life::Next),
        Opened::Reopened(Box::new(old.record.clone())),
    )
}

fn first(opening: &Opening, owner: Owner) -> Entry {
    Entry {
        record: opening.record.clone(),
        fingerprint: opening.fingerprint,
        shown: false,
        owner: Some(owner),
        earlier: Units::ZERO,
        held: Units::ZERO,
    }
}

fn opened_before(old: &Entry) -> Opened {
    let nothing_before = old.earlier == Units::ZERO && old.record.attempts.is_empty();
    match nothing_before {
        true => Opened::New,
        false => Opened::Reopened(Box::new(old.record.clone())),
    }
}

fn is_crash(record: &Record) -> bool {
    record.ended_by == Some(EndedBy::Crash)
}

/// The record of an id that runs again: attempts append, charges add up, all else is the new life's.
fn continued(before: &Record, now: &Record) -> Record {
    let mut attempts = before.attempts.clone();
    attempts.extend(now.attempts.iter().cloned());
    Record {
        attempts,
        charged_units: before.charged_units.plus(now.charged_units),
        ..now.clone()
    }
}

/// Moves an open entry's figures on, so that a crash finds more than the opening.
pub(super) fn checkpoint(old: Option<&Entry>, record: &Record, run: &str) -> Verdict {
    let Some(old) = old.filter(|o| o.is_open() && o.is_owned_by(run)) else {
        return Verdict::Keep;
    };
    if record.state.is_terminal() || record.admitted_at != old.record.admitted_at {
        return Verdict::Keep;
    }
    let record = Record {
        reserved_units: old.record.reserved_units,
        charged_units: old.record.charged_units,
        ..record.clone()
    };
    Verdict::Put(Box::new(Entry { record, ..old.clone() }), Life::Same)
}

/// Settles an entry, once: only its owner can, and it owns no longer.
pub(super) fn settle(
    old: Option<&Entry>,
    (record, shown): (&Record, bool),
    run: &str,
    policy: OnUnknown,
) -> Verdict {
    if !record.state.is_terminal() {
        return Verdict::Broken(format!("it was to be settled as {}", record.state));
    }
    let Some(old) = old else {
        return Verdict::Put(Box::new(unopened(record, shown, policy)), Life::Same);
    };
    let same_life = record.admitted_at == old.record.admitted_at;
    if old.is_owned_by(run) && (old.is_open() || same_life) {
        let entry = settled(old, record, shown, policy);
        return Verdict::Put(Box::new(entry), Life::Same);
    }
    if old.is_open() {
        return Verdict::Broken("another run of the gateway owns it".into());
    }
    match same_life {
        true if old.record == *record => Verdict::Keep,
        true => Verdict::Broken("it is settled".into()),
        false => appended(old, record, shown, policy),
    }
}

fn settled(old: &Entry, record: &Record, shown: bool, policy: OnUnknown) -> Entry {
    let record = Record {
        charged_units: record.charged_units.max(old.earlier),
        ..record.clone()
    };
    Entry {
        held: held_units(&record, old.earlier, policy),
        record,
        shown,
        owner: None,
        ..old.clone()
    }
}

/// A request that ran without an entry, because the ledger could not be written then.
fn unopened(record: &Record, shown: bool, policy: OnUnknown) -> Entry {
    Entry {
        record: record.clone(),
        fingerprint: Fingerprint::UNKNOWN,
        shown,
        owner: None,
        earlier: Units::ZERO,
        held: held_units(record, Units::ZERO, policy),
    }
}

/// A request that ran without an entry under an id that had ended before: its charge is added to what the id was
/// charged. An entry that awaits its bill keeps awaiting it.
fn appended(old: &Entry, record: &Record, shown: bool, policy: OnUnknown) -> Verdict {
    let record = continued(&old.record, record);
    if old.is_unknown() {
        let record = Record {
            attempts: record.attempts,
            charged_units: record.charged_units,
            ..old.record.clone()
        };
        return Verdict::Put(Box::new(Entry { record, ..old.clone() }), Life::Same);
    }
    let earlier = old.record.charged_units;
    let entry = Entry {
        held: held_units(&record, earlier, policy),
        fingerprint: Fingerprint::UNKNOWN,
        shown: shown || old.shown,
        owner: None,
        record,
        earlier,
    };
    Verdict::Put(Box::new(entry), Life::Next)
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

/// Why an opening came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Abandoned {
    /// Who asked left before the answer.
    Left,
    /// The answer came too late, the request was refused.
    Late,
}

/// Ends an entry whose opening nobody waited for. It stays owned: the gateway may have served it all the same.
pub(super) fn abandon(
    old: Option<&Entry>,
    owner: &Owner,
    why: Abandoned,
    now: Timestamp,
) -> Verdict {
    let Some(old) = old.filter(|o| o.is_open() && o.owner.as_ref() == Some(owner)) else {
        return Verdict::Keep;
    };
    let (state, ended_by, error) = match why {
        Abandoned::Left => (State::Cancelled, EndedBy::ClientClosed, None),
        Abandoned::Late => (
            State::Failed,
            EndedBy::Gateway,
            Some("the ledger did not answer in time".to_owned()),
        ),
    };
    let record = Record {
        state,
        ended_by: Some(ended_by),
        error,
        ended_at: Some(now),
        usage_source: UsageSource::Counted,
        ..old.record.clone()
    };
    Verdict::Put(Box::new(Entry { record, ..old.clone() }), Life::Same)
}

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
    AlreadyOtherwise { charged: Units },
    /// Its usage was never in doubt.
    Known { charged: Units },
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
