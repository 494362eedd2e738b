//! The parts of streamgate that read what an upstream sends, and what must hold of them whatever it sends.
//!
//! The scanner and the meters are pure: they are taken from `src/` by path, with the few types they need.

#[path = "../../../src/api/mod.rs"]
pub mod api;
#[path = "../../../src/config/mod.rs"]
pub mod config;
#[path = "../../../src/sse/mod.rs"]
pub mod sse;

#[path = "../../../src/record/id.rs"]
mod id;
#[path = "../../../src/tenant/name.rs"]
mod name;
#[path = "../../../src/record/state.rs"]
mod state;
#[path = "../../../src/budget/units.rs"]
mod units;

pub mod budget {
    pub use crate::units::Units;
}

pub mod record {
    pub use crate::id::RequestId;
    pub use crate::state::{Api, EndedBy, Outcome, State, UpstreamEnd, UsageSource};
}

pub mod tenant {
    pub use crate::name::TenantName;
}

mod answer;
mod book;
mod case;
mod memory;
mod scanner;

pub use case::Case;

/// Everything that must hold of one input.
pub fn check(case: &Case<'_>) {
    scanner::check(case);
    answer::check(case);
    memory::check(case);
}
