//! What the events of each API mean, and whose figures stand.

mod chat;
mod chat_usage;
mod messages;
mod pieces;
mod responses;
mod whole;

use super::{Meter, Seen, Totals};
use crate::api::Call;
use crate::budget::Units;
use crate::record::UsageSource;
use crate::sse::Event;
use crate::sse::tests::{Random, random_pieces};

fn event<'a>(name: Option<&'a str>, data: &'a str) -> Event<'a> {
    Event {
        name: name.map(str::as_bytes),
        data: Some(data.as_bytes()),
    }
}

/// A meter that has read these data events.
fn meter_of(call: Call, datas: &[&str]) -> Meter {
    let mut meter = Meter::new(call);
    for data in datas {
        meter.event(&event(None, data));
    }
    meter
}

fn seen(call: Call, data: &str) -> Seen {
    Meter::new(call).event(&event(None, data))
}

/// Source, input, generated.
fn figures(totals: Totals) -> (UsageSource, Option<u64>, u64) {
    (totals.source, totals.input.map(|u| u.0), totals.generated.0)
}

fn delta(delta: &str) -> String {
    format!(r#"{{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

fn say(usage: Option<&str>) -> String {
    let usage = usage.map(|u| format!(",\"usage\":{u}")).unwrap_or_default();
    format!(
        r#"{{"id":"c","choices":[{{"index":0,"delta":{{"content":"x"}},"finish_reason":null}}]{usage}}}"#
    )
}

fn usage_chunk(prompt: &str, completion: &str) -> String {
    format!(
        r#"{{"id":"c","choices":[],"usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion},"total_tokens":0}}}}"#
    )
}

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

const DONE: &str = "[DONE]";

fn begin(usage: &str) -> String {
    format!(
        r#"{{"type":"message_start","message":{{"id":"m","role":"assistant","content":[],"usage":{usage}}}}}"#
    )
}

fn text_bit() -> String {
    bit(r#"{"type":"text_delta","text":"a"}"#)
}

const FINISH: &str = r#"{"type":"message_stop"}"#;

fn bit(delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)
}

const RESPONSE_END: &str = r#"{"type":"response.completed","response":{"id":"r","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"abcd"}]}],"usage":{"input_tokens":13,"input_tokens_details":{"cached_tokens":5},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":19}}}"#;

fn typed(kind: &str, rest: &str) -> String {
    format!(r#"{{"type":"{kind}",{rest}}}"#)
}
