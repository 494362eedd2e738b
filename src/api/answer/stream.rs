//! An event stream on its way: scanned, metered event by event, and passed, trimmed or written anew.

use super::Fed;
use crate::api::errors::{Fault, stream_event};
use crate::api::meter::{Meter, Seen};
use crate::api::native::{EVENT_MAX, Writer};
use crate::config::LineEnds;
use crate::record::Api;
use crate::sse::{Event, HELD_MAX, Oversize, Scanner, Sink, ToLf, Verdict};
use bytes::Bytes;

#[derive(Debug)]
pub(super) struct Stream {
    scanner: Scanner,
    to_lf: Option<ToLf>,
    native: Option<Writer>,
    /// An event was too large to be converted.
    lost: bool,
}

impl Stream {
    /// Its bytes pass.
    pub fn passing(line_ends: LineEnds) -> Stream {
        Stream {
            scanner: Scanner::new(HELD_MAX, Oversize::Pass),
            to_lf: (line_ends == LineEnds::Lf).then(ToLf::default),
            native: None,
            lost: false,
        }
    }

    /// Its events are written anew.
    pub fn converted(writer: Writer) -> Stream {
        Stream {
            scanner: Scanner::new(EVENT_MAX, Oversize::Hide),
            to_lf: None,
            native: Some(writer),
            lost: false,
        }
    }

    pub fn feed(&mut self, chunk: &Bytes, meter: &mut Meter, hide_usage: bool) -> Fed {
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

    pub fn finish(&mut self, meter: &mut Meter) -> Fed {
        if let Some(event) = self.scanner.large_event() {
            // Shown in part already; the end of a stream may lack its blank line.
            let seen = meter.event_ends(event.name);
            self.lost |= self.native.is_some();
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
            if let Some(writer) = self.native.as_mut().filter(|_| !self.lost) {
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

    pub fn lost(&self) -> bool {
        self.lost
    }

    pub fn mid_event_shown(&self) -> bool {
        self.scanner.mid_event_shown()
    }

    /// The client stands between two events, and no LF that may come next would belong to what it has.
    pub fn is_between_events(&self) -> bool {
        let as_they_came = self.to_lf.is_none() && self.native.is_none();
        let owes_lf = as_they_came && self.scanner.may_owe_lf();
        !(self.scanner.mid_event_shown() || owes_lf)
    }

    pub fn other_bytes_sent(&mut self) {
        self.scanner.other_bytes_sent();
    }

    pub fn error_event(&mut self, api: Api, fault: &Fault<'_>) -> Bytes {
        if let Some(writer) = &mut self.native {
            return Bytes::from(writer.failed(fault));
        }
        let event = stream_event(api, fault, 1);
        match self.scanner.closing() {
            b"" => event,
            closing => Bytes::from([closing, event.as_ref()].concat()),
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
        // behind a gap nothing is written any more: it would look whole
        let lost = *self.lost;
        if let Some(writer) = self.native.as_mut().filter(|_| !lost) {
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
