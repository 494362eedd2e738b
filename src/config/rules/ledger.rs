//! Where entries are kept, and what holds while they cannot be.

use super::Secret;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Ledger {
    pub store: LedgerStore,
    pub durability: Durability,
    pub on_error: OnError,
    pub on_unknown: OnUnknown,
    pub retention: Duration,
    /// A folder for what could not be written before the process ended.
    pub leftovers: PathBuf,
}

#[derive(Clone, Debug)]
pub enum LedgerStore {
    Sqlite(PathBuf),
    /// The whole URL; it may hold a password.
    Postgres(Secret),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives the death of the process.
    Process,
    /// Also a power cut: each group commit is synced to disk.
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    Refuse,
    Serve,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnknown {
    Hold,
    ChargeReserved,
    ChargeCounted,
}
