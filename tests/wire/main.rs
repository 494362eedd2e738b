//! Tests through the real binary and the wire: one file a concern, each name a sentence.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests fail by panicking, and keep their own clock"
)]

#[path = "../support/mod.rs"]
mod support;

mod access_log;
mod bodies;
mod cancels;
mod compression;
mod config_test;
mod crash;
mod demo;
mod early_heads;
mod edits;
mod endings;
mod faults;
mod fidelity;
mod ground;
mod h2c;
mod heartbeats;
mod identities;
mod keys;
mod leaving;
mod ledger_command;
mod line_ends;
mod metrics;
mod models;
mod native;
mod pings;
mod preamble;
mod refusals;
mod retries;
mod shown;
mod signals;
mod simulator;
mod slots;
mod starts;
mod streaming;
mod usage;
