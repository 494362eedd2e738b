//! An entry of the ledger: a request's record, and what the ledger keeps beside it.

use crate::budget::Units;
use crate::record::{Record, RequestId, State, UsageSource};
use crate::tenant::TenantName;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What makes two requests of one id the same request: the SHA-256 of tenant, method, path and body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Of an entry whose payload nobody kept.
    pub const UNKNOWN: Fingerprint = Fingerprint([0; 32]);

    /// Each part is preceded by its length, so that no two splits of the same bytes are alike.
    pub fn of(tenant: &TenantName, method: &str, path: &str, body: &[u8]) -> Fingerprint {
        let mut hash = Sha256::new();
        for part in [
            tenant.as_str().as_bytes(),
            method.as_bytes(),
            path.as_bytes(),
            body,
        ] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Fingerprint(hash.finalize().into())
    }
}

/// What the gateway writes before it calls the upstream.
#[derive(Clone, Debug)]
pub struct Opening {
    /// A running record. The budget hour of this life of the id is that of its `admitted_at`.
    pub record: Record,
    pub fingerprint: Fingerprint,
}

/// How a life of an id ended: what settles its entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// The record at its end, with the `admitted_at` of its opening.
    pub record: Record,
    pub fingerprint: Fingerprint,
    /// Whether the client was shown output.
    pub shown: bool,
    /// What this life costs. The record's `charged_units` are those of the whole id, as far as the gateway knows.
    pub charge: Units,
}

impl End {
    pub(super) fn name(&self) -> (TenantName, RequestId) {
        (self.record.tenant.clone(), self.record.request_id.clone())
    }

    /// What will be known of the id.
    pub(super) fn known(&self) -> Known {
        let is_unknown = self.record.usage_source == UsageSource::Unknown;
        Known {
            record: self.record.clone(),
            fingerprint: self.fingerprint,
            shown: self.shown || is_unknown,
        }
    }
}

/// What became of an opening.
#[derive(Clone, Debug, PartialEq)]
pub enum Opened {
    /// The id is new.
    New,
    /// The id ended before with nothing shown and runs again. Holds its record before: attempts append to those in
    /// it, charges add up on top of its `charged_units`.
    Reopened(Box<Record>),
    /// The id runs, has shown output, ended by a crash, awaits its bill, or named another payload: nothing was
    /// written.
    Conflict(Box<Known>),
}

/// What the ledger knows of an id.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub record: Record,
    pub fingerprint: Fingerprint,
    /// Whether the client was shown output. What awaits its bill counts as shown, so what a crash ended does.
    pub shown: bool,
}

impl Known {
    /// Whether a request with this fingerprint is the same request. True where the entry's own is not known.
    pub fn is_of(&self, fingerprint: &Fingerprint) -> bool {
        self.fingerprint == Fingerprint::UNKNOWN || self.fingerprint == *fingerprint
    }
}

/// One run of one process: what owns an open entry.
pub(super) type RunId = Arc<str>;

/// Who may settle an entry: the run that opened it, and which of its openings it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub run: RunId,
    pub opening: i64,
}

/// An entry as kept.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub record: Record,
    pub fingerprint: Fingerprint,
    pub shown: bool,
    /// Kept past a crash or an abandoned opening, so that a settlement that still comes finds its entry.
    pub owner: Option<Owner>,
    /// Of `record.charged_units`, what earlier lives of the id were charged, in the hours of their admission.
    pub earlier: Units,
    /// What the entry takes from the budget beside its charge, until its bill comes.
    pub held: Units,
}

impl Entry {
    pub fn is_open(&self) -> bool {
        !self.record.state.is_terminal()
    }

    /// Whether it ended and awaits its bill.
    pub fn is_unknown(&self) -> bool {
        !self.is_open() && self.record.usage_source == UsageSource::Unknown
    }

    pub fn is_owned_by(&self, run: &str) -> bool {
        self.owner.as_ref().is_some_and(|o| &*o.run == run)
    }

    pub fn known(&self) -> Known {
        Known {
            record: self.record.clone(),
            fingerprint: self.fingerprint,
            shown: self.shown || self.is_unknown() || self.record.state == State::Streaming,
        }
    }
}
