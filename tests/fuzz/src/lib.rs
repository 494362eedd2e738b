//! The parts of streamgate that read what an upstream sends, and what must hold of them whatever it sends.
//!
//! The scanner and the meters are pure: they are taken from `src/` by path, with the few types they need, so that
//! nothing of Pingora is built for them.

pub mod api;
#[path = "../../../src/sse/mod.rs"]
pub mod sse;
#[path = "../../../src/record/state.rs"]
pub mod state;
#[path = "../../../src/budget/units.rs"]
pub mod units;

pub mod budget {
    pub use crate::units::Units;
}

pub mod record {
    pub use crate::state::{Api, UsageSource};
}

/// The choices of a pool that scanner and meters know.
pub mod config {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Protocol {
        OpenAi,
        Anthropic,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LineEnds {
        Keep,
        Lf,
    }
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
