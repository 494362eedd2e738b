//! What the APIs mean: requests read and edited as bytes, answers metered event by event, errors in each API's shape.
//!
//! Pure: no clock, no socket, no task. [`Request`] reads a body and makes the one that goes upstream; [`Answer`] reads
//! what comes back and says what the client may see of it and what it cost.

mod answer;
mod call;
mod code;
pub mod errors;
mod json;
mod meter;
pub mod models;
pub mod native;
pub mod ratelimit;
mod request;

pub use answer::{Answer, AnswerOptions, Fed, Shape};
pub use call::{Call, heartbeat};
pub use code::Code;
pub use errors::Fault;
pub use meter::Totals;
pub use request::{Edits, InputSize, ParseError, Request};
