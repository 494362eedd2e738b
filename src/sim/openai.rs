//! Chat, completions, embeddings and errors in the shapes of the OpenAI API, as vLLM writes them. Pure.

use super::job::Usage;
use super::script::{BROKEN, Facts, Script};
use super::template::{quoted, text};

const USAGE: &str =
    r#","usage":{"prompt_tokens":$PROMPT,"total_tokens":$TOTAL,"completion_tokens":$MADE}"#;
const VECTOR: &str = "[0.25,0.25,0.25,0.25,0.25,0.25,0.25,0.25]";
/// The same as little-endian 32 bit floats, which the official SDKs ask for.
const VECTOR_BASE64: &str = r#""AACAPgAAgD4AAIA+AACAPgAAgD4AAIA+AACAPgAAgD4=""#;

/// In what a chat's answer and a completion's differ.
struct Shape {
    id: &'static str,
    chunk_object: &'static str,
    preamble: &'static [&'static str],
    token: &'static str,
    finish: &'static str,
    object: &'static str,
    whole: &'static str,
}

const CHAT: Shape = Shape {
    id: "chatcmpl-$ID",
    chunk_object: "chat.completion.chunk",
    preamble: &[
        r#"{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}"#,
    ],
    token: r#"{"index":0,"delta":{"content":"$TEXT"},"logprobs":null,"finish_reason":null}"#,
    finish: r#"{"index":0,"delta":{},"logprobs":null,"finish_reason":"length","stop_reason":null}"#,
    object: "chat.completion",
    whole: r#"{"index":0,"message":{"role":"assistant","content":$ALL,"refusal":null},"logprobs":null,"finish_reason":"length","stop_reason":null}"#,
};

const COMPLETION: Shape = Shape {
    id: "cmpl-$ID",
    chunk_object: "text_completion",
    preamble: &[],
    token: r#"{"index":0,"text":"$TEXT","logprobs":null,"finish_reason":null,"stop_reason":null}"#,
    finish: r#"{"index":0,"text":"","logprobs":null,"finish_reason":"length","stop_reason":null}"#,
    object: "text_completion",
    whole: r#"{"index":0,"text":$ALL,"logprobs":null,"finish_reason":"length","stop_reason":null}"#,
};

pub fn chat_script(facts: &Facts<'_>) -> Script {
    CHAT.script(facts)
}

pub fn completion_script(facts: &Facts<'_>) -> Script {
    COMPLETION.script(facts)
}

pub fn chat_document(facts: &Facts<'_>) -> Vec<u8> {
    CHAT.document(facts)
}

pub fn completion_document(facts: &Facts<'_>) -> Vec<u8> {
    COMPLETION.document(facts)
}

impl Shape {
    fn script(&self, facts: &Facts<'_>) -> Script {
        let asked = match facts.faults.no_usage {
            true => Usage::Never,
            false => facts.job.usage,
        };
        let running = if asked == Usage::Always { USAGE } else { "" };
        let chunk = |choices: &str, usage: &str| {
            let body = self.body(self.chunk_object, choices, usage);
            facts.template(&["data: ", &body, "\n\n"].concat(), &[])
        };
        let mut ending = vec![chunk(self.finish, running)];
        if asked != Usage::Never {
            ending.push(chunk("", USAGE));
        }
        if !facts.faults.no_done {
            ending.push(facts.template("data: [DONE]\n\n", &[]));
        }
        let preamble = self.preamble.iter().map(|choice| chunk(choice, running));
        Script {
            preamble: preamble.collect(),
            token: chunk(self.token, running),
            ending,
            error: facts.template("data: $ERROR\n\n", &[("ERROR", &error(500, BROKEN))]),
        }
    }

    fn document(&self, facts: &Facts<'_>) -> Vec<u8> {
        let usage = if facts.faults.no_usage { "" } else { USAGE };
        let all = quoted(&text(facts.job.output_tokens));
        facts.filled(&self.body(self.object, self.whole, usage), &[("ALL", &all)])
    }

    fn body(&self, object: &str, choices: &str, usage: &str) -> String {
        let id = self.id;
        format!(
            r#"{{"id":"{id}","object":"{object}","created":$CREATED,"model":$MODEL,"choices":[{choices}]{usage}}}"#
        )
    }
}

pub fn embeddings_document(facts: &Facts<'_>) -> Vec<u8> {
    let vector = match facts.job.base64 {
        true => VECTOR_BASE64,
        false => VECTOR,
    };
    let one = |index| format!(r#"{{"index":{index},"object":"embedding","embedding":{vector}}}"#);
    let data: Vec<String> = (0..facts.job.inputs).map(one).collect();
    let usage = match facts.faults.no_usage {
        true => "",
        false => r#","usage":{"prompt_tokens":$PROMPT,"total_tokens":$PROMPT}"#,
    };
    let pattern = format!(
        r#"{{"id":"embd-$ID","object":"list","created":$CREATED,"model":$MODEL,"data":[{}]{usage}}}"#,
        data.join(",")
    );
    facts.filled(&pattern, &[])
}

/// The list of `/v1/models`.
pub fn models_document<'a>(models: impl Iterator<Item = &'a str>) -> String {
    let one = |model| {
        let id = quoted(model);
        format!(r#"{{"id":{id},"object":"model","created":0,"owned_by":"streamgate-sim"}}"#)
    };
    let data: Vec<String> = models.map(one).collect();
    format!(r#"{{"object":"list","data":[{}]}}"#, data.join(","))
}

/// The body of an error status.
pub fn error(status: u16, message: &str) -> String {
    let kind = match status {
        400 => "BadRequestError",
        401 => "AuthenticationError",
        403 => "PermissionDeniedError",
        404 => "NotFoundError",
        429 => "RateLimitError",
        503 => "ServiceUnavailableError",
        402..=499 => "BadRequestError",
        _ => "InternalServerError",
    };
    let message = quoted(message);
    format!(r#"{{"error":{{"message":{message},"type":"{kind}","param":null,"code":{status}}}}}"#)
}
