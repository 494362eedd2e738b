//! The values of the members the gateway reads: their types checked, their defaults filled in.

use super::estimate::InputSize;
use super::members::{Member, Members};
use super::parse::{CapPlace, OptionsPlace, ParseError};
use crate::api::call::Call;
use crate::api::code::Code;
use crate::api::json::{Number, decoded};
use crate::budget::Units;
use crate::record::RequestId;
use std::ops::Range;

/// The members with the bytes they stand in.
pub(super) struct Values<'a> {
    pub call: Call,
    pub body: &'a [u8],
    pub members: Members,
}

impl Values<'_> {
    fn raw(&self, member: Member) -> Option<&[u8]> {
        self.body.get(self.members.value(member)?)
    }

    pub fn model(&self) -> Result<String, ParseError> {
        let wrong = |message: &str| Err(ParseError::of_member("model", message.to_owned()));
        let Some(raw) = self.raw(Member::Model) else {
            return wrong("the request names no model; give \"model\"");
        };
        match string(raw) {
            Some(model) if model.is_empty() => wrong("model is empty; name one of GET /v1/models"),
            Some(model) => Ok(model),
            None => wrong("model is no string; give the model's name"),
        }
    }

    pub fn boolean(&self, member: Member) -> Result<Option<bool>, ParseError> {
        match self.raw(member) {
            None => Ok(None),
            Some(b"true") => Ok(Some(true)),
            Some(b"false") => Ok(Some(false)),
            Some(raw) => Err(self.wrong(member.name(), raw, "give true or false")),
        }
    }

    /// A whole number from 1; null stands for none.
    fn count(&self, member: Member) -> Result<Option<Units>, ParseError> {
        let Some(raw) = self.raw(member).filter(|raw| *raw != b"null") else {
            return Ok(None);
        };
        match Number::of(raw) {
            Some(Number::Whole(value @ 1..)) if Units(value) <= Units::BELIEVABLE_MAX => {
                Ok(Some(Units(value)))
            }
            _ => {
                let ask = format!("give a whole number from 1 to {}", Units::BELIEVABLE_MAX);
                Err(self.wrong(member.name(), raw, &ask))
            }
        }
    }

    pub fn caps(&self) -> Result<Vec<CapPlace>, ParseError> {
        let members = [
            Member::MaxTokens,
            Member::MaxCompletionTokens,
            Member::MaxOutputTokens,
            Member::MaxOutputUnits,
        ];
        let mut caps = Vec::new();
        for member in members {
            if let Some(value) = self.members.value(member) {
                caps.push(CapPlace {
                    name: member.name(),
                    value,
                    cap: self.count(member)?,
                });
            }
        }
        Ok(caps)
    }

    pub fn choices(&self) -> Result<u64, ParseError> {
        let n = self.count(Member::Choices)?.map_or(1, |n| n.0);
        let made = self.count(Member::BestOf)?.map_or(n, |best| best.0.max(n));
        let prompts = match self.call {
            Call::Completions => self.members.estimator.items.max(1),
            Call::Chat
            | Call::Embeddings
            | Call::Responses
            | Call::Messages
            | Call::CountTokens
            | Call::Native => 1,
        };
        Ok(made.saturating_mul(prompts))
    }

    /// Where the options stand, and whether they ask for usage.
    pub fn stream_options(&self) -> Result<(OptionsPlace, bool), ParseError> {
        let Some(place) = self.members.value(Member::StreamOptions) else {
            return Ok((OptionsPlace::Absent, false));
        };
        let raw = self.raw(Member::StreamOptions).unwrap_or_default();
        let Some(options) = &self.members.options else {
            return match raw {
                b"null" => Ok((OptionsPlace::Null(place), false)),
                _ => Err(self.wrong("stream_options", raw, "give an object or null")),
            };
        };
        let include_usage = options.include_usage.clone();
        let asked = match include_usage.and_then(|range| self.body.get(range)) {
            None | Some(b"null" | b"false") => false,
            Some(b"true") => true,
            Some(raw) => {
                let name = "stream_options.include_usage";
                return Err(self.wrong(name, raw, "give true or false"));
            }
        };
        Ok((OptionsPlace::Object(options.clone()), asked))
    }

    pub fn input(&self) -> InputSize {
        match self.call {
            Call::CountTokens => InputSize::default(),
            Call::Chat
            | Call::Completions
            | Call::Embeddings
            | Call::Responses
            | Call::Messages
            | Call::Native => self.members.estimator.size,
        }
    }

    pub fn prompt(&self) -> Option<Range<usize>> {
        [Member::Messages, Member::Prompt, Member::Input]
            .into_iter()
            .find_map(|member| self.members.value(member))
    }

    pub fn request_id(&self) -> Result<Option<RequestId>, ParseError> {
        let Some(raw) = self.raw(Member::RequestId).filter(|raw| *raw != b"null") else {
            return Ok(None);
        };
        match string(raw).and_then(|text| RequestId::parse(&text)) {
            Some(id) => Ok(Some(id)),
            None => Err(ParseError {
                code: Code::InvalidRequestId,
                ..self.wrong("request_id", raw, "give 1 to 128 of A-Za-z0-9._:-")
            }),
        }
    }

    /// What only the native API asks for: one of `input`, a string, and `messages`, an array.
    pub fn check_native(&self) -> Result<(), ParseError> {
        if self.call != Call::Native {
            return Ok(());
        }
        match (self.raw(Member::Input), self.raw(Member::Messages)) {
            (Some([b'"', ..]), None) | (None, Some([b'[', ..])) => Ok(()),
            (Some(raw), None) => Err(self.wrong("input", raw, "give a string, or messages")),
            (None, Some(raw)) => Err(self.wrong("messages", raw, "give an array of messages")),
            (None, None) => Err(ParseError::of_member(
                "input",
                "the request has no input; give input or messages".to_owned(),
            )),
            (Some(_), Some(_)) => Err(ParseError::of_member(
                "input",
                "input and messages stand both; give one of them".to_owned(),
            )),
        }
    }

    fn wrong(&self, name: &str, raw: &[u8], ask: &str) -> ParseError {
        let value = String::from_utf8_lossy(raw);
        let message = format!("{name} is {}; {ask}", short(&value));
        ParseError::of_member(name, message)
    }
}

/// A value as an error quotes it.
fn short(value: &str) -> String {
    const CHARS: usize = 40;
    match value.char_indices().nth(CHARS) {
        None => value.to_owned(),
        Some((end, _)) => format!("{}…", value.get(..end).unwrap_or_default()),
    }
}

/// The text of a raw value, where it is a string that stands for one.
fn string(raw: &[u8]) -> Option<String> {
    decoded(raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?)
}
