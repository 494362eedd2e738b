//! streamgate: an edge proxy for LLM inference, on Pingora.
//!
//! One request has one owner. The way of a request through the modules:
//!
//! ```text
//! client ─▶ ops (sockets) ─▶ proxy::admit ───────▶ proxy::pump ──▶ backend, upstream
//!                            tenant, budget,       sse, api
//!                            exchange::queue, ledger
//!                            exchange ◀─────────── what was shown, what runs, what is owed
//!                            ledger  ◀──────────── proxy::finish (logging), or Drop
//! ```
//!
//! - `config` the configuration: as written, checked, shown
//! - `record` what is known of a request, in the words of the contract
//! - `tenant` keys, rates and limits; `budget` accounts (pure); `slots` execution slots
//! - `exchange` the owner of a request, the registry of what runs, who waits for a slot, who is turned away
//! - `api` requests, meters, error shapes of each API (pure); `sse` the event-stream scanner (pure)
//! - `proxy` the `ProxyHttp` implementation and the pump between two sockets
//! - `backend` pools and the pick of a backend; `ledger` durable entries on a thread of their own
//! - `server` starts, reloads and stops it all; `ops` signals, drain, sockets, logs; `cli` the command line
//! - `metrics` the table of what is counted; `access_log` a line for each answer; `admin` metrics, health and an API
//! - `sim` the engine simulator; `demo` all of it on loopback; `keys` makes API keys; `clock` every look at the time
//!
//! Invariants, most of them about what is absent:
//! - After admission nothing but the exchange gives back a slot or settles units, and it does so once; what a refusal had
//!   taken until then returns by its guard.
//! - Pure modules know no Pingora, no tokio and no I/O, and read no clock. Pingora's error type stays in `proxy`.
//! - Once output was shown, a request is never sent to an upstream again.
//! - No key, prompt or query reaches a client's error, a metric's label or a log line. No backend's address reaches a
//!   client's error; the record, its access line, the error log and the label of `backend_up` name it.

pub mod access_log;
pub mod admin;
pub mod api;
pub mod backend;
pub mod budget;
pub mod cli;
pub mod clock;
pub mod config;
pub mod demo;
pub mod exchange;
pub mod keys;
pub mod ledger;
pub mod metrics;
pub mod ops;
pub mod proxy;
pub mod record;
pub mod server;
pub mod sim;
pub mod slots;
pub mod sse;
pub mod tenant;
