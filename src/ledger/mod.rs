//! The ledger: one durable entry per request, opened before the upstream is called and settled once at its end.
//!
//! `handle` is what the gateway holds, `worker` the thread behind it, `rules` what may happen to an entry (pure),
//! `sums` what entries add up to, `store` the seam to a database, `sqlite` its first implementation, `owner` how a
//! dead process is told from a living one, `command` the `streamgate ledger …` command.
//!
//! Invariants: every sum equals a recount of the entries ever written, because both change in one transaction and
//! the change of a sum is always "what the entry adds now, less what it added before". An entry is settled once:
//! only the process that owns it can, and settling ends the ownership.

mod command;
mod entry;
mod error;
mod handle;
mod owner;
mod queue;
mod rules;
mod sqlite;
mod store;
mod sums;
mod trouble;
mod worker;

#[cfg(test)]
mod tests;

pub use command::run;
pub use entry::{Fingerprint, Known, Opened, Opening};
pub use error::LedgerError;
pub use handle::{Ledger, Observer, Recovered};
pub use rules::held_units;
pub use sums::{Amounts, Hour, Posting};
