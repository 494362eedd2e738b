//! The native API's answers, made from those of a chat backend: numbered events, or one JSON document.

use super::errors::{Fault, bytes_of, stream_event};
use super::meter::Totals;
use crate::budget::Units;
use crate::record::Api;
use serde::Serialize;
use serde_json::Value;

/// Bytes of an event that is converted; a larger one is not.
pub(super) const EVENT_MAX: usize = 1024 * 1024;

/// Bytes of a whole answer that is converted; a larger one is not.
pub(super) const BODY_MAX: usize = 8 * 1024 * 1024;

/// What the events say of the request itself.
#[derive(Clone, Debug)]
pub struct About {
    pub request_id: String,
    /// The public name.
    pub model: String,
    /// Told as the input where the upstream names none.
    pub input_estimate: Units,
}

/// Writes the events of one stream, numbered from 1.
#[derive(Debug)]
pub(super) struct Writer {
    about: About,
    number: u64,
    started: bool,
    completed: bool,
    finish_reason: Option<String>,
    out: Vec<u8>,
}

#[derive(Serialize)]
struct Started<'a> {
    request_id: &'a str,
    model: &'a str,
}

#[derive(Serialize)]
struct Delta {
    text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reasoning: String,
}

#[derive(Serialize)]
struct Completed<'a> {
    request_id: &'a str,
    finish_reason: Option<&'a str>,
    usage: UsageDocument,
}

#[derive(Serialize)]
struct Document<'a> {
    request_id: &'a str,
    model: &'a str,
    #[serde(flatten)]
    made: Delta,
    finish_reason: Option<&'a str>,
    usage: UsageDocument,
}

#[derive(Serialize)]
struct UsageDocument {
    input_units: Units,
    generated_units: Units,
}

impl Writer {
    pub fn new(about: About) -> Writer {
        Writer {
            about,
            number: 0,
            started: false,
            completed: false,
            finish_reason: None,
            out: Vec::new(),
        }
    }

    /// A chunk of the chat stream; `content`: it holds output.
    pub fn chunk(&mut self, data: &[u8], content: bool) {
        if self.completed {
            return;
        }
        self.start();
        let Ok(chunk) = serde_json::from_slice::<Value>(data) else {
            return;
        };
        self.note_finish(&chunk);
        if content {
            self.event("delta", &made(&chunk, "delta"));
        }
    }

    /// The chat stream's own end.
    pub fn complete(&mut self, totals: &Totals) {
        if std::mem::replace(&mut self.completed, true) {
            return;
        }
        self.start();
        let about = self.about.clone();
        let reason = self.finish_reason.take();
        self.event(
            "completed",
            &Completed {
                request_id: &about.request_id,
                finish_reason: reason.as_deref(),
                usage: usage(&about, totals),
            },
        );
    }

    /// The event that ends a stream which failed.
    pub fn failed(&mut self, fault: &Fault<'_>) -> Vec<u8> {
        self.number += 1;
        self.out
            .extend_from_slice(&stream_event(Api::Native, fault, self.number));
        self.take()
    }

    /// The one document that stands for a whole chat answer; nothing where that was none.
    pub fn document(&mut self, answer: &[u8], totals: &Totals) -> Vec<u8> {
        let Ok(answer) = serde_json::from_slice::<Value>(answer) else {
            return Vec::new();
        };
        self.note_finish(&answer);
        bytes_of(&Document {
            request_id: &self.about.request_id,
            model: &self.about.model,
            made: made(&answer, "message"),
            finish_reason: self.finish_reason.as_deref(),
            usage: usage(&self.about, totals),
        })
    }

    /// What has been written since it was last taken.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let about = self.about.clone();
        self.event(
            "started",
            &Started {
                request_id: &about.request_id,
                model: &about.model,
            },
        );
    }

    fn event(&mut self, name: &str, data: &impl Serialize) {
        self.number += 1;
        let head = format!("id: {}\nevent: {name}\ndata: ", self.number);
        self.out.extend_from_slice(head.as_bytes());
        self.out.extend_from_slice(&bytes_of(data));
        self.out.extend_from_slice(b"\n\n");
    }

    fn note_finish(&mut self, document: &Value) {
        let reason = document
            .pointer("/choices/0/finish_reason")
            .and_then(Value::as_str)
            .filter(|reason| !reason.is_empty());
        if let Some(reason) = reason {
            self.finish_reason = Some(reason.to_owned());
        }
    }
}

fn usage(about: &About, totals: &Totals) -> UsageDocument {
    UsageDocument {
        input_units: totals.input.unwrap_or(about.input_estimate),
        generated_units: totals.generated,
    }
}

/// The output in the first choice's `delta` or `message`.
fn made(document: &Value, member: &str) -> Delta {
    let message = document
        .pointer("/choices/0")
        .and_then(|choice| choice.get(member));
    let text = |name: &str| message.and_then(|message| message.get(name)).map(plain);
    Delta {
        text: text("content")
            .filter(|text| !text.is_empty())
            .or_else(|| text("refusal"))
            .unwrap_or_default(),
        reasoning: text("reasoning_content")
            .filter(|text| !text.is_empty())
            .or_else(|| text("reasoning"))
            .unwrap_or_default(),
    }
}

/// The text of a string, or of a list of parts.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Value::as_str))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
