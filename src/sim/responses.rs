//! The responses API of OpenAI: numbered, named events around one message, and the whole answer at the end. Pure.

use super::script::{BROKEN, Facts, Script};
use super::template::{Template, quoted, text};

/// The place of the one text among the items of the answer.
const AT: &str = r#""item_id":"msg_$ID","output_index":0,"content_index":0"#;
const EMPTY_PART: &str = r#"{"type":"output_text","annotations":[],"text":""}"#;
const WHOLE_PART: &str = r#"{"type":"output_text","annotations":[],"text":$ALL}"#;

pub fn script(facts: &Facts<'_>) -> Script {
    let all = quoted(&text(facts.job.output_tokens));
    let event = |name: &str, members: &str| event(facts, name, members, &all);
    let begun = format!(r#""response":{}"#, response("in_progress", "", ""));
    let opened = item("in_progress", "");
    Script {
        preamble: vec![
            event("response.created", &begun),
            event("response.in_progress", &begun),
            event(
                "response.output_item.added",
                &format!(r#""output_index":0,"item":{opened}"#),
            ),
            event(
                "response.content_part.added",
                &format!(r#"{AT},"part":{EMPTY_PART}"#),
            ),
        ],
        token: event(
            "response.output_text.delta",
            &format!(r#"{AT},"delta":"$TEXT","logprobs":[]"#),
        ),
        ending: ending(facts, &event),
        error: event(
            "error",
            &format!(
                r#""code":"server_error","message":{},"param":null"#,
                quoted(BROKEN)
            ),
        ),
    }
}

fn ending(facts: &Facts<'_>, event: &dyn Fn(&str, &str) -> Template) -> Vec<Template> {
    let closed = item("completed", WHOLE_PART);
    let mut ending = vec![
        event(
            "response.output_text.done",
            &format!(r#"{AT},"text":$ALL,"logprobs":[]"#),
        ),
        event(
            "response.content_part.done",
            &format!(r#"{AT},"part":{WHOLE_PART}"#),
        ),
        event(
            "response.output_item.done",
            &format!(r#""output_index":0,"item":{closed}"#),
        ),
    ];
    if !facts.faults.no_done {
        let whole = format!(r#""response":{}"#, finished(facts));
        ending.push(event("response.completed", &whole));
    }
    ending
}

fn event(facts: &Facts<'_>, name: &str, members: &str, all: &str) -> Template {
    let pattern = format!(
        "event: {name}\ndata: {{\"type\":\"{name}\",{members},\"sequence_number\":$SEQUENCE}}\n\n"
    );
    facts.template(&pattern, &[("ALL", all)])
}

pub fn document(facts: &Facts<'_>) -> Vec<u8> {
    let all = quoted(&text(facts.job.output_tokens));
    facts.filled(&finished(facts), &[("ALL", &all)])
}

fn finished(facts: &Facts<'_>) -> String {
    let usage = match facts.faults.no_usage {
        true => "",
        false => {
            r#","usage":{"input_tokens":$PROMPT,"input_tokens_details":{"cached_tokens":0},"output_tokens":$MADE,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":$TOTAL}"#
        }
    };
    response("completed", &item("completed", WHOLE_PART), usage)
}

fn item(status: &str, content: &str) -> String {
    format!(
        r#"{{"id":"msg_$ID","type":"message","status":"{status}","role":"assistant","content":[{content}]}}"#
    )
}

fn response(status: &str, output: &str, usage: &str) -> String {
    format!(
        r#"{{"id":"resp_$ID","object":"response","created_at":$CREATED,"status":"{status}","error":null,"incomplete_details":null,"instructions":null,"metadata":{{}},"model":$MODEL,"output":[{output}],"parallel_tool_calls":true,"temperature":1.0,"tool_choice":"auto","tools":[],"top_p":1.0{usage}}}"#
    )
}
