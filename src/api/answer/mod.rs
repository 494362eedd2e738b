//! One upstream answer on its way to the client: what of it may be shown, what it made, whether it is over.
//!
//! Bytes pass as they came. Left out are only the usage chunk that the client did not ask for and what is torn; a
//! native answer is written anew from the chat stream's events.

mod stream;

use self::stream::Stream;
use crate::api::Call;
use crate::api::errors::{Fault, stream_event};
use crate::api::meter::{Meter, Totals};
use crate::api::native::{About, BODY_MAX, Writer};
use crate::config::LineEnds;
use bytes::Bytes;

/// What the upstream's `Content-Type` says the body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `text/event-stream`.
    Events,
    /// Anything else: one document.
    Whole,
}

#[derive(Clone, Copy, Debug)]
pub struct AnswerOptions {
    /// Usage was asked for on behalf of a client that did not: its chunk is left out.
    pub hide_usage: bool,
    pub line_ends: LineEnds,
    /// Prices the text of a whole body that names no usage.
    pub bytes_per_unit: u64,
}

/// What one read brought.
#[derive(Clone, Debug, Default)]
pub struct Fed {
    /// What the client may be sent now.
    pub bytes: Bytes,
    /// Events that ended in this read and had data.
    pub events: u32,
    /// Those of them that hold output.
    pub content: u32,
}

/// The state of one answer between two reads. Made anew for each attempt.
#[derive(Debug)]
pub struct Answer {
    call: Call,
    options: AnswerOptions,
    meter: Meter,
    body: Body,
    shown: bool,
}

#[derive(Debug)]
enum Body {
    Events(Box<Stream>),
    Whole,
    /// A whole chat answer, kept to be converted.
    Kept(Vec<u8>, Box<Writer>),
    /// A whole answer that outgrew what is converted.
    TooLarge,
    /// A whole answer that has been converted, or was torn.
    Done,
}

impl Answer {
    /// The answer of a call whose bytes pass.
    pub fn new(call: Call, shape: Shape, options: AnswerOptions) -> Answer {
        let body = match shape {
            Shape::Whole => Body::Whole,
            Shape::Events => Body::Events(Box::new(Stream::passing(options.line_ends))),
        };
        Answer::of(call, options, body)
    }

    /// The answer of `POST /generations`, written from a chat backend's.
    pub fn native(shape: Shape, options: AnswerOptions, about: About) -> Answer {
        let writer = Writer::new(about);
        let body = match shape {
            Shape::Whole => Body::Kept(Vec::new(), Box::new(writer)),
            Shape::Events => Body::Events(Box::new(Stream::converted(writer))),
        };
        Answer::of(Call::Native, options, body)
    }

    fn of(call: Call, options: AnswerOptions, body: Body) -> Answer {
        Answer {
            call,
            options,
            meter: Meter::new(call),
            body,
            shown: false,
        }
    }

    /// Reads on: what the client may be sent now, often the chunk itself, and what was in it.
    pub fn feed(&mut self, chunk: Bytes) -> Fed {
        match &mut self.body {
            Body::Events(stream) => {
                let fed = stream.feed(&chunk, &mut self.meter, self.options.hide_usage);
                self.shown |= fed.content > 0 || stream.mid_event_shown();
                fed
            }
            Body::Whole => {
                self.meter.body(&chunk);
                self.shown |= !chunk.is_empty();
                Fed {
                    bytes: chunk,
                    ..Fed::default()
                }
            }
            Body::Kept(kept, _) => {
                self.meter.body(&chunk);
                kept.extend_from_slice(&chunk);
                if kept.len() > BODY_MAX {
                    self.body = Body::TooLarge;
                }
                Fed::default()
            }
            Body::TooLarge | Body::Done => Fed::default(),
        }
    }

    /// The upstream's body is over: what still passes of it. What is torn does not.
    pub fn finish(&mut self) -> Fed {
        if let Body::Events(stream) = &mut self.body {
            return stream.finish(&mut self.meter);
        }
        let whole = self.meter.body_ends();
        let totals = self.totals();
        let Body::Kept(kept, writer) = &mut self.body else {
            return Fed::default();
        };
        let bytes = if whole {
            writer.document(kept, &totals)
        } else {
            Vec::new()
        };
        self.body = Body::Done;
        self.shown |= !bytes.is_empty();
        Fed {
            bytes: Bytes::from(bytes),
            ..Fed::default()
        }
    }

    /// The protocol's own end has been read: `[DONE]`, `message_stop`, `response.completed`, a whole document. Only
    /// then is a request complete.
    pub fn ended(&self) -> bool {
        match &self.body {
            Body::Events(stream) => self.meter.ended() && !stream.lost(),
            Body::Whole => self.meter.ended(),
            Body::Kept(..) | Body::TooLarge => false,
            Body::Done => self.shown && self.meter.ended(),
        }
    }

    /// The upstream's own error, in its words, where one came in the answer.
    pub fn failure(&self) -> Option<&str> {
        match &self.body {
            Body::Events(stream) if stream.lost() => Some("an event is too large to be converted"),
            Body::TooLarge => Some("the answer is too large to be converted"),
            Body::Events(_) | Body::Whole | Body::Kept(..) | Body::Done => self.meter.failure(),
        }
    }

    /// A part of it could not be passed on: nothing that follows is of any use.
    pub fn has_gap(&self) -> bool {
        matches!(&self.body, Body::Events(stream) if stream.lost())
    }

    /// Output has been let through: the border behind which nothing is tried again. Of a whole body the first byte is.
    pub fn shown(&self) -> bool {
        self.shown
    }

    /// A heartbeat may be written now: between two events as the client has them, no LF owed, the end not yet sent.
    pub fn heartbeat_fits(&self) -> bool {
        match &self.body {
            Body::Events(stream) => !self.meter.ended() && stream.is_between_events(),
            Body::Whole | Body::Kept(..) | Body::TooLarge | Body::Done => false,
        }
    }

    /// The client was sent a heartbeat, which the stream's own first byte will follow.
    pub fn heartbeat_sent(&mut self) {
        if let Body::Events(stream) = &mut self.body {
            stream.other_bytes_sent();
        }
    }

    /// The units so far.
    pub fn totals(&self) -> Totals {
        match &self.body {
            Body::Events(_) => self.meter.totals(),
            Body::Whole | Body::Kept(..) | Body::TooLarge | Body::Done => {
                self.meter.body_totals(self.options.bytes_per_unit)
            }
        }
    }

    /// What ends a stream that failed after something was shown: the rest of a line where an event was shown in part,
    /// then the API's own error event.
    pub fn error_event(&mut self, fault: &Fault<'_>) -> Bytes {
        let api = self.call.api();
        match &mut self.body {
            Body::Events(stream) => stream.error_event(api, fault),
            Body::Whole | Body::Kept(..) | Body::TooLarge | Body::Done => {
                stream_event(api, fault, 1)
            }
        }
    }
}

#[cfg(test)]
mod tests;
