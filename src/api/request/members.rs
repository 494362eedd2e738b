//! The top-level members of a request that the gateway reads: which they are, where they stand.

use super::estimate::Estimator;
use crate::api::call::Call;
use crate::api::json::{Kind, Str, Visitor};
use std::ops::Range;

/// A member the gateway reads. Standing twice, it would let gateway and backend read different requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Member {
    Model,
    Stream,
    StreamOptions,
    MaxTokens,
    MaxCompletionTokens,
    MaxOutputTokens,
    MaxOutputUnits,
    Choices,
    BestOf,
    /// `messages`, `prompt` or `input`: also what a conversation is recognised by.
    Messages,
    Prompt,
    Input,
    RequestId,
    /// More text of the prompt.
    Suffix,
    Instructions,
    System,
    Tools,
    Functions,
}

impl Member {
    /// The name as clients write it; also what an error names.
    pub const fn name(self) -> &'static str {
        match self {
            Member::Model => "model",
            Member::Stream => "stream",
            Member::StreamOptions => "stream_options",
            Member::MaxTokens => "max_tokens",
            Member::MaxCompletionTokens => "max_completion_tokens",
            Member::MaxOutputTokens => "max_output_tokens",
            Member::MaxOutputUnits => "max_output_units",
            Member::Choices => "n",
            Member::BestOf => "best_of",
            Member::Messages => "messages",
            Member::Prompt => "prompt",
            Member::Input => "input",
            Member::RequestId => "request_id",
            Member::Suffix => "suffix",
            Member::Instructions => "instructions",
            Member::System => "system",
            Member::Tools => "tools",
            Member::Functions => "functions",
        }
    }

    fn of(call: Call, name: &[u8]) -> Option<Member> {
        let member = match (call, name) {
            (_, b"model") => Member::Model,
            (_, b"stream") => Member::Stream,
            (Call::Chat | Call::Completions, b"stream_options") => Member::StreamOptions,
            (Call::Chat | Call::Completions | Call::Messages, b"max_tokens") => Member::MaxTokens,
            (Call::Chat, b"max_completion_tokens") => Member::MaxCompletionTokens,
            (Call::Responses, b"max_output_tokens") => Member::MaxOutputTokens,
            (Call::Native, b"max_output_units") => Member::MaxOutputUnits,
            (Call::Chat | Call::Completions, b"n") => Member::Choices,
            (Call::Completions, b"best_of") => Member::BestOf,
            (Call::Chat | Call::Messages | Call::CountTokens | Call::Native, b"messages") => {
                Member::Messages
            }
            (Call::Completions, b"prompt") => Member::Prompt,
            (Call::Embeddings | Call::Responses | Call::Native, b"input") => Member::Input,
            (Call::Native, b"request_id") => Member::RequestId,
            (Call::Completions, b"suffix") => Member::Suffix,
            (Call::Responses, b"instructions") => Member::Instructions,
            (Call::Messages | Call::CountTokens, b"system") => Member::System,
            (Call::Chat, b"functions") => Member::Functions,
            (Call::Chat | Call::Responses | Call::Messages | Call::CountTokens, b"tools") => {
                Member::Tools
            }
            _ => return None,
        };
        Some(member)
    }

    const fn is_text(self) -> bool {
        matches!(self, Member::Suffix | Member::Instructions | Member::System)
    }

    const fn is_prompt(self) -> bool {
        matches!(self, Member::Messages | Member::Prompt | Member::Input)
    }
}

/// A member of an object and where its value stands.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub member: Member,
    pub value: Range<usize>,
}

/// The inside of `stream_options`, where that is an object.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Offset just behind the last value, or behind the brace where it is empty.
    pub end: usize,
    pub empty: bool,
    pub include_usage: Option<Range<usize>>,
}

/// Why the members cannot be taken as they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Twice(&'static str),
    Unknown(String),
}

/// Reads the tokens of a whole body.
#[derive(Debug)]
pub(super) struct Members {
    call: Call,
    pub found: Vec<Found>,
    /// Offset just behind the last member's value.
    pub end: usize,
    pub is_object: bool,
    pub options: Option<Options>,
    pub estimator: Estimator,
    pub fault: Option<Fault>,
    depth: usize,
    member: Option<Member>,
    /// Where the current member's value begins.
    start: usize,
    /// Within `stream_options`: the current key is `include_usage`, whose value begins there.
    include_usage: bool,
    option_start: usize,
}

impl Members {
    pub fn new(call: Call) -> Members {
        Members {
            call,
            found: Vec::new(),
            end: 0,
            is_object: false,
            options: None,
            estimator: Estimator::new(matches!(call, Call::Completions | Call::Embeddings)),
            fault: None,
            depth: 0,
            member: None,
            start: 0,
            include_usage: false,
            option_start: 0,
        }
    }

    /// Where a member's value stands.
    pub fn value(&self, member: Member) -> Option<Range<usize>> {
        self.found
            .iter()
            .find(|found| found.member == member)
            .map(|found| found.value.clone())
    }

    fn top_key(&mut self, name: &[u8]) {
        self.member = Member::of(self.call, name);
        match self.member {
            Some(member) if self.value(member).is_some() => {
                self.fault.get_or_insert(Fault::Twice(member.name()));
            }
            None if self.call == Call::Native => {
                self.fault.get_or_insert_with(|| {
                    Fault::Unknown(String::from_utf8_lossy(name).into_owned())
                });
            }
            Some(_) | None => {}
        }
    }

    fn option_key(&mut self, name: &[u8]) {
        self.include_usage = name == b"include_usage";
        if let Some(options) = &mut self.options {
            options.empty = false;
            if self.include_usage && options.include_usage.is_some() {
                self.fault
                    .get_or_insert(Fault::Twice("stream_options.include_usage"));
            }
        }
    }

    /// A value has ended just before `end`, at the current depth.
    fn value_ends(&mut self, start: usize, end: usize) {
        match (self.depth, self.member) {
            (1, member) => {
                self.end = end;
                if let Some(member) = member {
                    self.member_ends(member, start..end);
                }
            }
            (2, Some(Member::StreamOptions)) => {
                if let Some(options) = &mut self.options {
                    options.end = end;
                    if self.include_usage {
                        options.include_usage = Some(start..end);
                    }
                }
            }
            _ => {}
        }
    }

    /// Text and tools only add to the estimate, however often they stand. Of the others one place each is kept.
    fn member_ends(&mut self, member: Member, value: Range<usize>) {
        if matches!(member, Member::Tools | Member::Functions) {
            self.estimator.spelled(value.len());
        } else if self.value(member).is_none() {
            self.found.push(Found { member, value });
        }
    }

    /// The estimator, where the current member is text.
    fn estimates(&mut self) -> Option<&mut Estimator> {
        let member = self.member?;
        (self.depth > 0 && (member.is_prompt() || member.is_text())).then_some(&mut self.estimator)
    }
}

impl Visitor for Members {
    fn key(&mut self, key: Str<'_>, at: usize) {
        match (self.depth, self.member) {
            (1, _) => key.named(|name| self.top_key(name)),
            (2, Some(Member::StreamOptions)) => key.named(|name| self.option_key(name)),
            _ => {
                if let Some(estimator) = self.estimates() {
                    estimator.key(key, at);
                }
            }
        }
    }

    fn string(&mut self, value: Str<'_>, at: usize) {
        if let Some(estimator) = self.estimates() {
            estimator.string(value, at);
        }
        self.value_ends(at, at + value.raw_len + 2);
    }

    fn bare(&mut self, raw: &[u8], at: usize) {
        if let Some(estimator) = self.estimates() {
            estimator.bare(raw, at);
        }
        self.value_ends(at, at + raw.len());
    }

    fn open(&mut self, kind: Kind, at: usize) {
        if let Some(estimator) = self.estimates() {
            estimator.open(kind, at);
        }
        match (self.depth, self.member) {
            (0, _) => self.is_object = kind == Kind::Object,
            (1, member) => {
                self.start = at;
                if member == Some(Member::StreamOptions) && kind == Kind::Object {
                    self.options = Some(Options {
                        end: at + 1,
                        empty: true,
                        include_usage: None,
                    });
                }
            }
            (2, _) => self.option_start = at,
            _ => {}
        }
        self.depth += 1;
    }

    fn close(&mut self, at: usize) {
        self.depth -= 1;
        if let Some(estimator) = self.estimates() {
            estimator.close(at);
        }
        match self.depth {
            1 => self.value_ends(self.start, at + 1),
            2 => self.value_ends(self.option_start, at + 1),
            _ => {}
        }
    }
}
