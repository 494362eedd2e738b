//! Event streams (WHATWG HTML, section 9.2): where an event ends, what its fields say, and its bytes as they came.
//!
//! Pure: bytes in, bytes and events out. A client is shown whole events, each as soon as its last byte is read; only
//! an event over [`HELD_MAX`] passes as its bytes come.

mod event;
mod line_ends;
mod output;
mod oversized;
mod scanner;

pub use event::Event;
pub use line_ends::ToLf;
pub use scanner::{HELD_MAX, Oversize, Scanner, Sink, Verdict};

#[cfg(test)]
pub(crate) mod tests;
