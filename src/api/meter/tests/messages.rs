//! Anthropic's messages: events, errors, usage.

use super::*;

fn sum_up(usage: &str) -> String {
    format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#)
}

#[test]
fn message_events_are_told_apart() {
    for content in [
        text_bit(),
        bit(r#"{"type":"thinking_delta","thinking":"a"}"#),
        bit(r#"{"type":"input_json_delta","partial_json":"{\"a"}"#),
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#.to_owned(),
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}}"#.to_owned(),
        r#"{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"xyz"}}"#.to_owned(),
    ] {
        let want = Seen { content: true, ..Seen::default() };
        assert_eq!(seen(Call::Messages, &content), want, "{content}");
    }
    for silent in [
        begin(r#"{"input_tokens":9,"output_tokens":1}"#),
        sum_up(r#"{"output_tokens":9}"#),
        bit(r#"{"type":"text_delta","text":""}"#),
        bit(r#"{"type":"input_json_delta","partial_json":""}"#),
        bit(r#"{"type":"signature_delta","signature":"abc"}"#),
        r#"{"type":"ping"}"#.to_owned(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#.to_owned(),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
    ] {
        assert_eq!(seen(Call::Messages, &silent), Seen::default(), "{silent}");
    }
    assert!(seen(Call::Messages, FINISH).end);
    assert!(
        !seen(Call::Messages, r#"{"type":"message_stop""#).end,
        "torn"
    );
    let named = Event {
        name: Some(b"message_stop"),
        data: Some(b"{}"),
    };
    assert!(
        Meter::new(Call::Messages).event(&named).end,
        "by its name where the data names no type"
    );
    let nothing = Event {
        name: Some(b"message_stop"),
        data: None,
    };
    assert_eq!(Meter::new(Call::Messages).event(&nothing), Seen::default());
}

#[test]
fn an_anthropic_error_is_recognised_by_name_or_type() {
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for (name, data, words) in [
        (Some("error"), overloaded, "Overloaded"),
        (None, overloaded, "Overloaded"),
        (Some("error"), "broken", "broken"),
    ] {
        let mut meter = Meter::new(Call::Messages);
        assert!(meter.event(&event(name, data)).error, "{data}");
        assert_eq!(meter.failure(), Some(words));
        assert!(!meter.ended());
    }
}

/// What `message_start` says of usage, what each `message_delta` says, and the input and output they come to.
const REPLACED_USAGE: &[(&str, &[&str], u64, u64)] = &[
    (
        r#"{"input_tokens":317,"cache_creation_input_tokens":4425,"output_tokens":1}"#,
        &[r#"{"input_tokens":317,"cache_creation_input_tokens":4425,"output_tokens":47}"#],
        4742,
        47,
    ),
    (
        r#"{"input_tokens":15,"output_tokens":1}"#,
        &[r#"{"input_tokens":0,"output_tokens":9}"#],
        15,
        9,
    ),
    (
        r#"{"input_tokens":15,"output_tokens":1}"#,
        &[r#"{"output_tokens":9}"#],
        15,
        9,
    ),
    (
        r#"{"input_tokens":15,"output_tokens":3}"#,
        &[r#"{"input_tokens":15,"output_tokens":9}"#],
        15,
        9,
    ),
    (
        r#"{"input_tokens":0,"output_tokens":0}"#,
        &[r#"{"input_tokens":8,"output_tokens":9}"#],
        8,
        9,
    ),
    (
        r#"{"input_tokens":8834,"output_tokens":0}"#,
        &[r#"{"input_tokens":18,"cache_read_input_tokens":8831,"output_tokens":9}"#],
        8849,
        9,
    ),
    (
        r#"{"input_tokens":317,"output_tokens":1}"#,
        &[r#"{"output_tokens":20}"#, r#"{"output_tokens":47}"#],
        317,
        47,
    ),
    (
        r#"{"input_tokens":317,"output_tokens":1}"#,
        &[r#"{"output_tokens":47}"#, r#"{"output_tokens":0}"#],
        317,
        47,
    ),
    (
        r#"{"input_tokens":317,"output_tokens":1,"cache_creation":{"output_tokens":9000}}"#,
        &[
            r#"{"output_tokens":-3}"#,
            r#"{"output_tokens":7,"server_tool_use":{"output_tokens":99}}"#,
        ],
        317,
        7,
    ),
];

#[test]
fn anthropic_usage_is_replaced_and_never_summed() {
    for (start, deltas, input, output) in REPLACED_USAGE {
        let mut events = vec![begin(start), text_bit(), text_bit()];
        events.extend(deltas.iter().map(|usage| sum_up(usage)));
        events.push(FINISH.to_owned());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let totals = meter_of(Call::Messages, &events).totals();
        assert_eq!(
            figures(totals),
            (UsageSource::Upstream, Some(*input), *output),
            "{start} {deltas:?}"
        );
    }
}

#[test]
fn a_message_that_breaks_off_is_counted_and_keeps_its_input() {
    let start = begin(r#"{"input_tokens":9,"cache_read_input_tokens":100,"output_tokens":1}"#);
    let meter = meter_of(Call::Messages, &[&start, &text_bit(), &text_bit()]);
    let totals = meter.totals();
    assert_eq!(figures(totals), (UsageSource::Counted, Some(109), 2));
    assert_eq!(totals.input_cached, Some(Units(100)));
}
