//! What is sent to the ledger's thread, and what waits there.

use super::entry::{End, Known, Opened, Opening};
use super::error::LedgerError;
use super::rules::Abandoned;
use super::store::Write;
use crate::config;
use crate::record::{Record, RequestId};
use crate::tenant::TenantName;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(super) type Reply<T> = oneshot::Sender<Result<T, LedgerError>>;

/// A message to the thread.
#[derive(Debug)]
pub(super) enum Command {
    Open(Box<Opening>, i64, Reply<Opened>),
    Checkpoint(Box<Record>),
    Settle(Arc<End>),
    Abandon(Abandon),
    Find(Find),
    Configure(Box<config::Ledger>),
    Close,
}

#[derive(Clone, Debug)]
pub(super) struct Abandon {
    pub tenant: TenantName,
    pub id: RequestId,
    pub opening: i64,
    pub why: Abandoned,
}

#[derive(Debug)]
pub(super) struct Find {
    pub tenant: TenantName,
    pub id: RequestId,
    pub reply: Reply<Option<Known>>,
}

/// A write that waits for its commit, and who waits for it.
#[derive(Debug)]
pub(super) struct Job {
    pub write: Write,
    pub reply: Option<Reply<Opened>>,
    /// How many commits with it failed.
    pub failures: u32,
}

impl Job {
    pub fn new(write: Write, reply: Option<Reply<Opened>>) -> Job {
        Job {
            write,
            reply,
            failures: 0,
        }
    }

    /// Whether it opens an entry.
    pub fn is_open(&self) -> bool {
        matches!(self.write, Write::Open(..))
    }

    /// Whether it may be left out while the ledger cannot be written.
    pub fn is_optional(&self) -> bool {
        matches!(self.write, Write::Checkpoint(_))
    }

    /// Whether it opens an entry that nobody waits for any more.
    pub fn is_deserted(&self) -> bool {
        self.reply.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    pub fn is_opening(&self, number: i64) -> bool {
        matches!(self.write, Write::Open(_, n) if n == number)
    }
}
