//! What the ledger tells brought to where it belongs: sums to the tenants' accounts, counts and times to the metrics.

use crate::budget::Change;
use crate::clock;
use crate::ledger::{LedgerError, Observer, Posting, Recovered};
use crate::metrics::Metrics;
use crate::tenant::Holdings;
use std::sync::Arc;
use std::time::Duration;

pub struct Accounts {
    holdings: Arc<Holdings>,
    metrics: Arc<Metrics>,
}

impl Accounts {
    pub fn new(holdings: Arc<Holdings>, metrics: Arc<Metrics>) -> Accounts {
        Accounts { holdings, metrics }
    }
}

/// Puts what the ledger found at start on the accounts.
pub fn recover(holdings: &Holdings, metrics: &Metrics, recovered: &Recovered) {
    for posting in &recovered.accounts {
        post(holdings, posting);
    }
    set_counts(metrics, recovered.open, recovered.unknown);
    if recovered.unknown > 0 {
        log::warn!(
            "the ledger holds {} entries whose usage is unknown; `streamgate ledger list --state unknown` names them, \
             `ledger reconcile` settles them",
            recovered.unknown
        );
    }
}

fn post(holdings: &Holdings, posting: &Posting) {
    let change = Change {
        charged: posting.amounts.charged,
        reserved: posting.amounts.reserved,
        held: posting.amounts.held,
    };
    holdings.adjust(&posting.tenant, posting.hour, change, clock::now());
}

fn set_counts(metrics: &Metrics, open: u64, unknown: u64) {
    let gauge = |n| i64::try_from(n).unwrap_or(i64::MAX);
    metrics.table.ledger_open.set(gauge(open));
    metrics.table.ledger_unknown.set(gauge(unknown));
}

impl Observer for Accounts {
    fn committed(&self, took: Duration, _writes: usize) {
        self.metrics.table.ledger_commit.observe(took.as_secs_f64());
    }

    fn state(&self, open: u64, unknown: u64) {
        set_counts(&self.metrics, open, unknown);
    }

    /// The ledger's thread logs it, at most every few seconds.
    fn failed(&self, _error: &LedgerError) {
        self.metrics.table.ledger_failures.inc();
    }

    fn adjusted(&self, change: &Posting) {
        post(&self.holdings, change);
    }
}
