//! What a request asks for, read from its JSON body. Pure.

use super::words::{Count, Words};
use serde::Deserialize;

/// Tokens made where the request names no cap.
const TOKENS_DEFAULT: u32 = 16;
const TOKENS_MAX: u64 = 1_000_000_000;
/// The cap of answers whose whole text is held: documents, and the responses API, which repeats it at the end.
const TOKENS_HELD_MAX: u32 = 1_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    Chat,
    Completions,
    Responses,
    Embeddings,
    Messages,
    CountTokens,
}

impl Api {
    pub fn of_path(path: &str) -> Option<Api> {
        match path {
            "/v1/chat/completions" => Some(Api::Chat),
            "/v1/completions" => Some(Api::Completions),
            "/v1/responses" => Some(Api::Responses),
            "/v1/embeddings" => Some(Api::Embeddings),
            "/v1/messages" => Some(Api::Messages),
            "/v1/messages/count_tokens" => Some(Api::CountTokens),
            _ => None,
        }
    }
}

/// A request that can be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub api: Api,
    /// As the request names it; the caller fills in the engine's own where it names none.
    pub model: Option<String>,
    pub stream: bool,
    /// The words of all its text.
    pub prompt_tokens: u64,
    pub output_tokens: u32,
    pub usage: Usage,
    /// Texts to embed.
    pub inputs: usize,
    /// Embeddings as base64, not as numbers.
    pub base64: bool,
}

/// Where an OpenAI stream says its usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Never,
    AtTheEnd,
    /// In every chunk, and at the end.
    Always,
}

#[derive(Deserialize)]
struct Body {
    model: Option<String>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<Count>,
    max_completion_tokens: Option<Count>,
    max_output_tokens: Option<Count>,
    n: Option<Count>,
    messages: Option<Words>,
    system: Option<Words>,
    prompt: Option<Words>,
    input: Option<Words>,
    instructions: Option<Words>,
    encoding_format: Option<String>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
    continuous_usage_stats: Option<bool>,
}

impl Job {
    /// Reads a request's body. The message says what is wrong with it.
    pub fn read(api: Api, body: &[u8]) -> Result<Job, String> {
        let blank = |b: &&u8| !matches!(b, b' ' | b'\t' | b'\r' | b'\n');
        if body.iter().find(blank) != Some(&b'{') {
            return Err("the body is not a JSON object".to_owned());
        }
        let body: Body =
            serde_json::from_slice(body).map_err(|e| format!("the body cannot be read: {e}"))?;
        let main = body.main_text(api)?;
        if body.n.is_some_and(|n| n.0 != 1) {
            return Err("n must be 1; the simulator makes one choice".to_owned());
        }
        let job = Job {
            api,
            prompt_tokens: main.words.saturating_add(body.other_text(api)),
            output_tokens: body.output_tokens(api)?,
            inputs: main.texts,
            usage: body.stream_options.map_or(Usage::Never, |o| o.usage()),
            base64: body.encoding_format.as_deref() == Some("base64"),
            model: body.model,
            stream: body.stream.unwrap_or(false) && api.streams(),
        };
        job.check_held()?;
        Ok(job)
    }

    fn check_held(&self) -> Result<(), String> {
        let held = !self.stream || self.api == Api::Responses;
        if held && self.output_tokens > TOKENS_HELD_MAX {
            return Err(format!(
                "the output is capped at {} tokens; a whole document has at most {TOKENS_HELD_MAX}, stream a longer one",
                self.output_tokens
            ));
        }
        Ok(())
    }
}

impl Api {
    fn streams(self) -> bool {
        match self {
            Api::Chat | Api::Completions | Api::Responses | Api::Messages => true,
            Api::Embeddings | Api::CountTokens => false,
        }
    }
}

impl Body {
    fn main_text(&self, api: Api) -> Result<Words, String> {
        let (name, text) = match api {
            Api::Chat | Api::Messages | Api::CountTokens => ("messages", self.messages),
            Api::Completions => ("prompt", self.prompt),
            Api::Responses | Api::Embeddings => ("input", self.input),
        };
        let text = text.ok_or_else(|| format!("{name} is missing"))?;
        if name == "messages" && !text.is_list {
            return Err("messages must be a list".to_owned());
        }
        Ok(text)
    }

    fn other_text(&self, api: Api) -> u64 {
        let other = match api {
            Api::Messages | Api::CountTokens => self.system,
            Api::Responses => self.instructions,
            Api::Chat | Api::Completions | Api::Embeddings => None,
        };
        other.map_or(0, |text| text.words)
    }

    /// The cap the request names; of two the smaller.
    fn output_tokens(&self, api: Api) -> Result<u32, String> {
        let named = match api {
            Api::Chat => [
                ("max_tokens", self.max_tokens),
                ("max_completion_tokens", self.max_completion_tokens),
            ],
            Api::Completions | Api::Messages => [("max_tokens", self.max_tokens), ("", None)],
            Api::Responses => [("max_output_tokens", self.max_output_tokens), ("", None)],
            Api::Embeddings | Api::CountTokens => return Ok(0),
        };
        let mut least = None;
        for (name, cap) in named {
            if let Some(cap) = cap {
                let cap = cap_of(name, cap)?;
                least = Some(least.map_or(cap, |other: u32| other.min(cap)));
            }
        }
        Ok(least.unwrap_or(TOKENS_DEFAULT))
    }
}

impl StreamOptions {
    fn usage(&self) -> Usage {
        match (self.include_usage, self.continuous_usage_stats) {
            (Some(true), Some(true)) => Usage::Always,
            (Some(true), _) => Usage::AtTheEnd,
            (Some(false) | None, _) => Usage::Never,
        }
    }
}

fn cap_of(name: &str, cap: Count) -> Result<u32, String> {
    let fits = (1..=TOKENS_MAX).contains(&cap.0);
    match u32::try_from(cap.0) {
        Ok(tokens) if fits => Ok(tokens),
        _ => Err(format!("{name} is {}; it must be 1 to {TOKENS_MAX}", cap.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(api: Api, body: &str) -> Result<Job, String> {
        Job::read(api, body.as_bytes())
    }

    fn prompt_tokens(api: Api, body: &str) -> u64 {
        read(api, body).expect(body).prompt_tokens
    }

    #[test]
    fn a_prompts_tokens_are_the_words_of_all_its_text() {
        for (api, body, words) in [
            (
                Api::Chat,
                r#"{"messages":[{"role":"user","content":"hello there"}]}"#,
                2,
            ),
            (
                Api::Chat,
                r#"{"messages":[{"role":"system","content":"be  kind\n"},{"role":"user","content":[{"type":"text","text":"one two"},{"type":"image_url","image_url":{"url":"a b"}}]},{"role":"assistant","content":null}]}"#,
                4,
            ),
            (Api::Completions, r#"{"prompt":["a b","c"]}"#, 3),
            (Api::Completions, r#"{"prompt":[[1,2],[3]]}"#, 3),
            (
                Api::Messages,
                r#"{"system":[{"type":"text","text":"a b"}],"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"c"}]}]}]}"#,
                3,
            ),
            (
                Api::CountTokens,
                r#"{"system":"a","messages":[{"content":"b \u0063"}]}"#,
                3,
            ),
            (
                Api::Responses,
                r#"{"instructions":"a","input":[{"role":"user","content":[{"type":"input_text","text":"b c"}]}]}"#,
                3,
            ),
            (Api::Embeddings, r#"{"input":["a b","c"]}"#, 3),
        ] {
            assert_eq!(prompt_tokens(api, body), words, "{body}");
        }
    }

    #[test]
    fn the_smallest_cap_named_counts_and_none_gives_the_default() {
        for (api, members, tokens) in [
            (Api::Chat, r#""max_tokens":7"#, 7),
            (Api::Chat, r#""max_completion_tokens":8"#, 8),
            (Api::Chat, r#""max_tokens":7,"max_completion_tokens":5"#, 5),
            (Api::Chat, r#""max_tokens":null"#, 16),
            (Api::Chat, r#""max_tokens":1e3"#, 1000),
            (Api::Messages, r#""max_tokens":100.0"#, 100),
            (
                Api::Chat,
                r#""stream":true,"max_tokens":1000000000"#,
                1_000_000_000,
            ),
        ] {
            let body = format!(r#"{{"messages":[],{members}}}"#);
            assert_eq!(
                read(api, &body).expect(&body).output_tokens,
                tokens,
                "{body}"
            );
        }
        let body = r#"{"input":"a","max_output_tokens":3}"#;
        assert_eq!(read(Api::Responses, body).map(|j| j.output_tokens), Ok(3));
    }

    #[test]
    fn usage_comes_as_the_stream_options_ask() {
        for (options, usage) in [
            ("{}", Usage::Never),
            ("null", Usage::Never),
            (
                r#"{"include_usage":false,"continuous_usage_stats":true}"#,
                Usage::Never,
            ),
            (r#"{"include_usage":true,"odd":1}"#, Usage::AtTheEnd),
            (
                r#"{"include_usage":true,"continuous_usage_stats":true}"#,
                Usage::Always,
            ),
        ] {
            let body = format!(r#"{{"messages":[],"stream_options":{options}}}"#);
            assert_eq!(read(Api::Chat, &body).map(|j| j.usage), Ok(usage), "{body}");
        }
    }

    #[test]
    fn the_texts_of_an_embedding_are_counted() {
        for (input, texts) in [
            (r#""a b""#, 1),
            (r#"["a","b"]"#, 2),
            ("[1,2]", 1),
            ("[[1],[2],[3]]", 3),
            ("[]", 0),
        ] {
            let body = format!(r#"{{"input":{input}}}"#);
            assert_eq!(
                read(Api::Embeddings, &body).map(|j| j.inputs),
                Ok(texts),
                "{body}"
            );
        }
    }

    #[test]
    fn a_body_that_cannot_be_served_says_why() {
        let deep = format!(r#"{{"messages":{}"#, "[".repeat(100_000));
        for (api, body, says) in [
            (Api::Chat, "", "not a JSON object"),
            (Api::Chat, "[]", "not a JSON object"),
            (Api::Chat, "{", "cannot be read"),
            (Api::Chat, "{} x", "cannot be read"),
            (Api::Chat, "{}", "messages is missing"),
            (
                Api::Chat,
                r#"{"messages":"hello"}"#,
                "messages must be a list",
            ),
            (
                Api::Chat,
                r#"{"messages":[],"stream":"yes"}"#,
                "cannot be read",
            ),
            (Api::Chat, r#"{"messages":[],"model":7}"#, "cannot be read"),
            (
                Api::Chat,
                r#"{"messages":[],"max_tokens":0}"#,
                "max_tokens is 0",
            ),
            (
                Api::Chat,
                r#"{"messages":[],"max_tokens":-1}"#,
                "cannot be read",
            ),
            (
                Api::Chat,
                r#"{"messages":[],"max_tokens":1.5}"#,
                "cannot be read",
            ),
            (
                Api::Chat,
                r#"{"messages":[],"max_tokens":1e30}"#,
                "cannot be read",
            ),
            (
                Api::Chat,
                r#"{"messages":[],"max_tokens":1000000001}"#,
                "max_tokens is 1000000001",
            ),
            (
                Api::Chat,
                r#"{"messages":[],"max_tokens":1000001}"#,
                "stream a longer one",
            ),
            (Api::Chat, r#"{"messages":[],"n":2}"#, "n must be 1"),
            (Api::Completions, "{}", "prompt is missing"),
            (
                Api::Responses,
                r#"{"input":"a","stream":true,"max_output_tokens":1000001}"#,
                "stream a longer one",
            ),
            (Api::Embeddings, r#"{"input":null}"#, "input is missing"),
            (Api::Chat, &deep, "recursion limit"),
        ] {
            let message = read(api, body).expect_err(says);
            assert!(message.contains(says), "{says}: {message}");
        }
        assert!(Job::read(Api::Chat, b"{\"messages\":[\"\xff\"]}").is_err());
    }
}
