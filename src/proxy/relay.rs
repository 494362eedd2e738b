//! What is known of an answer on its way from the upstream to the client: which kind it is, what of it was read, held,
//! sent. The body filter of the hooks works on this; the pump asks it.

use super::bodies::Body;
use super::decode::Decoder;
use crate::api::{Answer, Request, heartbeat};
use crate::backend::Pool;
use crate::budget::Units;
use crate::clock;
use crate::exchange::{Exchange, Usage};
use crate::metrics::Gaps;
use bytes::{Bytes, BytesMut};
use pingora_http::ResponseHeader;
use std::sync::Arc;
use std::time::Instant;

/// What of a preamble is held at most; one that is larger is shown.
const HELD_MAX: usize = 64 * 1024;

pub struct Relay {
    pub pool: Arc<Pool>,
    pub request: Request,
    /// The body for the upstream, as often as it is needed; gone once no further try is possible.
    pub body: Option<Body>,
    /// Backends that were tried.
    pub tried: Vec<String>,
    /// Made when an answer's head has come; nothing where it passes without being read.
    pub answer: Option<Answer>,
    /// The answer is an event stream.
    pub events: bool,
    /// The status of an answer that says no; it passes without being read.
    pub refused: Option<u16>,
    /// The upstream compresses although it was asked not to.
    pub decoder: Option<Decoder>,
    /// The answer's head, while it waits for the first bytes that are shown.
    pub head: Option<Box<ResponseHeader>>,
    /// An event stream's head was written, this answer's or one of ours before it.
    pub begun: bool,
    /// The preamble that waits for output, as long as another backend could still take over.
    held: Option<BytesMut>,
    gaps: Gaps,
    /// When the bytes came that the body filter is called with.
    pub heard_at: Instant,
    /// Output has been shown: the exchange knows.
    shown: bool,
    /// A heartbeat is due: the next call of the body filter makes one.
    pub beat: bool,
    /// Content events that went to the client, and those that were read.
    sent: u64,
    seen: u64,
    /// Content events in the bytes that the filter returned last.
    unsent: u32,
    /// Those bytes are not with the client yet.
    unwritten: bool,
}

impl Relay {
    pub fn new(pool: Arc<Pool>, request: Request, body: Body, gaps: Gaps) -> Relay {
        Relay {
            pool,
            request,
            body: Some(body),
            tried: Vec::new(),
            answer: None,
            events: false,
            refused: None,
            decoder: None,
            head: None,
            begun: false,
            held: None,
            gaps,
            heard_at: clock::instant(),
            shown: false,
            beat: false,
            sent: 0,
            seen: 0,
            unsent: 0,
            unwritten: false,
        }
    }

    /// Forgets the answer of a try that is followed by another.
    pub fn start_over(&mut self, exchange: &mut Exchange) {
        self.answer = None;
        self.events = false;
        self.unwritten = false;
        self.refused = None;
        self.decoder = None;
        self.head = None;
        self.held = None;
        (self.sent, self.seen, self.unsent) = (0, 0, 0);
        // not the record's input: an upstream that is forgotten may have said it otherwise
        let bytes_per_unit = self.pool.rules.bytes_per_unit;
        exchange.count(Usage::estimated(
            self.request.input_estimate(bytes_per_unit),
        ));
    }

    /// An event stream begins. Its preamble is held where another backend may still take over, which costs something:
    /// only with consent.
    pub fn begin_events(&mut self) {
        let rules = &self.pool.rules;
        let holds = rules.stream.hold_preamble && rules.retry.accept_duplicate_cost;
        self.held = holds.then(BytesMut::new);
        if self.begun
            && let Some(answer) = &mut self.answer
        {
            answer.heartbeat_sent();
        }
    }

    /// Heartbeats are written before the upstream has answered, or go on where they were before another try.
    pub fn is_early(&self) -> bool {
        let early = self.pool.rules.stream.early_headers && self.request.stream;
        early || self.begun
    }

    /// Nothing of this answer was shown yet, and it could be thrown away for another's.
    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Shows what was held: the border behind which there is no other try.
    pub fn let_go(&mut self) -> Option<Bytes> {
        let held = self.held.take()?;
        self.body = None;
        (!held.is_empty()).then(|| held.freeze())
    }

    /// The same after one heartbeat interval; where nothing is held yet, the silence is the upstream's and it may still
    /// be replaced.
    pub fn let_go_late(&mut self) -> Option<Bytes> {
        match &self.held {
            Some(held) if !held.is_empty() => self.let_go(),
            _ => None,
        }
    }

    /// What the bytes that are to be written next hold; called by `response_body_filter`.
    pub fn filter(&mut self, exchange: &mut Exchange, body: &mut Option<Bytes>, end: bool) {
        if std::mem::take(&mut self.beat) {
            *body = self.heartbeat(exchange);
            return;
        }
        let Some(answer) = &mut self.answer else {
            return;
        };
        let fed = match body.take() {
            Some(chunk) => answer.feed(chunk),
            None if end => answer.finish(),
            None => return,
        };
        for _ in 0..fed.content {
            self.gaps.event(self.heard_at);
        }
        self.seen += u64::from(fed.content);
        self.unsent += fed.content;
        let ended = end || answer.ended();
        let shown = answer.shown() || (!self.events && !fed.bytes.is_empty());
        if shown && !std::mem::replace(&mut self.shown, true) {
            exchange.show();
        }
        let bytes = self.hold(fed.bytes, shown || ended);
        self.unwritten |= !bytes.is_empty();
        self.count(exchange);
        *body = Some(bytes);
    }

    /// The bytes that go out now: none while the preamble is held, and all of it as soon as it is not.
    fn hold(&mut self, bytes: Bytes, show: bool) -> Bytes {
        let Some(held) = &mut self.held else {
            return bytes;
        };
        held.extend_from_slice(&bytes);
        if show || held.len() > HELD_MAX {
            self.let_go().unwrap_or_default()
        } else {
            Bytes::new()
        }
    }

    fn heartbeat(&mut self, exchange: &Exchange) -> Option<Bytes> {
        if let Some(answer) = &mut self.answer {
            if !answer.heartbeat_fits() {
                return None;
            }
            answer.heartbeat_sent();
        }
        exchange.metrics().heartbeat(&self.pool.rules.name);
        Some(heartbeat(self.request.call.api()))
    }

    /// The bytes of the last filter call are with the client.
    pub fn delivered(&mut self, exchange: &mut Exchange) {
        self.unwritten = false;
        self.sent += u64::from(std::mem::take(&mut self.unsent));
        self.count(exchange);
    }

    /// All that was read is with the client, and it ended as the protocol says, or with an error of the upstream's own:
    /// nothing that comes later makes it another end.
    pub fn has_sent_the_end(&self) -> bool {
        let over = |a: &Answer| a.ended() || a.failure().is_some();
        let waiting = self.unwritten || self.head.is_some() || self.held.is_some();
        self.answer.as_ref().is_some_and(over) && !waiting
    }

    pub fn has_ended(&self) -> bool {
        self.answer.as_ref().is_some_and(Answer::ended)
    }

    fn count(&mut self, exchange: &mut Exchange) {
        let Some(answer) = &self.answer else {
            return;
        };
        let totals = answer.totals();
        let before = exchange.usage();
        let all = if self.events {
            self.sent >= self.seen
        } else {
            answer.ended()
        };
        let whole = all && !self.unwritten;
        let delivered = if whole {
            totals.generated
        } else {
            part(totals.generated, self.sent, self.seen)
        };
        exchange.count(Usage {
            input: totals.input.unwrap_or(before.input),
            input_cached: totals.input_cached,
            input_cache_write: totals.input_cache_write,
            generated: totals.generated,
            delivered,
            source: totals.source,
        });
    }
}

/// Of the units made, the part that was sent, by events.
fn part(units: Units, sent: u64, seen: u64) -> Units {
    let part = u128::from(units.0) * u128::from(sent) / u128::from(seen.max(1));
    Units(u64::try_from(part).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_delivered_is_the_share_of_the_events_that_went_out() {
        assert_eq!(part(Units(41), 3, 4), Units(30));
        assert_eq!(part(Units(41), 0, 0), Units(0));
        assert_eq!(part(Units(u64::MAX), 1, 1), Units(u64::MAX));
    }
}
