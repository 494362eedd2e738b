//! The seam to a database: what the gateway's thread and the ledger command ask of one.

use super::entry::{End, Known, Opened, Opening, RunId};
use super::error::LedgerError;
use super::queue::Abandon;
use super::sums::{Amounts, Posting, Usage, UsageKey};
use crate::budget::Units;
use crate::clock::Timestamp;
use crate::config;
use crate::record::{Record, RequestId, State};
use crate::tenant::TenantName;
use std::sync::Arc;

/// One change of an entry. A group of them is applied in order, in one transaction.
#[derive(Clone, Debug)]
pub(super) enum Write {
    /// The number tells this opening from any other of the same run.
    Open(Box<Opening>, i64),
    Checkpoint(Box<Record>),
    Settle(Arc<End>),
    Abandon(Abandon),
}

impl Write {
    /// Whose entry it changes.
    pub fn names(&self) -> (&TenantName, &RequestId) {
        let record = match self {
            Write::Open(opening, _) => &opening.record,
            Write::Checkpoint(record) => record,
            Write::Settle(end) => &end.record,
            Write::Abandon(abandon) => return (&abandon.tenant, &abandon.id),
        };
        (&record.tenant, &record.request_id)
    }
}

impl Write {
    /// For the log, so that an operator can still book it.
    pub fn text(&self) -> String {
        let record = match self {
            Write::Open(opening, _) => &opening.record,
            Write::Checkpoint(record) => record,
            Write::Settle(end) => &end.record,
            Write::Abandon(abandon) => return format!("{abandon:?}"),
        };
        record.to_json()
    }
}

/// What became of one write of a group that was committed.
#[derive(Debug)]
pub(super) enum Applied {
    Opened(Opened),
    Done,
    /// It would have broken an invariant and was left out; in words.
    Broken(String),
    /// The entry could not be read or stored, and was left out.
    Failed(LedgerError),
}

/// What a committed transaction did.
#[derive(Debug, Default)]
pub(super) struct Committed {
    /// One per write, in order.
    pub applied: Vec<Applied>,
    /// What it changed in the accounts.
    pub postings: Vec<Posting>,
}

/// What the accounts of a gateway start from.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// All accounts. Hours before this month are summed up in one posting at hour 0.
    pub accounts: Vec<Posting>,
    pub total: Amounts,
}

/// A ledger as a running gateway writes it. Every failure leaves it as it was before the call.
pub(super) trait Store: Send {
    /// What the log calls it.
    fn place(&self) -> &str;

    /// Takes entries of dead processes for crashed, and sums up.
    fn recover(&mut self, now: Timestamp) -> Result<Standing, LedgerError>;

    /// Applies a group in one transaction, durable when it returns.
    fn commit(&mut self, writes: &[Write], now: Timestamp) -> Result<Committed, LedgerError>;

    /// Writes next to nothing, to learn whether the ledger can be written.
    fn probe(&mut self, now: Timestamp) -> Result<(), LedgerError>;

    /// What an id's entry says.
    fn find(&mut self, tenant: &TenantName, id: &RequestId) -> Result<Option<Known>, LedgerError>;

    /// What other processes did to the accounts since the last call, their crashes included.
    fn follow(&mut self, now: Timestamp) -> Result<Vec<Posting>, LedgerError>;

    /// What all accounts come to, as far as the last `follow` saw what other processes did.
    fn total(&mut self) -> Result<Amounts, LedgerError>;

    /// Forgets some entries that ended before a moment, or gives back some of the space they took. Whether more may be
    /// left to do.
    fn forget(&mut self, before: Timestamp) -> Result<bool, LedgerError>;

    /// Takes over what may change while it runs.
    fn configure(&mut self, config: &config::Ledger);

    /// From now on writes are those of another run, which is dead. The one whose they were.
    fn act_as(&mut self, run: RunId) -> RunId;

    /// Drops the connection and makes a new one.
    fn reopen(&mut self) -> Result<(), LedgerError>;

    /// Says farewell: what this run leaves open belongs to nobody.
    fn close(&mut self);
}

/// Which entries a reader wants.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    pub tenant: Option<TenantName>,
    pub state: Option<StateFilter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateFilter {
    Is(State),
    /// Not ended.
    Open,
    /// Ended, and awaits its bill.
    Unknown,
}

/// In which order a reader goes, and after which entry's key it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Newest(Option<i64>),
    Oldest(Option<i64>),
}

/// An entry as a reader gets it: its key, and its record where that can be read.
pub(super) type Row = (i64, Result<Record, LedgerError>);

/// A line of a bill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BillLine {
    /// Where the line stands in its file.
    pub line: usize,
    pub tenant: Option<TenantName>,
    pub id: RequestId,
    pub units: Units,
}

/// What became of a line of a bill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Settlement {
    /// Settled now: charged so much before, and as much was held.
    Reconciled {
        before: Units,
        held: Units,
    },
    Already,
    AlreadyOtherwise {
        charged: Units,
    },
    Known {
        charged: Units,
    },
    Running,
    NotFound,
    /// Another line of the bill, whose number and units these are, says otherwise.
    Contradicted {
        line: usize,
        units: Units,
    },
    /// More than one tenant has the id.
    Ambiguous(Vec<TenantName>),
    Unreadable(LedgerError),
}

/// A ledger as the ledger command reads and reconciles it, beside a gateway that runs or without one.
pub(super) trait Books {
    /// The next entries of an order, at most `limit`; fewer only at the end.
    fn page(&self, filter: &Filter, order: Order, limit: usize) -> Result<Vec<Row>, LedgerError>;

    /// The entries of an id, of all tenants or one.
    fn named(&self, id: &RequestId, tenant: Option<&TenantName>) -> Result<Vec<Row>, LedgerError>;

    /// The rows of the report, ordered by day, tenant and model.
    fn usage(&self, tenant: Option<&TenantName>) -> Result<Vec<(UsageKey, Usage)>, LedgerError>;

    /// Settles what awaits its bill, all in one transaction; with `dry`, only says what it would do. One settlement a
    /// line. Of two lines that name one entry the first settles it.
    fn reconcile(&mut self, bill: &[BillLine], dry: bool) -> Result<Vec<Settlement>, LedgerError>;
}
