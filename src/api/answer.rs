//! One upstream answer on its way to the client: what of it may be shown, what it made, whether it is over.
//!
//! Bytes pass as they came. Left out are only the usage chunk that the client did not ask for and what is torn; a
//! native answer is written anew from the chat stream's events.

use super::call::Call;
use super::errors::{Fault, stream_event};
use super::meter::{Meter, Seen, Totals};
use super::native::{About, CONVERTED_MAX, Writer};
use crate::config::LineEnds;
use crate::sse::{Event, HELD_MAX, Oversize, Scanner, Sink, ToLf, Verdict};
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
    /// It outgrew what is converted, or has been.
    Dropped,
}

#[derive(Debug)]
struct Stream {
    scanner: Scanner,
    to_lf: Option<ToLf>,
    native: Option<Writer>,
    /// An event was too large to be converted.
    lost: bool,
}

impl Answer {
    /// The answer of a call whose bytes pass.
    pub fn new(call: Call, shape: Shape, options: AnswerOptions) -> Answer {
        let body = match shape {
            Shape::Whole => Body::Whole,
            Shape::Events => Body::Events(Box::new(Stream {
                scanner: Scanner::new(HELD_MAX, Oversize::Pass),
                to_lf: (options.line_ends == LineEnds::Lf).then(ToLf::default),
                native: None,
                lost: false,
            })),
        };
        Answer::of(call, options, body)
    }

    /// The answer of `POST /generations`, written from a chat backend's.
    pub fn native(shape: Shape, options: AnswerOptions, about: About) -> Answer {
        let writer = Writer::new(about);
        let body = match shape {
            Shape::Whole => Body::Kept(Vec::new(), Box::new(writer)),
            Shape::Events => Body::Events(Box::new(Stream {
                scanner: Scanner::new(CONVERTED_MAX, Oversize::Hide),
                to_lf: None,
                native: Some(writer),
                lost: false,
            })),
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
                self.shown |= fed.content > 0 || stream.scanner.mid_event_shown();
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
                if kept.len() > CONVERTED_MAX {
                    self.body = Body::Dropped;
                }
                Fed::default()
            }
            Body::Dropped => Fed::default(),
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
        self.body = Body::Dropped;
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
            Body::Events(stream) => self.meter.ended() && !stream.lost,
            Body::Whole => self.meter.ended(),
            Body::Kept(..) => false,
            Body::Dropped => self.shown && self.meter.ended(),
        }
    }

    /// The upstream's own error, in its words, where one came in the answer.
    pub fn failure(&self) -> Option<&str> {
        match &self.body {
            Body::Events(stream) if stream.lost => Some("an event is too large to be converted"),
            Body::Dropped if !self.shown => Some("the answer is too large to be converted"),
            Body::Events(_) | Body::Whole | Body::Kept(..) | Body::Dropped => self.meter.failure(),
        }
    }

    /// Output has been let through: the border behind which nothing is tried again. Of a whole body the first byte is.
    pub fn shown(&self) -> bool {
        self.shown
    }

    /// A heartbeat may be written now: between two events as the client has them, no LF owed, the end not yet sent.
    pub fn heartbeat_fits(&self) -> bool {
        let Body::Events(stream) = &self.body else {
            return false;
        };
        let as_they_came = stream.to_lf.is_none() && stream.native.is_none();
        let owes_lf = as_they_came && stream.scanner.may_owe_lf();
        !(self.meter.ended() || stream.scanner.mid_event_shown() || owes_lf)
    }

    /// The client was sent a heartbeat, which the stream's own first byte will follow.
    pub fn heartbeat_sent(&mut self) {
        if let Body::Events(stream) = &mut self.body {
            stream.scanner.other_bytes_sent();
        }
    }

    /// The units so far.
    pub fn totals(&self) -> Totals {
        match &self.body {
            Body::Events(_) => self.meter.totals(),
            Body::Whole | Body::Kept(..) | Body::Dropped => {
                self.meter.body_totals(self.options.bytes_per_unit)
            }
        }
    }

    /// What ends a stream that failed after something was shown: the rest of a line where an event was shown in part,
    /// then the API's own error event.
    pub fn error_event(&mut self, fault: &Fault<'_>) -> Bytes {
        let api = self.call.api();
        let Body::Events(stream) = &mut self.body else {
            return stream_event(api, fault, 1);
        };
        if let Some(writer) = &mut stream.native {
            return Bytes::from(writer.failed(fault));
        }
        let event = stream_event(api, fault, 1);
        match stream.scanner.closing() {
            b"" => event,
            closing => Bytes::from([closing, event.as_ref()].concat()),
        }
    }
}

impl Stream {
    fn feed(&mut self, chunk: &Bytes, meter: &mut Meter, hide_usage: bool) -> Fed {
        let mut judge = Judge {
            meter,
            hide_usage,
            native: self.native.as_mut(),
            lost: &mut self.lost,
            events: 0,
            content: 0,
        };
        let bytes = self.scanner.feed(chunk, &mut judge);
        Fed {
            events: judge.events,
            content: judge.content,
            bytes: self.written(bytes),
        }
    }

    fn finish(&mut self, meter: &mut Meter) -> Fed {
        if let Some(event) = self.scanner.large_event() {
            // Shown in part already; the end of a stream may lack its blank line.
            let seen = meter.event_ends(event.name);
            return Fed {
                events: 1,
                content: u32::from(seen.content && seen.end),
                bytes: Bytes::new(),
            };
        }
        if self.scanner.tail().is_empty() {
            return Fed::default();
        }
        if !meter.ended() {
            let mut trial = meter.clone();
            let event = self.scanner.tail_event();
            if !trial.event(&event).end {
                return Fed::default();
            }
            *meter = trial;
            if let Some(writer) = &mut self.native {
                writer.complete(&meter.totals());
            }
        }
        let tail = self.scanner.take_tail();
        Fed {
            events: 1,
            content: 0,
            bytes: self.written(tail),
        }
    }

    /// The bytes as the client gets them.
    fn written(&mut self, bytes: Bytes) -> Bytes {
        if let Some(writer) = &mut self.native {
            return Bytes::from(writer.take());
        }
        match &mut self.to_lf {
            None => bytes,
            Some(to_lf) => to_lf.apply(bytes),
        }
    }
}

/// Reads the events of one read and says which pass.
struct Judge<'a> {
    meter: &'a mut Meter,
    hide_usage: bool,
    native: Option<&'a mut Writer>,
    lost: &'a mut bool,
    events: u32,
    content: u32,
}

impl Judge<'_> {
    fn count(&mut self, seen: Seen) -> Verdict {
        self.events += 1;
        self.content += u32::from(seen.content);
        if self.native.is_some() || (self.hide_usage && seen.usage_only) {
            Verdict::Hide
        } else {
            Verdict::Pass
        }
    }
}

impl Sink for Judge<'_> {
    fn event(&mut self, event: &Event<'_>) -> Verdict {
        let Some(data) = event.data else {
            return if self.native.is_some() {
                Verdict::Hide
            } else {
                Verdict::Pass
            };
        };
        let seen = self.meter.event(event);
        if let Some(writer) = &mut self.native {
            if seen.end {
                writer.complete(&self.meter.totals());
            } else if !seen.error {
                writer.chunk(data, seen.content);
            }
        }
        self.count(seen)
    }

    fn data_piece(&mut self, piece: &[u8]) {
        self.meter.piece(piece);
    }

    fn data_end(&mut self, event: &Event<'_>) {
        if event.data.is_none() {
            return;
        }
        let seen = self.meter.event_ends(event.name);
        *self.lost |= self.native.is_some();
        self.count(seen);
    }
}
