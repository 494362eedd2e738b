//! Messages: the events of a stream and whole answers.

use super::facts::Facts;
use super::openai::{blob_text, words};
use super::usage::{Figure, Figures};
use crate::api::json::{Kind, Path, Str, Visitor};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Outside,
    Document,
    /// The `message` of `message_start`.
    Message,
    /// The `delta` of `content_block_delta` and of `message_delta`.
    Delta,
    /// The `content` of a whole answer.
    Blocks,
    /// A block of it, or the `content_block` of `content_block_start`.
    Block,
    /// Within a block's own members, at any depth.
    Inner,
    Usage,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Other,
    Type,
    Message,
    Delta,
    Content,
    Block,
    Usage,
    Error,
    Output,
    Blob,
    Inner,
    Figure(Field),
    Words,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Input,
    CacheRead,
    CacheWrite,
    Output,
}

/// What the document's `type` says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A whole answer, or a type that says nothing of usage or the end.
    Other,
    MessageDelta,
    MessageStop,
    Error,
}

impl Event {
    /// Of the document's `type`, or of the event's own name.
    pub fn of(name: &[u8]) -> Event {
        match name {
            b"message_delta" => Event::MessageDelta,
            b"message_stop" => Event::MessageStop,
            b"error" => Event::Error,
            _ => Event::Other,
        }
    }
}

/// Reads one document; [`Blocks::facts`] has what it said.
#[derive(Clone, Debug)]
pub struct Blocks {
    pub facts: Facts,
    /// Nothing where the document names no type.
    event: Option<Event>,
    path: Path<Step>,
    key: Key,
}

impl Blocks {
    pub fn new() -> Blocks {
        Blocks {
            facts: Facts::default(),
            event: None,
            path: Path::new(Step::Outside),
            key: Key::Other,
        }
    }

    /// Forgets the document.
    pub fn reset(&mut self) {
        self.facts = Facts::default();
        self.event = None;
        self.path.reset();
        self.key = Key::Other;
    }

    /// The document is over; `name` is its event's.
    pub fn finish(&mut self, name: Option<&[u8]>) {
        let event = self.event.or(name.map(Event::of));
        self.facts.end = event == Some(Event::MessageStop);
        self.facts.error |= event == Some(Event::Error);
        self.facts.settles = event == Some(Event::MessageDelta);
    }

    fn figure(&mut self, field: Field, figure: Figure) {
        let usage: &mut Figures = &mut self.facts.usage;
        match field {
            Field::Input => usage.read(|f| &mut f.input, figure),
            Field::CacheRead => usage.read(|f| &mut f.cached, figure),
            Field::CacheWrite => usage.read(|f| &mut f.cache_write, figure),
            Field::Output => usage.read(|f| &mut f.output, figure),
        }
    }
}

fn key_of(step: Step, name: &[u8]) -> Key {
    match (step, name) {
        (Step::Document, b"type") => Key::Type,
        (Step::Document, b"message") => Key::Message,
        (Step::Document, b"delta") => Key::Delta,
        (Step::Document, b"content") => Key::Content,
        (Step::Document, b"content_block") => Key::Block,
        (Step::Document | Step::Message, b"usage") => Key::Usage,
        (Step::Document, b"error") => Key::Error,
        (Step::Delta, b"text" | b"thinking" | b"partial_json" | b"content")
        | (Step::Block, b"text" | b"thinking" | b"name") => Key::Output,
        (Step::Block, b"data") => Key::Blob,
        (Step::Block, b"input" | b"content") => Key::Inner,
        (Step::Inner, b"type" | b"id" | b"tool_use_id" | b"encrypted_content") => Key::Other,
        (Step::Inner, _) => Key::Output,
        (Step::Usage, b"input_tokens") => Key::Figure(Field::Input),
        (Step::Usage, b"cache_read_input_tokens") => Key::Figure(Field::CacheRead),
        (Step::Usage, b"cache_creation_input_tokens") => Key::Figure(Field::CacheWrite),
        (Step::Usage, b"output_tokens") => Key::Figure(Field::Output),
        (Step::Error, b"message") => Key::Words,
        _ => Key::Other,
    }
}

impl Visitor for Blocks {
    fn key(&mut self, key: Str<'_>, _at: usize) {
        if let Some(step) = self.path.here() {
            self.key = key.named(|name| key_of(step, name));
        }
    }

    fn string(&mut self, value: Str<'_>, _at: usize) {
        if self.path.here().is_none() {
            return;
        }
        match self.key {
            Key::Output => self.facts.output(value.len),
            Key::Blob => self.facts.output(blob_text(value.len)),
            Key::Type => self.event = Some(value.named(Event::of)),
            Key::Figure(field) => self.figure(field, Figure::Absurd),
            Key::Words => self.facts.error_message = words(value),
            Key::Other
            | Key::Message
            | Key::Delta
            | Key::Content
            | Key::Block
            | Key::Usage
            | Key::Error
            | Key::Inner => {}
        }
    }

    fn bare(&mut self, raw: &[u8], _at: usize) {
        if let (Some(_), Key::Figure(field)) = (self.path.here(), self.key) {
            self.figure(field, Figure::of(raw));
        }
    }

    fn open(&mut self, _kind: Kind, _at: usize) {
        let step = match (self.path.here(), self.key) {
            (Some(Step::Outside), _) => Some(Step::Document),
            (Some(Step::Document), Key::Message) => Some(Step::Message),
            (Some(Step::Document), Key::Delta) => Some(Step::Delta),
            (Some(Step::Document), Key::Content) => Some(Step::Blocks),
            (Some(Step::Document), Key::Block) | (Some(Step::Blocks), _) => Some(Step::Block),
            (Some(Step::Block), Key::Inner) | (Some(Step::Inner), Key::Output) => Some(Step::Inner),
            (Some(Step::Document | Step::Message), Key::Usage) => Some(Step::Usage),
            (Some(Step::Document), Key::Error) => {
                self.facts.error = true;
                Some(Step::Error)
            }
            _ => None,
        };
        if step == Some(Step::Inner) {
            // What stands in a list without keys of its own is output like the rest.
            self.key = Key::Output;
        }
        self.path.enter(step);
    }

    fn close(&mut self, _at: usize) {
        self.path.leave();
        self.key = match self.path.here() {
            Some(Step::Inner) => Key::Output,
            _ => Key::Other,
        };
    }
}
