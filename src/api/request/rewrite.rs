//! The body that goes upstream: the client's bytes but for the few members the gateway decides.
//!
//! Spelling, order, duplicates and white space of everything else stay. Where nothing changes the very same bytes go.

use super::members::Options;
use super::parse::{CapPlace, OptionsPlace, Request};
use crate::api::call::Call;
use crate::api::errors::bytes_of;
use crate::budget::Units;
use crate::config::CapMember;
use bytes::Bytes;
use std::ops::Range;

const USAGE: &str = "\"include_usage\":true";

/// What the gateway decides of a request.
#[derive(Clone, Copy, Debug)]
pub struct Edits<'a> {
    /// The model's name upstream.
    pub model: &'a str,
    /// The largest cap that may go: a larger one is lowered, and where none stands it is added.
    pub cap: Option<Units>,
    /// How a chat cap is called where the request names none.
    pub cap_member: CapMember,
    /// Ask for the usage of a stream.
    pub include_usage: bool,
}

impl Request {
    /// The body that goes upstream, made from the one this was parsed from.
    pub fn upstream_body(&self, body: &Bytes, edits: &Edits<'_>) -> Bytes {
        if self.call == Call::Native {
            return Bytes::from(self.chat_body(body, edits));
        }
        let mut patches = Vec::new();
        self.patch_model(edits, &mut patches);
        self.patch_caps(edits, &mut patches);
        self.patch_usage(edits, &mut patches);
        patched(body, patches)
    }

    fn patch_model(&self, edits: &Edits<'_>, patches: &mut Vec<Patch>) {
        if edits.model != self.model {
            patches.push(Patch {
                place: self.places.model.clone(),
                text: quoted(edits.model),
            });
        }
    }

    fn patch_caps(&self, edits: &Edits<'_>, patches: &mut Vec<Patch>) {
        let (Some(most), Some(name)) = (edits.cap, self.cap_name(edits.cap_member)) else {
            return;
        };
        for place in &self.places.caps {
            if place.cap.is_some_and(|cap| cap > most) {
                patches.push(place.set(most));
            }
        }
        if self.cap.is_some() {
            return;
        }
        match self.places.caps.iter().find(|place| place.name == name) {
            Some(null) => patches.push(null.set(most)),
            None => patches.push(self.added(&format!("\"{name}\":{most}"))),
        }
    }

    /// How a cap of ours is called; nothing where the call knows none.
    fn cap_name(&self, chat: CapMember) -> Option<&'static str> {
        match self.call {
            Call::Chat | Call::Native => Some(match chat {
                CapMember::MaxTokens => "max_tokens",
                CapMember::MaxCompletionTokens => "max_completion_tokens",
            }),
            Call::Completions | Call::Messages => Some("max_tokens"),
            Call::Responses => Some("max_output_tokens"),
            Call::Embeddings | Call::CountTokens => None,
        }
    }

    fn patch_usage(&self, edits: &Edits<'_>, patches: &mut Vec<Patch>) {
        let applies = matches!(self.call, Call::Chat | Call::Completions);
        if !edits.include_usage || !self.stream || !applies || self.usage_asked {
            return;
        }
        patches.push(match &self.places.options {
            OptionsPlace::Absent => self.added(&format!("\"stream_options\":{{{USAGE}}}")),
            OptionsPlace::Null(place) => Patch {
                place: place.clone(),
                text: format!("{{{USAGE}}}"),
            },
            OptionsPlace::Object(options) => options.ask(),
        });
    }

    /// A member behind the last one.
    fn added(&self, member: &str) -> Patch {
        Patch {
            place: self.places.end..self.places.end,
            text: format!(",{member}"),
        }
    }

    /// The chat request that a native one stands for.
    fn chat_body(&self, body: &[u8], edits: &Edits<'_>) -> Vec<u8> {
        let raw = |place: &Option<Range<usize>>| place.clone().and_then(|place| body.get(place));
        let mut out = format!("{{\"model\":{},\"messages\":", quoted(edits.model)).into_bytes();
        if let Some(messages) = raw(&self.places.messages) {
            out.extend_from_slice(messages);
        } else {
            out.extend_from_slice(b"[{\"role\":\"user\",\"content\":");
            out.extend_from_slice(raw(&self.places.input).unwrap_or(b"\"\""));
            out.extend_from_slice(b"}]");
        }
        let cap = [self.cap, edits.cap].into_iter().flatten().min();
        if let (Some(cap), Some(name)) = (cap, self.cap_name(edits.cap_member)) {
            out.extend_from_slice(format!(",\"{name}\":{cap}").as_bytes());
        }
        out.extend_from_slice(format!(",\"stream\":{}", self.stream).as_bytes());
        if self.stream && edits.include_usage {
            out.extend_from_slice(format!(",\"stream_options\":{{{USAGE}}}").as_bytes());
        }
        out.push(b'}');
        out
    }
}

impl CapPlace {
    fn set(&self, cap: Units) -> Patch {
        Patch {
            place: self.value.clone(),
            text: cap.to_string(),
        }
    }
}

impl Options {
    /// The patch that asks for usage in options that do not.
    fn ask(&self) -> Patch {
        match &self.include_usage {
            Some(place) => Patch {
                place: place.clone(),
                text: "true".to_owned(),
            },
            None => Patch {
                place: self.end..self.end,
                text: format!("{}{USAGE}", if self.empty { "" } else { "," }),
            },
        }
    }
}

/// A place in the body and what stands there instead.
struct Patch {
    place: Range<usize>,
    text: String,
}

fn patched(body: &Bytes, mut patches: Vec<Patch>) -> Bytes {
    if patches.is_empty() {
        return body.clone();
    }
    // Stable: two members added at the same place keep their order.
    patches.sort_by_key(|patch| patch.place.start);
    let added: usize = patches.iter().map(|patch| patch.text.len()).sum();
    let mut out = Vec::with_capacity(body.len() + added);
    let mut at = 0;
    for patch in patches {
        out.extend_from_slice(body.get(at..patch.place.start).unwrap_or_default());
        out.extend_from_slice(patch.text.as_bytes());
        at = patch.place.end;
    }
    out.extend_from_slice(body.get(at..).unwrap_or_default());
    Bytes::from(out)
}

fn quoted(text: &str) -> String {
    String::from_utf8(bytes_of(&text)).unwrap_or_default()
}
