//! Messages, token counts and errors in the shapes of the Anthropic API. Pure.

use super::script::{BROKEN, Facts, Script};
use super::template::{Template, quoted, text};

pub fn script(facts: &Facts<'_>) -> Script {
    let (at_start, at_end) = match facts.faults.no_usage {
        true => ("", ""),
        false => (
            r#","usage":{"input_tokens":$PROMPT,"output_tokens":0}"#,
            r#","usage":{"input_tokens":$PROMPT,"output_tokens":$MADE}"#,
        ),
    };
    let start = format!(
        r#""message":{{"id":"msg_$ID","type":"message","role":"assistant","model":$MODEL,"content":[],"stop_reason":null,"stop_sequence":null{at_start}}}"#
    );
    let delta = format!(r#""delta":{{"stop_reason":"max_tokens","stop_sequence":null}}{at_end}"#);
    let mut ending = vec![
        event(facts, "content_block_stop", r#""index":0"#),
        event(facts, "message_delta", &delta),
    ];
    if !facts.faults.no_done {
        ending.push(event(facts, "message_stop", ""));
    }
    Script {
        preamble: vec![
            event(facts, "message_start", &start),
            event(
                facts,
                "content_block_start",
                r#""index":0,"content_block":{"type":"text","text":""}"#,
            ),
        ],
        token: event(
            facts,
            "content_block_delta",
            r#""index":0,"delta":{"type":"text_delta","text":"$TEXT"}"#,
        ),
        ending,
        error: event(facts, "error", &error_member(500, BROKEN)),
    }
}

/// An event's template: its name, and its data with the name as `type` and the members given.
fn event(facts: &Facts<'_>, name: &str, members: &str) -> Template {
    let comma = if members.is_empty() { "" } else { "," };
    let pattern = format!("event: {name}\ndata: {{\"type\":\"{name}\"{comma}{members}}}\n\n");
    facts.template(&pattern, &[])
}

pub fn document(facts: &Facts<'_>) -> Vec<u8> {
    let usage = match facts.faults.no_usage {
        true => "",
        false => r#","usage":{"input_tokens":$PROMPT,"output_tokens":$MADE}"#,
    };
    let pattern = [
        r#"{"id":"msg_$ID","type":"message","role":"assistant","model":$MODEL,"content":[{"type":"text","text":$ALL}],"stop_reason":"max_tokens","stop_sequence":null"#,
        usage,
        "}",
    ]
    .concat();
    let all = quoted(&text(facts.job.output_tokens));
    facts.filled(&pattern, &[("ALL", &all)])
}

pub fn count_document(facts: &Facts<'_>) -> Vec<u8> {
    facts.filled(r#"{"input_tokens":$PROMPT}"#, &[])
}

/// The body of an error status.
pub fn error(status: u16, message: &str, request_id: &str) -> String {
    let member = error_member(status, message);
    format!(r#"{{"type":"error",{member},"request_id":"{request_id}"}}"#)
}

fn error_member(status: u16, message: &str) -> String {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let message = quoted(message);
    format!(r#""error":{{"type":"{kind}","message":{message}}}"#)
}
