//! Tests through the real binary and the wire: one file a concern, each name a sentence.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::too_many_lines,
    clippy::type_complexity,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tables of cases are long, look at the few cases they are about, and hold small numbers"
)]
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
mod admin_api;
mod bodies;
mod budgets;
mod cancels;
mod clamp;
mod compression;
mod config_test;
mod connections;
mod crash;
mod demo;
mod descriptors;
mod early_heads;
mod edge;
mod edits;
mod endings;
mod faults;
mod fidelity;
mod forwarding;
mod ground;
mod h2c;
mod heartbeats;
mod identities;
mod keys;
mod kills;
mod leaving;
mod ledger_command;
mod ledger_faults;
mod ledger_rights;
mod limits;
mod line_ends;
mod matrix;
mod metrics;
mod models;
mod native;
mod pings;
mod postgres;
mod preamble;
mod queue;
mod queue_beats;
mod queue_bounds;
mod queue_races;
mod rate_headers;
mod rates;
mod refusals;
mod reload;
mod retries;
mod shedding;
mod shown;
mod signals;
mod simulator;
mod slots;
mod slow_readers;
mod soak;
mod starts;
mod streaming;
mod timeouts;
mod two_gateways;
mod upstream;
mod usage;
