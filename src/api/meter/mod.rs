//! What an answer made: content events counted, the upstream's usage read, the protocol's end and errors recognised.
//!
//! One document is read at a time, an event's data or a whole body, in as many pieces as it comes; nothing of it is
//! kept but what it said.
//!
//! Whose figure stands (contract section 5): at the protocol's end the upstream's own, where it gave one that can be
//! believed. Before that, and where an answer broke off, the larger of its running figure and the count.

mod anthropic;
mod facts;
mod openai;
mod responses;
mod usage;

use self::anthropic::Blocks;
use self::facts::Facts;
use self::openai::Choices;
use self::responses::Items;
use self::usage::Usage;
use super::call::Call;
use super::errors::capped;
use super::json::{Grammar, Scanner};
use crate::budget::Units;
use crate::record::UsageSource;
use crate::sse::Event;

/// What one event is to the relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// It holds output.
    pub content: bool,
    /// It is the protocol's own end.
    pub end: bool,
    /// It is the upstream's own error.
    pub error: bool,
    /// It is the usage chunk that a client who did not ask would not get.
    pub usage_only: bool,
}

/// The units of an answer, at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    pub generated: Units,
    /// All input, cached parts included, where the upstream named it.
    pub input: Option<Units>,
    /// Of the input, read from the upstream's cache.
    pub input_cached: Option<Units>,
    /// Of the input, written to the upstream's cache.
    pub input_cache_write: Option<Units>,
    /// Whose figure `generated` is.
    pub source: UsageSource,
}

/// Reads the documents of one answer.
#[derive(Clone, Debug)]
pub struct Meter {
    json: Scanner,
    reader: Reader,
    usage: Usage,
    content_events: u64,
    /// Within a document that comes in pieces.
    open: bool,
    ended: bool,
    failure: Option<String>,
}

#[derive(Clone, Debug)]
enum Reader {
    Choices(Choices),
    Blocks(Blocks),
    Items(Items),
    /// Nothing in the answer counts, but it must be whole.
    Nothing(Choices),
}

impl Reader {
    fn of(call: Call) -> Reader {
        match call {
            Call::Chat | Call::Completions | Call::Embeddings | Call::Native => {
                Reader::Choices(Choices::new())
            }
            Call::Messages => Reader::Blocks(Blocks::new()),
            Call::Responses => Reader::Items(Items::new()),
            Call::CountTokens => Reader::Nothing(Choices::new()),
        }
    }

    fn reset(&mut self) {
        match self {
            Reader::Choices(choices) | Reader::Nothing(choices) => choices.reset(),
            Reader::Blocks(blocks) => blocks.reset(),
            Reader::Items(items) => items.reset(),
        }
    }

    fn facts(&mut self) -> &mut Facts {
        match self {
            Reader::Choices(choices) | Reader::Nothing(choices) => &mut choices.facts,
            Reader::Blocks(blocks) => &mut blocks.facts,
            Reader::Items(items) => &mut items.facts,
        }
    }
}

impl Meter {
    pub fn new(call: Call) -> Meter {
        Meter {
            json: Scanner::new(Grammar::Lenient),
            reader: Reader::of(call),
            usage: Usage::default(),
            content_events: 0,
            open: false,
            ended: false,
            failure: None,
        }
    }

    /// Reads a whole event.
    pub fn event(&mut self, event: &Event<'_>) -> Seen {
        let Some(data) = event.data else {
            return Seen::default();
        };
        if data == b"[DONE]" && matches!(self.reader, Reader::Choices(_)) {
            self.ended = true;
            return Seen {
                end: true,
                ..Seen::default()
            };
        }
        // what comes behind the protocol's end is the upstream's affair
        let counts = !self.ended;
        self.piece(data);
        let seen = self.event_ends(event.name);
        if seen.error && counts && self.failure.is_none() {
            self.failure = Some(unnamed_failure(data));
        }
        seen
    }

    /// Reads the next bytes of a document.
    pub fn piece(&mut self, bytes: &[u8]) {
        if !self.open {
            self.open = true;
            self.json.reset();
            self.reader.reset();
        }
        match &mut self.reader {
            Reader::Choices(choices) => self.json.feed(bytes, choices),
            Reader::Blocks(blocks) => self.json.feed(bytes, blocks),
            Reader::Items(items) => self.json.feed(bytes, items),
            Reader::Nothing(nothing) => self.json.feed(bytes, nothing),
        }
    }

    /// The event is over whose data came in pieces.
    pub fn event_ends(&mut self, name: Option<&[u8]>) -> Seen {
        let whole = self.document_ends(name);
        let named_error = name == Some(b"error");
        let counts = !self.ended;
        let facts = self.reader.facts();
        let seen = Seen {
            content: facts.content,
            end: whole && facts.end,
            error: facts.error || named_error,
            usage_only: whole && facts.usage_only,
        };
        if seen.error && counts && self.failure.is_none() {
            self.failure = facts.error_message.take();
        }
        if counts {
            self.content_events += u64::from(seen.content);
            self.take_usage(whole, false);
        }
        self.ended |= seen.end;
        seen
    }

    /// Reads the next bytes of a whole body.
    pub fn body(&mut self, bytes: &[u8]) {
        let had_document = self.json.has_document();
        self.piece(bytes);
        self.ended = self.json.is_done();
        if self.json.has_document() && !had_document {
            self.take_usage(true, true);
        }
    }

    /// A whole body is over. Whether it was one JSON document.
    pub fn body_ends(&mut self) -> bool {
        self.ended = self.document_ends(None);
        self.take_usage(self.ended, true);
        let facts = self.reader.facts();
        if facts.error && self.failure.is_none() {
            let words = facts.error_message.take();
            self.failure = Some(words.unwrap_or_else(|| "an error without a message".to_owned()));
        }
        self.ended
    }

    /// The protocol's own end has been read, or a whole body is whole.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// The upstream's own error, in its words.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The units of an event stream: without the upstream's figure, one for each content event.
    pub fn totals(&self) -> Totals {
        self.totals_of(Units(self.content_events))
    }

    /// The units of a whole body: it has no events, so without the upstream's figure its text is counted as input is.
    pub fn body_totals(&self, bytes_per_unit: u64) -> Totals {
        let facts = match &self.reader {
            Reader::Choices(choices) => &choices.facts,
            Reader::Blocks(blocks) => &blocks.facts,
            Reader::Items(items) => &items.facts,
            Reader::Nothing(_) => return self.totals_of(Units::ZERO),
        };
        self.totals_of(Units(facts.text_bytes.div_ceil(bytes_per_unit.max(1))))
    }

    fn totals_of(&self, counted: Units) -> Totals {
        let settled = self.ended && self.usage.settled.is_some();
        let (generated, source) = match self.usage.output() {
            Some(stated) if settled || stated >= counted => (stated, UsageSource::Upstream),
            None if self.ended && counted == Units::ZERO && self.usage.input.is_some() => {
                (Units::ZERO, UsageSource::Upstream)
            }
            Some(_) | None => (counted, UsageSource::Counted),
        };
        Totals {
            generated,
            input: self.input(),
            input_cached: self.usage.cached,
            input_cache_write: self.usage.cache_write,
            source,
        }
    }

    /// Anthropic's input leaves out what the cache served or took; the others' includes it.
    fn input(&self) -> Option<Units> {
        let usage = &self.usage;
        match self.reader {
            Reader::Choices(_) | Reader::Items(_) => usage.input,
            Reader::Nothing(_) => None,
            Reader::Blocks(_) => [usage.input, usage.cached, usage.cache_write]
                .into_iter()
                .flatten()
                .reduce(Units::plus),
        }
    }

    /// Ends the document. Whether it was JSON to its end.
    fn document_ends(&mut self, name: Option<&[u8]>) -> bool {
        self.open = false;
        match &mut self.reader {
            Reader::Choices(choices) => {
                let whole = self.json.finish(choices);
                choices.finish();
                whole
            }
            Reader::Blocks(blocks) => {
                let whole = self.json.finish(blocks);
                blocks.finish(name);
                whole
            }
            Reader::Items(items) => {
                let whole = self.json.finish(items);
                items.finish(name);
                whole
            }
            Reader::Nothing(nothing) => self.json.finish(nothing),
        }
    }

    /// Takes the figures of the document that has ended; `last`: there is no other.
    fn take_usage(&mut self, whole: bool, last: bool) {
        if !whole {
            return;
        }
        let replaces = matches!(self.reader, Reader::Blocks(_));
        let facts = self.reader.facts();
        let figures = facts.usage;
        match (facts.settles || last, replaces) {
            (false, _) => self.usage.runs(&figures),
            (true, true) => self.usage.replaces(&figures),
            (true, false) => self.usage.settles(&figures),
        }
    }
}

/// An error without a message in the usual place: its text, where it is plain. A document may hold what the model said.
fn unnamed_failure(data: &[u8]) -> String {
    let plain = !data.trim_ascii_start().starts_with(b"{");
    if plain && !data.is_empty() {
        capped(&String::from_utf8_lossy(data)).into_owned()
    } else {
        "the upstream reported an error without a message".to_owned()
    }
}

#[cfg(test)]
mod tests;
