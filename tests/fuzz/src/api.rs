//! The parts of the gateway's `api` that read an answer, by the names they know each other by.

#[path = "../../../src/api/answer/mod.rs"]
mod answer;
#[path = "../../../src/api/call.rs"]
mod call;
#[path = "../../../src/api/code.rs"]
mod code;
#[path = "../../../src/api/errors.rs"]
pub mod errors;
#[allow(dead_code, unused_imports, reason = "requests use the rest")]
#[path = "../../../src/api/json/mod.rs"]
mod json;
#[path = "../../../src/api/meter/mod.rs"]
mod meter;
#[path = "../../../src/api/native.rs"]
pub mod native;

pub use answer::{Answer, AnswerOptions, Fed, Shape};
pub use call::{Call, heartbeat};
pub use code::Code;
pub use errors::Fault;
pub use meter::Totals;
