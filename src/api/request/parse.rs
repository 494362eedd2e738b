//! Reads a request's body: what the gateway must know of it, and whether it can be taken at all.

use super::estimate::InputSize;
use super::members::{Fault, Members, Member, Options};
use crate::api::call::Call;
use crate::api::code::Code;
use crate::api::errors::capped;
use crate::api::json::{Grammar, Number, Scanner, decoded};
use crate::budget::Units;
use crate::exchange::RequestId;
use serde::de::IgnoredAny;
use std::ops::Range;

/// Why a body is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub code: Code,
    /// The member at fault.
    pub param: Option<String>,
    pub message: String,
}

impl ParseError {
    fn of_member(name: &str, message: String) -> ParseError {
        ParseError {
            code: Code::InvalidRequest,
            param: Some(name.to_owned()),
            message,
        }
    }
}

/// What the gateway knows of a request. Offsets are into the body it was parsed from.
#[derive(Clone, Debug)]
pub struct Request {
    pub call: Call,
    /// The model's public name.
    pub model: String,
    pub stream: bool,
    /// The smallest cap the request names.
    pub cap: Option<Units>,
    /// Answers that are made, each up to the cap: `n`, or `best_of`, for each prompt.
    pub choices: u64,
    /// The client asked for the usage of a stream.
    pub usage_asked: bool,
    pub input: InputSize,
    /// The native API's member of that name.
    pub request_id: Option<RequestId>,
    /// Where `messages`, `prompt` or `input` stands.
    pub prompt: Option<Range<usize>>,
    pub(super) places: Places,
}

/// Where the members stand that are edited.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub model: Range<usize>,
    pub caps: Vec<CapPlace>,
    pub options: OptionsPlace,
    /// Just behind the last member's value.
    pub end: usize,
    pub messages: Option<Range<usize>>,
    pub input: Option<Range<usize>>,
}

#[derive(Clone, Debug)]
pub(super) struct CapPlace {
    pub name: &'static str,
    pub value: Range<usize>,
    pub cap: Option<Units>,
}

#[derive(Clone, Debug)]
pub(super) enum OptionsPlace {
    Absent,
    Null(Range<usize>),
    Object(Options),
}

impl Request {
    pub fn parse(call: Call, body: &[u8]) -> Result<Request, ParseError> {
        let reader = Reader {
            call,
            body,
            members: read(call, body)?,
        };
        let model = reader.model()?;
        let stream = reader.boolean(Member::Stream)?.unwrap_or(false);
        let (options, usage_asked) = reader.stream_options()?;
        let places = Places {
            model: reader.members.value(Member::Model).unwrap_or_default(),
            caps: reader.caps()?,
            options,
            end: reader.members.end,
            messages: reader.members.value(Member::Messages),
            input: reader.members.value(Member::Input),
        };
        reader.check_native()?;
        Ok(Request {
            call,
            model,
            stream,
            cap: places.caps.iter().filter_map(|place| place.cap).min(),
            choices: reader.choices()?,
            usage_asked: usage_asked && stream,
            input: reader.input(),
            request_id: reader.request_id()?,
            prompt: reader.prompt(),
            places,
        })
    }

    /// The input's price with a pool's `bytes_per_unit`. Counting tokens runs no model and costs nothing.
    pub fn input_estimate(&self, bytes_per_unit: u64) -> Units {
        self.input.estimate(bytes_per_unit)
    }

    /// The output that is reserved for each answer asked for: the cap the request names or the tenant's, the smaller
    /// one, or the default where there is neither.
    pub fn output_reserve(&self, limit: Option<Units>, default: Units) -> Units {
        let cap = [self.cap, limit].into_iter().flatten().min();
        let cap = cap.unwrap_or(default);
        if self.call.generates() {
            Units(cap.0.saturating_mul(self.choices))
        } else {
            Units::ZERO
        }
    }
}

/// The members of a body that is one JSON object.
fn read(call: Call, body: &[u8]) -> Result<Members, ParseError> {
    let mut members = Members::new(call);
    let mut scanner = Scanner::new(Grammar::Strict);
    let text = std::str::from_utf8(body).map_err(|e| not_json(&e))?;
    scanner.feed(text.as_bytes(), &mut members);
    if !scanner.finish(&mut members) {
        // Read once more by the parser that says where the fault is.
        return Err(match serde_json::from_slice::<IgnoredAny>(body) {
            Err(e) => not_json(&e),
            Ok(_) => not_json(&"nested too deep"),
        });
    }
    if !members.is_object {
        return Err(ParseError {
            code: Code::InvalidRequest,
            param: None,
            message: "the body is JSON but no object; send an object with a \"model\"".to_owned(),
        });
    }
    match members.fault.take() {
        None => Ok(members),
        Some(Fault::Twice(name)) => Err(ParseError::of_member(
            name,
            format!("{name} stands twice; give it once"),
        )),
        Some(Fault::Unknown(name)) => {
            let name = capped(&name).into_owned();
            let message = format!(
                "{name} is no member of this call; it takes model, input or messages, max_output_units, stream, request_id"
            );
            Err(ParseError::of_member(&name, message))
        }
    }
}

fn not_json(why: &impl std::fmt::Display) -> ParseError {
    ParseError {
        code: Code::InvalidJson,
        param: None,
        message: format!("the body is not JSON: {why}"),
    }
}

/// The members with the bytes they stand in.
struct Reader<'a> {
    call: Call,
    body: &'a [u8],
    members: Members,
}

impl Reader<'_> {
    fn raw(&self, member: Member) -> Option<&[u8]> {
        self.body.get(self.members.value(member)?)
    }

    fn model(&self) -> Result<String, ParseError> {
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

    fn boolean(&self, member: Member) -> Result<Option<bool>, ParseError> {
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

    fn caps(&self) -> Result<Vec<CapPlace>, ParseError> {
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

    fn choices(&self) -> Result<u64, ParseError> {
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
    fn stream_options(&self) -> Result<(OptionsPlace, bool), ParseError> {
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

    fn input(&self) -> InputSize {
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

    fn prompt(&self) -> Option<Range<usize>> {
        [Member::Messages, Member::Prompt, Member::Input]
            .into_iter()
            .find_map(|member| self.members.value(member))
    }

    fn request_id(&self) -> Result<Option<RequestId>, ParseError> {
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
    fn check_native(&self) -> Result<(), ParseError> {
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
