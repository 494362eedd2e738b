//! Error documents and error events in each API's own shape.

use super::code::Code;
use crate::record::Api;
use bytes::Bytes;
use serde::Serialize;
use std::borrow::Cow;

/// Characters of a message or a field's name that reach a client: both may quote what the client sent.
const TEXT_MAX: usize = 500;

/// What a client is told.
#[derive(Clone, Copy, Debug)]
pub struct Fault<'a> {
    pub code: Code,
    pub message: &'a str,
    /// The request's member at fault.
    pub param: Option<&'a str>,
    pub request_id: &'a str,
}

/// The body of an error answer.
pub fn document(api: Api, fault: &Fault<'_>) -> Bytes {
    Bytes::from(json(api, fault))
}

/// The event that ends a stream which failed after something was shown. Only native events are numbered.
pub fn stream_event(api: Api, fault: &Fault<'_>, number: u64) -> Bytes {
    let mut out = match api {
        Api::Chat | Api::Completions | Api::Embeddings => Vec::new(),
        Api::Responses | Api::Messages => b"event: error\n".to_vec(),
        Api::Native => {
            let name = if fault.code == Code::Cancelled {
                "cancelled"
            } else {
                "failed"
            };
            format!("id: {number}\nevent: {name}\n").into_bytes()
        }
    };
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(&match api {
        Api::Responses => responses_event(fault),
        Api::Native => native_event(fault),
        Api::Chat | Api::Completions | Api::Embeddings | Api::Messages => json(api, fault),
    });
    out.extend_from_slice(b"\n\n");
    Bytes::from(out)
}

#[derive(Serialize)]
struct OpenAiDocument<'a> {
    error: OpenAiError<'a>,
}

#[derive(Serialize)]
struct OpenAiError<'a> {
    message: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<Cow<'a, str>>,
    code: &'static str,
}

#[derive(Serialize)]
struct AnthropicDocument<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: AnthropicError<'a>,
    request_id: &'a str,
}

#[derive(Serialize)]
struct AnthropicError<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: Cow<'a, str>,
    code: &'static str,
}

/// The `error` event of the Responses API carries its members itself; the error object stands beside them for clients
/// that look for one in any stream.
#[derive(Serialize)]
struct ResponsesEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    code: &'static str,
    message: Cow<'a, str>,
    param: Option<Cow<'a, str>>,
    error: OpenAiError<'a>,
}

#[derive(Serialize)]
struct NativeEvent<'a> {
    request_id: &'a str,
    error: OpenAiError<'a>,
}

fn json(api: Api, fault: &Fault<'_>) -> Vec<u8> {
    match api {
        Api::Messages => bytes_of(&AnthropicDocument {
            kind: "error",
            error: AnthropicError {
                kind: fault.code.kind(api),
                message: capped(fault.message),
                code: fault.code.as_str(),
            },
            request_id: fault.request_id,
        }),
        Api::Chat | Api::Completions | Api::Embeddings | Api::Responses | Api::Native => {
            bytes_of(&OpenAiDocument {
                error: openai(fault),
            })
        }
    }
}

fn responses_event(fault: &Fault<'_>) -> Vec<u8> {
    bytes_of(&ResponsesEvent {
        kind: "error",
        code: fault.code.as_str(),
        message: capped(fault.message),
        param: fault.param.map(capped),
        error: openai(fault),
    })
}

fn native_event(fault: &Fault<'_>) -> Vec<u8> {
    bytes_of(&NativeEvent {
        request_id: fault.request_id,
        error: openai(fault),
    })
}

fn openai<'a>(fault: &Fault<'a>) -> OpenAiError<'a> {
    OpenAiError {
        message: capped(fault.message),
        kind: fault.code.kind(Api::Chat),
        param: fault.param.map(capped),
        code: fault.code.as_str(),
    }
}

/// A document of strings: writing it cannot fail, and an empty object tells no lie if it ever did.
pub(super) fn bytes_of(document: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_else(|_| b"{}".to_vec())
}

/// The text, cut where a client's own words would make it long.
pub(super) fn capped(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(TEXT_MAX) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(message: &str) -> Fault<'_> {
        Fault {
            code: Code::InvalidRequest,
            message,
            param: Some("model"),
            request_id: "r-1",
        }
    }

    #[test]
    fn documents_have_the_shape_of_their_api() {
        assert_eq!(
            document(Api::Chat, &fault("no model")),
            r#"{"error":{"message":"no model","type":"invalid_request_error","param":"model","code":"invalid_request"}}"#
        );
        assert_eq!(
            document(Api::Messages, &fault("no model")),
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"no model","code":"invalid_request"},"request_id":"r-1"}"#
        );
        assert_eq!(
            document(Api::Native, &fault("x")),
            document(Api::Chat, &fault("x"))
        );
    }

    #[test]
    fn events_have_the_shape_of_their_api() {
        assert_eq!(
            stream_event(Api::Chat, &fault("a"), 1),
            "data: {\"error\":{\"message\":\"a\",\"type\":\"invalid_request_error\",\"param\":\"model\",\"code\":\"invalid_request\"}}\n\n"
        );
        let anthropic = stream_event(Api::Messages, &fault("a"), 1);
        assert!(anthropic.starts_with(b"event: error\ndata: {\"type\":\"error\",\"error\":{"));
        let responses = stream_event(Api::Responses, &fault("a"), 1);
        assert!(
            responses.starts_with(
                b"event: error\ndata: {\"type\":\"error\",\"code\":\"invalid_request\""
            )
        );
        let native = stream_event(Api::Native, &fault("a"), 7);
        assert!(
            native.starts_with(b"id: 7\nevent: failed\ndata: {\"request_id\":\"r-1\",\"error\":{")
        );
        let gone = Fault {
            code: Code::Cancelled,
            ..fault("a")
        };
        assert!(stream_event(Api::Native, &gone, 8).starts_with(b"id: 8\nevent: cancelled\n"));
    }

    #[test]
    fn what_a_client_sent_cannot_break_out_of_its_string() {
        for api in Api::ALL {
            let evil = "m\r\n\r\ndata: [DONE]\"}\u{1b}\u{0}\u{2028}";
            let event = stream_event(*api, &fault(evil), 1);
            let text = std::str::from_utf8(&event).unwrap();
            assert_eq!(text.matches("\n\n").count(), 1, "{api}");
            assert!(!text.contains('\r') && !text.contains('\u{1b}'), "{api}");
            let data = text.lines().find_map(|l| l.strip_prefix("data: ")).unwrap();
            let value: serde_json::Value = serde_json::from_str(data).unwrap();
            assert_eq!(value["error"]["message"], evil, "{api}");
        }
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let long = "北".repeat(5000);
        let text = capped(&long);
        assert_eq!(text.chars().count(), TEXT_MAX + 1);
        assert!(text.ends_with("北…"));
    }
}
