//! What one read gives to the client: the read itself wherever that is possible, a copy only where bytes are left out
//! or an event began in an earlier read.

use bytes::Bytes;
use std::ops::Range;

pub(super) struct Output<'a> {
    chunk: &'a Bytes,
    /// The part of the chunk that passes, while that is one part.
    range: Range<usize>,
    /// Everything that passes, once it is no longer one part of the chunk.
    copied: Vec<u8>,
}

impl<'a> Output<'a> {
    pub(super) fn new(chunk: &'a Bytes) -> Output<'a> {
        Output {
            chunk,
            range: 0..0,
            copied: Vec::new(),
        }
    }

    /// A part of the chunk passes.
    pub(super) fn part(&mut self, part: Range<usize>) {
        if part.is_empty() {
        } else if !self.copied.is_empty() {
            self.copy(part);
        } else if self.range.is_empty() {
            self.range = part;
        } else if self.range.end == part.start {
            self.range.end = part.end;
        } else {
            self.copy(self.range.clone());
            self.copy(part);
        }
    }

    /// Bytes kept from earlier reads pass.
    pub(super) fn kept(&mut self, bytes: Vec<u8>) {
        if self.copied.is_empty() && self.range.is_empty() {
            self.copied = bytes;
            return;
        }
        if self.copied.is_empty() {
            self.copy(self.range.clone());
        }
        self.copied.extend_from_slice(&bytes);
    }

    pub(super) fn finish(self) -> Bytes {
        if self.copied.is_empty() {
            self.chunk.slice(self.range)
        } else {
            Bytes::from(self.copied)
        }
    }

    fn copy(&mut self, part: Range<usize>) {
        self.copied
            .extend_from_slice(self.chunk.get(part).unwrap_or_default());
    }
}
