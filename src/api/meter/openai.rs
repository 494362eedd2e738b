//! Chat completions, completions and embeddings: chunks of a stream and whole answers.

use super::facts::Facts;
use super::usage::Figure;
use crate::api::errors::capped;
use crate::api::json::{Kind, Path, Str, Visitor};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Outside,
    Document,
    Choices,
    Choice,
    /// The `delta` of a chunk, the `message` of a whole answer.
    Message,
    /// Within a member that is output, at any depth.
    Output,
    Usage,
    Details,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Other,
    Choices,
    Usage,
    Error,
    Message,
    Text,
    Finish,
    Output,
    /// Output that is not text: audio, images.
    Blob,
    Label,
    Figure(Field),
    Details,
    Words,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Input,
    Output,
    Total,
    Cached,
}

/// Reads one document; [`Choices::facts`] has what it said.
#[derive(Clone, Debug)]
pub struct Choices {
    pub facts: Facts,
    path: Path<Step>,
    key: Key,
    /// There is a choice: the document is more than usage.
    has_choice: bool,
    has_usage: bool,
    finished: bool,
}

impl Choices {
    pub fn new() -> Choices {
        Choices {
            facts: Facts::default(),
            path: Path::new(Step::Outside),
            key: Key::Other,
            has_choice: false,
            has_usage: false,
            finished: false,
        }
    }

    /// Forgets the document.
    pub fn reset(&mut self) {
        self.facts = Facts::default();
        self.path.reset();
        self.key = Key::Other;
        self.has_choice = false;
        self.has_usage = false;
        self.finished = false;
    }

    /// The document is over.
    pub fn finish(&mut self) {
        self.facts.settles = self.finished || !self.facts.content;
        self.facts.usage_only = self.has_usage && !self.has_choice && !self.facts.error;
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
        (Step::Document, b"choices") => Key::Choices,
        (Step::Document | Step::Choice, b"usage") => Key::Usage,
        (Step::Document, b"error") => Key::Error,
        (Step::Choice, b"delta" | b"message") => Key::Message,
        (Step::Choice, b"text") => Key::Text,
        (Step::Choice, b"finish_reason") => Key::Finish,
        (
            Step::Message,
            b"content" | b"reasoning_content" | b"reasoning" | b"reasoning_details" | b"thinking"
            | b"refusal" | b"tool_calls" | b"function_call" | b"audio" | b"images",
        ) => Key::Output,
        (Step::Output, b"type" | b"id" | b"format" | b"role" | b"signature") => Key::Label,
        (Step::Output, b"data" | b"url" | b"b64_json") => Key::Blob,
        (Step::Output, _) => Key::Output,
        (Step::Usage, b"prompt_tokens" | b"input_tokens") => Key::Figure(Field::Input),
        (Step::Usage, b"completion_tokens" | b"output_tokens") => Key::Figure(Field::Output),
        (Step::Usage, b"total_tokens") => Key::Figure(Field::Total),
        (Step::Usage, b"prompt_cache_hit_tokens") => Key::Figure(Field::Cached),
        (Step::Usage, b"prompt_tokens_details" | b"input_tokens_details") => Key::Details,
        (Step::Details, b"cached_tokens") => Key::Figure(Field::Cached),
        (Step::Error, b"message") => Key::Words,
        _ => Key::Other,
    }
}

impl Visitor for Choices {
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
            Key::Text | Key::Output => self.facts.output(value.len),
            Key::Blob => self.facts.output(blob_text(value.len)),
            Key::Finish => self.finished |= value.len > 0,
            Key::Figure(field) => self.figure(field, Figure::Absurd),
            Key::Error => {
                self.facts.error |= value.len > 0;
                self.facts.error_message = words(value);
            }
            Key::Words => self.facts.error_message = words(value),
            Key::Other | Key::Choices | Key::Usage | Key::Message | Key::Label | Key::Details => {}
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
            (Some(Step::Document), Key::Choices) if kind == Kind::Array => Some(Step::Choices),
            (Some(Step::Choices), _) => {
                self.has_choice = true;
                Some(Step::Choice)
            }
            (Some(Step::Choice), Key::Message) => Some(Step::Message),
            (Some(Step::Message | Step::Output), Key::Output) => Some(Step::Output),
            (Some(Step::Document | Step::Choice), Key::Usage) if kind == Kind::Object => {
                self.has_usage |= self.path.here() == Some(Step::Document);
                Some(Step::Usage)
            }
            (Some(Step::Usage), Key::Details) => Some(Step::Details),
            (Some(Step::Document), Key::Error) => {
                self.facts.error = true;
                Some(Step::Error)
            }
            _ => None,
        };
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

/// The text that output of another kind stands for: four bytes, a unit as a rule, for each kilobyte.
pub(super) fn blob_text(bytes: usize) -> usize {
    bytes.div_ceil(256)
}

/// An upstream's own words, as they may be repeated.
pub(super) fn words(value: Str<'_>) -> Option<String> {
    let text = value.beginning().filter(|text| !text.is_empty())?;
    Some(capped(&text).into_owned())
}
