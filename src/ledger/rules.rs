//! What may happen to an entry, whatever database holds it: opened, moved on, settled, abandoned. Pure.

use super::entry::{End, Entry, Fingerprint, Opened, Opening, Owner};
use super::sums::Life;
use super::unknown::held_units;
use crate::budget::Units;
use crate::clock::Timestamp;
use crate::config::OnUnknown;
use crate::record::{EndedBy, Record, State, UsageSource};

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
        return (
            Verdict::Put(Box::new(first(opening, owner)), Life::Same),
            Opened::New,
        );
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
    Verdict::Put(
        Box::new(Entry {
            record,
            ..old.clone()
        }),
        Life::Same,
    )
}

/// Settles an entry, once: only its owner can, and it owns no longer.
pub(super) fn settle(old: Option<&Entry>, end: &End, run: &str, policy: OnUnknown) -> Verdict {
    let record = &end.record;
    if !record.state.is_terminal() {
        return Verdict::Broken(format!("it was to be settled as {}", record.state));
    }
    let Some(old) = old else {
        return Verdict::Put(Box::new(unopened(end, policy)), Life::Same);
    };
    let same_life = record.admitted_at == old.record.admitted_at;
    if old.is_owned_by(run) && (old.is_open() || same_life) {
        let entry = settled(old, end, policy);
        return Verdict::Put(Box::new(entry), Life::Same);
    }
    if old.is_unknown() && !same_life && old.record.ended_at == record.ended_at {
        return Verdict::Keep;
    }
    if old.is_open() {
        return Verdict::Broken("another run of the gateway owns it".into());
    }
    match same_life {
        true if is_written(old, end) => Verdict::Keep,
        true => Verdict::Broken("it is settled".into()),
        false => appended(old, end, policy),
    }
}

/// The record of an end, with what its id was charged before, which only the ledger knows for sure.
fn charged(end: &End, earlier: Units) -> Record {
    Record {
        charged_units: earlier.plus(end.charge),
        ..end.record.clone()
    }
}

/// Whether an entry says how this life ended: it is written again where nobody knows whether a commit came through.
fn is_written(old: &Entry, end: &End) -> bool {
    let (old, end, charged) = (&old.record, &end.record, old.earlier.plus(end.charge));
    old.ended_at == end.ended_at && old.state == end.state && old.charged_units == charged
}

fn settled(old: &Entry, end: &End, policy: OnUnknown) -> Entry {
    let record = charged(end, old.earlier);
    Entry {
        held: held_units(&record, old.earlier, policy),
        record,
        shown: end.shown,
        owner: None,
        ..old.clone()
    }
}

/// A request that ran without an entry, because the ledger could not be written then.
fn unopened(end: &End, policy: OnUnknown) -> Entry {
    let record = charged(end, Units::ZERO);
    Entry {
        held: held_units(&record, Units::ZERO, policy),
        record,
        fingerprint: end.fingerprint,
        shown: end.shown,
        owner: None,
        earlier: Units::ZERO,
    }
}

/// A request that ran without an entry under an id that had ended before: its charge is added to what the id was
/// charged. An entry that awaits its bill keeps awaiting it.
fn appended(old: &Entry, end: &End, policy: OnUnknown) -> Verdict {
    let record = continued(&old.record, &charged(end, Units::ZERO));
    if old.is_unknown() {
        let record = Record {
            attempts: record.attempts,
            charged_units: record.charged_units,
            // the later life's: by it a second try of the same is known
            ended_at: record.ended_at,
            ..old.record.clone()
        };
        return Verdict::Put(
            Box::new(Entry {
                record,
                ..old.clone()
            }),
            Life::Same,
        );
    }
    let earlier = old.record.charged_units;
    let entry = Entry {
        held: held_units(&record, earlier, policy),
        fingerprint: fingerprint_of_both(old, end),
        shown: end.shown || old.shown,
        owner: None,
        record,
        earlier,
    };
    Verdict::Put(Box::new(entry), Life::Next)
}

/// Lives of one id that named different payloads, while nobody could look, have none in common.
fn fingerprint_of_both(old: &Entry, end: &End) -> Fingerprint {
    match old.fingerprint == end.fingerprint {
        true => end.fingerprint,
        false => Fingerprint::UNKNOWN,
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
    Verdict::Put(
        Box::new(Entry {
            record,
            ..old.clone()
        }),
        Life::Same,
    )
}
