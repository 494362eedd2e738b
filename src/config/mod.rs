//! The configuration, as needed: every value checked, every default filled in, relative paths resolved.
//!
//! `source` and `reader` give the file as written, with the place of each value; a module per section turns it into
//! the types of `rules`, and every finding is reported at once. Nothing in here reads the network; secrets are resolved when
//! the file is checked.

mod address;
mod check;
mod cluster;
mod findings;
mod ledger;
mod listen;
mod logging;
mod models;
mod nearest;
mod pending;
mod pool;
mod reader;
mod route;
mod rules;
mod secrets;
mod server;
mod show;
mod source;
mod tenant;
mod unique;
mod upstream;
mod values;
mod words;

#[cfg(test)]
mod tests;

pub use check::{load, load_beside, parse};
pub use findings::{Finding, Findings};
pub use rules::*;
pub use show::show;
pub use words::Word;
