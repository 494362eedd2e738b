//! The ledger as its users see it: the handle, the thread, the command. `support` builds what they need.

mod command;
#[path = "../../../tests/support/database.rs"]
mod database;
mod faults;
mod ground;
mod handle;
mod stores;
mod support;

pub(super) use database::*;
pub(super) use ground::*;
pub(super) use support::*;
