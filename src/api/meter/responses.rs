//! Responses: the events of a stream and whole answers.

use super::facts::Facts;
use super::openai::{blob_text, words};
use super::usage::Figure;
use crate::api::json::{Kind, Path, Str, Visitor};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Outside,
    Document,
    /// The `response` of the events that bring the whole one.
    Response,
    /// The `item` of an event.
    Item,
    /// The `output` of a whole answer, at any depth.
    Output,
    Usage,
    Details,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Other,
    Type,
    Delta,
    Blob,
    Response,
    Item,
    ItemType,
    Name,
    Output,
    Usage,
    Details,
    Error,
    Words,
    Figure(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Input,
    Output,
    Total,
    Cached,
}

/// What the document's `type` says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Other,
    Delta,
    ItemAdded,
    /// `response.completed`, `response.incomplete`.
    Ended,
    /// `response.failed`, which is also an end.
    Failed,
    Error,
}

impl Event {
    fn of(name: &[u8]) -> Event {
        match name {
            b"response.completed" | b"response.incomplete" => Event::Ended,
            b"response.failed" => Event::Failed,
            b"error" => Event::Error,
            b"response.output_item.added" => Event::ItemAdded,
            _ if name.ends_with(b".delta") => Event::Delta,
            b"response.image_generation_call.partial_image" => Event::Delta,
            _ => Event::Other,
        }
    }
}

/// Reads one document; [`Items::facts`] has what it said.
#[derive(Clone, Debug)]
pub struct Items {
    pub facts: Facts,
    /// Nothing where the document names no type: a whole answer.
    event: Option<Event>,
    path: Path<Step>,
    key: Key,
    /// Bytes of the event's `delta`; output if its type says that it is one.
    delta: usize,
    /// The item begins a call, whose name has these bytes.
    is_call: bool,
    name: usize,
}

impl Items {
    pub fn new() -> Items {
        Items {
            facts: Facts::default(),
            event: None,
            path: Path::new(Step::Outside),
            key: Key::Other,
            delta: 0,
            is_call: false,
            name: 0,
        }
    }

    /// Forgets the document.
    pub fn reset(&mut self) {
        self.facts = Facts::default();
        self.event = None;
        self.path.reset();
        self.key = Key::Other;
        self.delta = 0;
        self.is_call = false;
        self.name = 0;
    }

    /// The document is over; `name` is its event's.
    pub fn finish(&mut self, name: Option<&[u8]>) {
        match self.event.or(name.map(Event::of)) {
            Some(Event::Delta) => self.facts.output(self.delta),
            Some(Event::ItemAdded) if self.is_call => self.facts.output(self.name.max(1)),
            Some(Event::Ended) => self.facts.end = true,
            Some(Event::Failed) => {
                self.facts.end = true;
                self.facts.error = true;
            }
            Some(Event::Error) => self.facts.error = true,
            Some(Event::ItemAdded | Event::Other) | None => {}
        }
        self.facts.settles = self.facts.end;
    }

    fn figure(&mut self, field: Field, figure: Figure) {
        let usage = &mut self.facts.usage;
        match field {
            Field::Input => usage.read(|f| &mut f.input, figure),
            Field::Output => usage.read(|f| &mut f.output, figure),
            Field::Cached => usage.read(|f| &mut f.cached, figure),
            Field::Total => usage.absurd |= figure == Figure::Absurd,
        }
    }
}

fn key_of(step: Step, name: &[u8]) -> Key {
    match (step, name) {
        (Step::Document, b"type") => Key::Type,
        (Step::Document, b"delta") => Key::Delta,
        (Step::Document, b"partial_image_b64") => Key::Blob,
        (Step::Document, b"response") => Key::Response,
        (Step::Document, b"item") => Key::Item,
        (Step::Document, b"output") => Key::Output,
        (Step::Document | Step::Response, b"usage") => Key::Usage,
        (Step::Document | Step::Response, b"error") => Key::Error,
        (Step::Document | Step::Error, b"message") => Key::Words,
        (Step::Item, b"type") => Key::ItemType,
        (Step::Item, b"name") => Key::Name,
        (Step::Output, b"text" | b"refusal" | b"arguments" | b"name" | b"code") => Key::Output,
        (Step::Output, b"content" | b"summary") => Key::Output,
        (Step::Output, b"result") => Key::Blob,
        (Step::Usage, b"input_tokens") => Key::Figure(Field::Input),
        (Step::Usage, b"output_tokens") => Key::Figure(Field::Output),
        (Step::Usage, b"total_tokens") => Key::Figure(Field::Total),
        (Step::Usage, b"input_tokens_details") => Key::Details,
        (Step::Details, b"cached_tokens") => Key::Figure(Field::Cached),
        _ => Key::Other,
    }
}

impl Visitor for Items {
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
            Key::Type => self.event = Some(value.named(Event::of)),
            Key::Delta => self.delta = value.len,
            Key::Blob if self.path.here() == Some(Step::Document) => self.delta = value.len,
            Key::Blob => self.facts.output(blob_text(value.len)),
            Key::ItemType => self.is_call = value.named(|name| name.ends_with(b"_call")),
            Key::Name => self.name = value.len,
            Key::Output => self.facts.output(value.len),
            Key::Words => self.facts.error_message = words(value),
            Key::Figure(field) => self.figure(field, Figure::Absurd),
            Key::Other | Key::Response | Key::Item | Key::Usage | Key::Details | Key::Error => {}
        }
    }

    fn bare(&mut self, raw: &[u8], _at: usize) {
        if let (Some(_), Key::Figure(field)) = (self.path.here(), self.key) {
            self.figure(field, Figure::of(raw));
        }
    }

    fn open(&mut self, kind: Kind, _at: usize) {
        let step = match (self.path.here(), self.key) {
            (Some(Step::Outside), _) => Some(Step::Document),
            (Some(Step::Document), Key::Response) => Some(Step::Response),
            (Some(Step::Document), Key::Item) => Some(Step::Item),
            (Some(Step::Document | Step::Output), Key::Output) => Some(Step::Output),
            (Some(Step::Document | Step::Response), Key::Usage) => Some(Step::Usage),
            (Some(Step::Usage), Key::Details) => Some(Step::Details),
            (Some(Step::Document), Key::Error) => {
                self.facts.error = true;
                Some(Step::Error)
            }
            (Some(Step::Response), Key::Error) => Some(Step::Error),
            _ => None,
        };
        if step == Some(Step::Output) && kind == Kind::Array {
            self.key = Key::Output;
        }
        self.path.enter(step);
    }

    fn close(&mut self, _at: usize) {
        self.path.leave();
        self.key = match self.path.here() {
            Some(Step::Output) => Key::Output,
            _ => Key::Other,
        };
    }
}
