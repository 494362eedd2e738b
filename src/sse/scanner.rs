//! Where events end: whole events out of any split of the bytes, with nothing kept but the tail that waits for its
//! event's end.

use super::event::Event;
use super::output::Output;
use super::oversized::Fields;
use bytes::Bytes;
use memchr::memchr2;
use std::ops::Range;

/// Bytes of an event that are held back until its end. A larger one passes as it comes (contract section 4).
pub const HELD_MAX: usize = 64 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// Whether an event's bytes go to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Hide,
}

/// What happens to the bytes of an event over the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// They pass as they come.
    Pass,
    /// They are left out: the client gets a conversion of the events, never their bytes.
    Hide,
}

/// Who reads the events.
pub trait Sink {
    /// A whole block: an event, or only comments and blank lines (then it has neither name nor data).
    fn event(&mut self, event: &Event<'_>) -> Verdict;

    /// The next bytes of the data of an event over the limit.
    fn data_piece(&mut self, piece: &[u8]);

    /// The end of that event. Its `data` is empty here, nothing where it had none: the pieces were its data.
    fn data_end(&mut self, event: &Event<'_>);
}

/// The state of one event stream between two reads.
///
/// Time is linear in the bytes read, memory at most the limit, whatever comes.
#[derive(Debug)]
pub struct Scanner {
    limit: usize,
    oversize: Oversize,
    /// The bytes of an event whose end has not come.
    pending: Vec<u8>,
    /// Room to join data of several lines.
    joined: Vec<u8>,
    /// The event that outgrew the limit, while its end has not come.
    large: Option<Box<Fields>>,
    /// The current line has a byte.
    line_open: bool,
    /// The last byte was a CR: a LF that follows is the same line end.
    after_cr: bool,
    /// What the last whole event was answered: a LF that still belongs to it shares its fate.
    last: Verdict,
    /// Bytes of the leading BOM seen; three or a mismatch ends the watch.
    bom: u8,
    /// No event has ended yet: a BOM may stand before the first.
    first: bool,
    /// The client was sent something before the stream's first byte: a BOM would not lead there.
    preceded: bool,
}

impl Scanner {
    pub fn new(limit: usize, oversize: Oversize) -> Scanner {
        Scanner {
            limit,
            oversize,
            pending: Vec::new(),
            joined: Vec::new(),
            large: None,
            line_open: false,
            after_cr: false,
            last: Verdict::Pass,
            bom: 0,
            first: true,
            preceded: false,
        }
    }

    /// Reads on. Returns what may go to the client now: every event whose end is in `chunk`, as it came.
    pub fn feed(&mut self, chunk: &Bytes, sink: &mut impl Sink) -> Bytes {
        let mut out = Output::new(chunk);
        let mut start = self.owed_lf(chunk, &mut out);
        while let Some(end) = self.border(chunk, start) {
            self.event_ends(chunk, start..end, sink, &mut out);
            self.first = false;
            start = end;
        }
        self.tail_stays(chunk, start..chunk.len(), sink, &mut out);
        out.finish()
    }

    /// The bytes of an event whose end has not come and of which nothing was shown.
    pub fn tail(&self) -> &[u8] {
        &self.pending
    }

    /// Reads the tail as if the stream ended with it.
    pub fn tail_event(&mut self) -> Event<'_> {
        Event::parse(without_bom(self.first, &self.pending), &mut self.joined)
    }

    /// Gives the tail away: the caller shows it.
    pub fn take_tail(&mut self) -> Bytes {
        Bytes::from(std::mem::take(&mut self.pending))
    }

    /// The event over the limit that the stream is in the middle of, but for its data.
    pub fn large_event(&self) -> Option<Event<'_>> {
        self.large.as_deref().map(Fields::event)
    }

    /// The client has been sent a part of an event and not its end: nothing may be put in between.
    pub fn mid_event_shown(&self) -> bool {
        self.large.is_some() && self.oversize == Oversize::Pass
    }

    /// The last event shown ended in a CR; a LF that comes next is part of that line end.
    pub fn may_owe_lf(&self) -> bool {
        self.after_cr
            && self.last == Verdict::Pass
            && self.pending.is_empty()
            && self.large.is_none()
    }

    /// What ends the event that is shown in part, so that the next bytes begin one of their own.
    pub fn closing(&self) -> &'static [u8] {
        match (self.mid_event_shown(), self.line_open || self.after_cr) {
            (false, _) => b"",
            (true, true) => b"\n\n",
            (true, false) => b"\n",
        }
    }

    /// The client was sent bytes that are not this stream's. A BOM that has not come yet is left out: behind them it
    /// would be read as text.
    pub fn other_bytes_sent(&mut self) {
        self.preceded = true;
    }

    /// A LF that belongs to the CR which ended the event before: passes at once. Returns where the next event begins.
    fn owed_lf(&mut self, chunk: &Bytes, out: &mut Output<'_>) -> usize {
        if chunk.is_empty() || !self.after_cr || !self.pending.is_empty() || self.large.is_some() {
            return 0;
        }
        self.after_cr = false;
        if chunk.first() != Some(&b'\n') {
            return 0;
        }
        if self.last == Verdict::Pass {
            out.part(0..1);
        }
        1
    }

    /// The end of the event that `bytes` from `start` goes on with: just behind the line end of its blank line.
    fn border(&mut self, bytes: &[u8], start: usize) -> Option<usize> {
        let mut at = self.skip_bom(bytes, start);
        if self.after_cr && at < bytes.len() {
            self.after_cr = false;
            at += usize::from(bytes.get(at) == Some(&b'\n'));
        }
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let Some(found) = memchr2(b'\n', b'\r', rest) else {
                self.line_open |= !rest.is_empty();
                return None;
            };
            let blank = found == 0 && !self.line_open;
            self.line_open = false;
            at += found + 1;
            if rest.get(found) == Some(&b'\r') {
                match rest.get(found + 1) {
                    Some(b'\n') => at += 1,
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            if blank {
                return Some(at);
            }
        }
    }

    /// Steps over the bytes of a leading BOM: they are no part of the first line.
    fn skip_bom(&mut self, bytes: &[u8], start: usize) -> usize {
        let mut at = start;
        while let (Some(want), Some(byte)) = (BOM.get(usize::from(self.bom)), bytes.get(at)) {
            if byte == want {
                self.bom += 1;
                at += 1;
            } else {
                self.line_open |= self.bom > 0;
                self.bom = 3;
            }
        }
        at
    }

    /// The event that the chunk's `part` ends.
    fn event_ends(
        &mut self,
        chunk: &Bytes,
        part: Range<usize>,
        sink: &mut impl Sink,
        out: &mut Output<'_>,
    ) {
        let bytes = chunk.get(part.clone()).unwrap_or_default();
        if let Some(mut fields) = self.large.take() {
            fields.feed(bytes, &mut |data| sink.data_piece(data));
            sink.data_end(&fields.event());
            self.last = self.pass_large(part, out);
            return;
        }
        let whole = !self.pending.is_empty();
        if whole {
            self.pending.extend_from_slice(bytes);
        }
        let block = if whole {
            self.pending.as_slice()
        } else {
            bytes
        };
        let shown_from = self.dropped_bom(block);
        let event = Event::parse(without_bom(self.first, block), &mut self.joined);
        self.last = sink.event(&event);
        let mut kept = std::mem::take(&mut self.pending);
        match (self.last, whole) {
            (Verdict::Hide, _) => {}
            (Verdict::Pass, true) => {
                kept.drain(..shown_from);
                out.kept(kept);
            }
            (Verdict::Pass, false) => out.part(part.start + shown_from..part.end),
        }
    }

    /// The bytes behind the last event's end: kept, or passed on in the middle of a large event.
    fn tail_stays(
        &mut self,
        chunk: &Bytes,
        part: Range<usize>,
        sink: &mut impl Sink,
        out: &mut Output<'_>,
    ) {
        let bytes = chunk.get(part.clone()).unwrap_or_default();
        if let Some(fields) = &mut self.large {
            fields.feed(bytes, &mut |data| sink.data_piece(data));
            self.pass_large(part, out);
        } else if self.pending.len() + bytes.len() <= self.limit {
            self.pending.extend_from_slice(bytes);
        } else {
            let mut fields = Box::new(Fields::new());
            let mut kept = std::mem::take(&mut self.pending);
            kept.extend_from_slice(bytes);
            fields.feed(without_bom(self.first, &kept), &mut |data| {
                sink.data_piece(data)
            });
            self.large = Some(fields);
            if self.oversize == Oversize::Pass {
                kept.drain(..self.dropped_bom(&kept));
                out.kept(kept);
            }
        }
    }

    fn pass_large(&self, part: Range<usize>, out: &mut Output<'_>) -> Verdict {
        match self.oversize {
            Oversize::Pass => {
                out.part(part);
                Verdict::Pass
            }
            Oversize::Hide => Verdict::Hide,
        }
    }

    /// How many bytes of the stream's first block are a BOM that would not lead at the client.
    fn dropped_bom(&self, block: &[u8]) -> usize {
        if self.preceded && self.first && block.starts_with(BOM) {
            BOM.len()
        } else {
            0
        }
    }
}

/// The block without the BOM that may lead the first one.
fn without_bom(first: bool, block: &[u8]) -> &[u8] {
    if first {
        block.strip_prefix(BOM).unwrap_or(block)
    } else {
        block
    }
}
