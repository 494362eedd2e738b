//! The same small answer in each API's own words, for what must hold of all of them.

use super::ask::Ask;
use super::config::Builder;
use super::engine::Engine;
use super::events;
use super::gateway::Gateway;
use serde_json::{Value, json};

/// An API that streams, as its client and its engine speak it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Chat,
    Completions,
    Responses,
    Messages,
    /// Its engine speaks chat.
    Native,
}

pub const ALL: [Dialect; 5] = [
    Dialect::Chat,
    Dialect::Completions,
    Dialect::Responses,
    Dialect::Messages,
    Dialect::Native,
];

/// Runs a test for every API, side by side.
pub fn each(test: impl Fn(Dialect) + Sync) {
    std::thread::scope(|scope| {
        for dialect in ALL {
            let test = &test;
            scope.spawn(move || test(dialect));
        }
    });
}

/// A gateway before one engine with a pool for each protocol, both with these lines.
#[track_caller]
pub fn gateway(engine: &Engine, lines: &str) -> Gateway {
    builder(engine, lines).start()
}

pub fn builder(engine: &Engine, lines: &str) -> Builder {
    let anthropic = format!(
        "[[pool]]\nname = \"a\"\nprotocol = \"anthropic\"\nmodels = [\"claude\"]\nbackends = [{{ addr = \"{}\" }}]\n{lines}",
        engine.addr()
    );
    Gateway::builder()
        .backend(engine.addr())
        .pool(lines)
        .extra(&anthropic)
}

impl Dialect {
    /// The API's name on the record.
    pub fn api(self) -> &'static str {
        match self {
            Dialect::Chat => "chat",
            Dialect::Completions => "completions",
            Dialect::Responses => "responses",
            Dialect::Messages => "messages",
            Dialect::Native => "native",
        }
    }

    pub fn pool(self) -> &'static str {
        if self == Dialect::Messages { "a" } else { "p" }
    }

    /// A streamed request.
    pub fn ask(self) -> Ask {
        let user = json!([{"role": "user", "content": "hello there"}]);
        let (path, doc) = match self {
            Dialect::Chat => (
                "/v1/chat/completions",
                json!({"model": "m", "messages": user, "max_tokens": 100, "stream": true}),
            ),
            Dialect::Completions => (
                "/v1/completions",
                json!({"model": "m", "prompt": "hello there", "max_tokens": 100, "stream": true}),
            ),
            Dialect::Responses => (
                "/v1/responses",
                json!({"model": "m", "input": "hello there", "max_output_tokens": 100, "stream": true}),
            ),
            Dialect::Messages => (
                "/v1/messages",
                json!({"model": "claude", "messages": user, "max_tokens": 100, "stream": true}),
            ),
            Dialect::Native => (
                "/generations",
                json!({"model": "m", "input": "hello there", "max_output_units": 100, "stream": true}),
            ),
        };
        Ask::post(path).json(doc)
    }

    /// What an engine sends before any output.
    pub fn preamble(self) -> Vec<u8> {
        match self {
            Dialect::Chat | Dialect::Native => events::event(
                &events::chunk(json!({"role": "assistant", "content": ""})).to_string(),
            ),
            Dialect::Completions => b": warming up\n\n".to_vec(),
            Dialect::Responses => {
                named(&json!({"type": "response.created", "response": {"id": "r1"}}))
            }
            Dialect::Messages => [
                named(&json!({"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 9, "output_tokens": 1}}})),
                named(&json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
            ]
            .concat(),
        }
    }

    /// One event with text.
    pub fn say(self, text: &str) -> Vec<u8> {
        match self {
            Dialect::Chat | Dialect::Native => events::delta(text),
            Dialect::Completions => events::event(
                &json!({"id": "c1", "object": "text_completion", "choices": [{"index": 0, "text": text}]}).to_string(),
            ),
            Dialect::Responses => named(
                &json!({"type": "response.output_text.delta", "item_id": "i1", "output_index": 0, "content_index": 0, "delta": text}),
            ),
            Dialect::Messages => named(
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
            ),
        }
    }

    /// The protocol's own end, which names no usage.
    pub fn end(self) -> Vec<u8> {
        match self {
            Dialect::Chat | Dialect::Native | Dialect::Completions => events::done(),
            Dialect::Responses => named(
                &json!({"type": "response.completed", "response": {"id": "r1", "status": "completed"}}),
            ),
            Dialect::Messages => named(&json!({"type": "message_stop"})),
        }
    }

    /// What a client finds in the protocol's own end.
    pub fn client_end(self) -> &'static [u8] {
        match self {
            Dialect::Chat | Dialect::Completions => b"[DONE]",
            Dialect::Responses => b"response.completed",
            Dialect::Messages => b"message_stop",
            Dialect::Native => b"event: completed",
        }
    }

    /// The engine's own error in the middle of its stream.
    pub fn error(self) -> Vec<u8> {
        match self {
            Dialect::Chat | Dialect::Native | Dialect::Completions => events::event(
                &json!({"error": {"message": "engine on fire", "type": "server_error", "code": 500}}).to_string(),
            ),
            Dialect::Responses => named(
                &json!({"type": "response.failed", "response": {"id": "r1", "status": "failed", "error": {"code": "server_error", "message": "engine on fire"}}}),
            ),
            Dialect::Messages => named(
                &json!({"type": "error", "error": {"type": "overloaded_error", "message": "engine on fire"}}),
            ),
        }
    }

    /// The texts that a client finds in a body.
    pub fn texts(self, body: &[u8]) -> Vec<String> {
        let place = match self {
            Dialect::Chat => "/choices/0/delta/content",
            Dialect::Completions => "/choices/0/text",
            Dialect::Responses => "/delta",
            Dialect::Messages => "/delta/text",
            Dialect::Native => "/text",
        };
        let text = |block: &String| {
            let text = events::data_of(block)?.pointer(place)?.as_str()?.to_owned();
            (!text.is_empty()).then_some(text)
        };
        events::blocks(body).iter().filter_map(text).collect()
    }

    /// The code of the error event that ends a failed stream in this API's form; fails where there is none, or where
    /// anything about it is not as its SDKs want it.
    #[track_caller]
    pub fn final_error(self, body: &[u8]) -> String {
        let told = String::from_utf8_lossy(body);
        assert!(
            body.ends_with(b"\n\n"),
            "{self:?}: the last event is not whole: {told}"
        );
        assert!(
            !events::is_done(body),
            "{self:?}: a failed stream says [DONE]: {told}"
        );
        let last = events::blocks(body).pop().unwrap_or_default();
        let name = events::field(&last, "event");
        let names: &[Option<&str>] = match self {
            Dialect::Chat | Dialect::Completions => &[None],
            Dialect::Responses | Dialect::Messages => &[Some("error")],
            Dialect::Native => &[Some("failed"), Some("cancelled")],
        };
        assert!(
            names.contains(&name.as_deref()),
            "{self:?}: the last event is {name:?}: {told}"
        );
        let data = events::data_of(&last).unwrap_or_default();
        if matches!(self, Dialect::Responses | Dialect::Messages) {
            assert_eq!(data["type"], "error", "{self:?}: {told}");
        }
        let code: &Value = &data["error"]["code"];
        assert!(data["error"]["message"].is_string(), "{self:?}: {told}");
        code.as_str()
            .unwrap_or_else(|| panic!("{self:?}: no error event at the end: {told}"))
            .to_owned()
    }
}

/// An event with the name that its `type` says, as the vendors send them.
pub fn named(data: &Value) -> Vec<u8> {
    let name = data["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}
