//! The ledger: one durable entry per request, opened before the upstream is called and settled once at its end.
//!
//! `handle` is what the gateway holds (`waiting` undoes an opening that it no longer waits for), `worker` what the `thread`
//! behind it does, `backlog` what waits there. `sight` is what the handle sees of them unasked: `unwritten` ends, a
//! `trouble` that lasts, the thread's `pulse`. `leftovers` are ends that could not be written before the process ended.
//!
//! `rules` and `unknown` say what may happen to an entry, `judge` which rule a write falls under, `sums` what entries add
//! up to (all pure).
//! `store` is the seam to a database, `stored` an entry as a row of any; `sqlite` and `postgres` are the databases,
//! `owner` tells a dead process of this machine from a living one. `command` is `streamgate ledger …`.
//!
//! Invariants: every sum equals a recount of the entries ever written, because both change in one transaction and
//! the change of a sum is always "what the entry adds now, less what it added before". An entry is settled once:
//! only the process that owns it can, and settling ends the ownership.

mod backlog;
mod command;
mod entry;
mod error;
mod handle;
mod judge;
mod leftovers;
mod owner;
mod postgres;
mod pulse;
mod queue;
mod rules;
mod sight;
mod sqlite;
mod store;
mod stored;
mod sums;
mod thread;
mod trouble;
mod unknown;
mod unwritten;
mod waiting;
mod worker;

#[cfg(test)]
mod tests;

pub use command::{help, run};
pub use entry::{End, Fingerprint, Known, Opened, Opening};
pub use error::LedgerError;
pub use handle::{Ledger, Observer, Recovered};
pub use postgres::url_fault;
pub use sums::{Amounts, Posting};
pub use unknown::held_units;
