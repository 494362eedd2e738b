//! Event streams as a test sees them: blocks, their data, the words of OpenAI's chat stream.
//!
//! Kept apart from the gateway's own scanner on purpose, and as simple as can be: it judges that one.

use serde_json::{Value, json};

/// The first block of some bytes: its length, and where the next one begins. Nothing where none has ended yet.
pub fn first_block(bytes: &[u8]) -> Option<(usize, usize)> {
    let ends: [&[u8]; 3] = [b"\r\n\r\n", b"\n\n", b"\r\r"];
    let found = ends
        .iter()
        .filter_map(|end| find(bytes, end).map(|at| (at, at + end.len())));
    found.min()
}

/// Where a piece stands in some bytes.
pub fn find(bytes: &[u8], piece: &[u8]) -> Option<usize> {
    bytes
        .windows(piece.len())
        .position(|window| window == piece)
}

/// How often a piece stands in some bytes.
pub fn count(bytes: &[u8], piece: &[u8]) -> usize {
    bytes
        .windows(piece.len())
        .filter(|window| *window == piece)
        .count()
}

/// The blocks of a finished stream, comments included.
pub fn blocks(body: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = body;
    while let Some((length, after)) = first_block(rest) {
        out.push(String::from_utf8_lossy(&rest[..length]).into_owned());
        rest = &rest[after..];
    }
    if !rest.is_empty() {
        out.push(String::from_utf8_lossy(rest).into_owned());
    }
    out
}

/// A field of a block: `data`, `event`, `id`.
pub fn field(block: &str, name: &str) -> Option<String> {
    let lines = block
        .split(['\r', '\n'])
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let values: Vec<&str> = lines
        .map(|value| value.strip_prefix(' ').unwrap_or(value))
        .collect();
    (!values.is_empty()).then(|| values.join("\n"))
}

/// A block's data as JSON, where it is some.
pub fn data_of(block: &str) -> Option<Value> {
    serde_json::from_str(&field(block, "data")?).ok()
}

/// The text of a chat event, where it has some.
pub fn content_of(block: &str) -> Option<String> {
    let text = data_of(block)?["choices"][0]["delta"]["content"]
        .as_str()?
        .to_owned();
    (!text.is_empty()).then_some(text)
}

/// The texts of a finished chat stream.
pub fn contents(body: &[u8]) -> Vec<String> {
    blocks(body)
        .iter()
        .filter_map(|block| content_of(block))
        .collect()
}

/// Whether the stream says `[DONE]`.
pub fn is_done(body: &[u8]) -> bool {
    blocks(body)
        .iter()
        .any(|block| field(block, "data").as_deref() == Some("[DONE]"))
}

/// The error event that ends a failed stream, which never says `[DONE]`.
#[track_caller]
pub fn final_error(body: &[u8]) -> Value {
    let text = String::from_utf8_lossy(body);
    assert!(!is_done(body), "a failed stream says [DONE]: {text}");
    assert!(
        body.ends_with(b"\n\n"),
        "the last event is not whole: {text}"
    );
    let last = blocks(body).pop().unwrap_or_default();
    let error = data_of(&last)
        .map(|doc| doc["error"].clone())
        .unwrap_or_default();
    assert!(
        error["message"].is_string() && error["code"].is_string(),
        "no error event at the end: {text}"
    );
    error
}

/// The bytes of one event with one line of data.
pub fn event(data: &str) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

/// The bytes of one chat event with text.
pub fn delta(text: &str) -> Vec<u8> {
    event(&chunk(json!({"content": text})).to_string())
}

/// The bytes of a chat stream's end.
pub fn done() -> Vec<u8> {
    event("[DONE]")
}

/// One chat chunk.
pub fn chunk(delta: Value) -> Value {
    json!({
        "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}],
    })
}

/// A chat stream's usage chunk.
pub fn usage(input: u64, output: u64) -> Value {
    json!({
        "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
        "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output},
    })
}
