//! JSON read as it comes: tokens to a visitor, without building a document, from bytes in any pieces.
//!
//! The member edits, the input estimate and the meters all read through this. Memory is a few hundred bytes whatever
//! the document holds; documents nested deeper than 128 containers are refused.

mod escape;
mod number;
mod path;
mod scanner;
mod spans;
mod text;
mod visitor;

pub use number::Number;
pub use path::Path;
pub use scanner::Scanner;
pub use text::decoded;
pub use visitor::{Grammar, Kind, Str, Visitor};

#[cfg(test)]
mod tests;
