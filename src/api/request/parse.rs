//! Reads a request's body: what the gateway must know of it, and whether it can be taken at all.

use super::estimate::InputSize;
use super::members::{Fault, Member, Members, Options};
use super::values::Values;
use crate::api::call::Call;
use crate::api::code::Code;
use crate::api::errors::capped;
use crate::api::json::{Grammar, Scanner};
use crate::budget::Units;
use crate::record::RequestId;
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
    pub(super) fn of_member(name: &str, message: String) -> ParseError {
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
        let values = Values {
            call,
            body,
            members: read(call, body)?,
        };
        let model = values.model()?;
        let stream = values.boolean(Member::Stream)?.unwrap_or(false);
        let (options, usage_asked) = values.stream_options()?;
        let places = Places {
            model: values.members.value(Member::Model).unwrap_or_default(),
            caps: values.caps()?,
            options,
            end: values.members.end,
            messages: values.members.value(Member::Messages),
            input: values.members.value(Member::Input),
        };
        values.check_native()?;
        Ok(Request {
            call,
            model,
            stream,
            cap: places.caps.iter().filter_map(|place| place.cap).min(),
            choices: values.choices()?,
            usage_asked: usage_asked && stream,
            input: values.input(),
            request_id: values.request_id()?,
            prompt: values.prompt(),
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

    /// The member that bounds the output: of those the request names the one that counts, else the one its call has;
    /// nothing where there is no output.
    pub fn cap_member(&self) -> Option<&'static str> {
        let named = self.places.caps.iter().filter(|place| place.cap.is_some());
        let name = named.min_by_key(|place| place.cap).map(|place| place.name);
        self.call.generates().then(|| {
            name.unwrap_or(match self.call {
                Call::Responses => "max_output_tokens",
                Call::Native => "max_output_units",
                Call::Chat
                | Call::Completions
                | Call::Messages
                | Call::Embeddings
                | Call::CountTokens => "max_tokens",
            })
        })
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
