//! The ledger as its users see it: the handle, the thread, the command. `support` builds what they need.

mod command;
mod faults;
mod handle;
mod support;

pub(super) use support::*;
