//! A request as the gateway reads it, and the body it sends on.

mod estimate;
mod members;
mod parse;
mod rewrite;
mod values;

pub use estimate::InputSize;
pub use parse::{ParseError, Request};
pub use rewrite::Edits;

#[cfg(test)]
mod tests;
