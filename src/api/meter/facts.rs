//! What one document, an event's data or a whole body, says.

use super::usage::Figures;

/// What a document says of output, usage and the end, whatever its API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// It holds output: text, reasoning, a tool call, a refusal.
    pub content: bool,
    /// Bytes of that output, as text.
    pub text_bytes: u64,
    pub usage: Figures,
    /// The usage is of an answer that is over.
    pub settles: bool,
    /// The protocol's own end.
    pub end: bool,
    /// The upstream's own error.
    pub error: bool,
    /// Its words, where it has some; capped.
    pub error_message: Option<String>,
    /// Nothing but the usage that was asked for on the client's behalf.
    pub usage_only: bool,
}

impl Facts {
    pub fn output(&mut self, bytes: usize) {
        self.content |= bytes > 0;
        self.text_bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
    }
}
