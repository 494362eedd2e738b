//! What the events of each API mean, and whose figures stand.

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

// ---- chat: content

#[test]
fn output_of_any_kind_is_content() {
    for output in [
        r#"{"content":"a"}"#,
        r#"{"content":" "}"#,
        r#"{"content":"\u0000"}"#,
        r#"{"c\u006fntent":"a"}"#,
        r#"{"content":[{"type":"text","text":"a"}]}"#,
        r#"{"reasoning_content":"r"}"#,
        r#"{"reasoning":"r"}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","text":"r"}]}"#,
        r#"{"refusal":"no"}"#,
        r#"{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":""}}]}"#,
        r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]}"#,
        r#"{"function_call":{"name":"f","arguments":""}}"#,
        r#"{"audio":{"id":"a","data":"UklGRg=="}}"#,
        r#"{"audio":{"transcript":"hi"}}"#,
        r#"{"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}"#,
        r#"{"role":"assistant","content":"a","x_unknown":[1.0,{"a":null}]}"#,
    ] {
        assert!(seen(Call::Chat, &delta(output)).content, "{output}");
    }
}

#[test]
fn what_says_nothing_is_no_content() {
    for silent in [
        "{}",
        "null",
        r#"{"role":"assistant","content":""}"#,
        r#"{"content":null,"refusal":null,"tool_calls":null}"#,
        r#"{"content":[]}"#,
        r#"{"tool_calls":[]}"#,
        r#"{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":null,"arguments":""}}]}"#,
        r#"{"audio":{"id":"audio_1","expires_at":17}}"#,
        r#"{"x_content":"a","xx":{"content":"a"}}"#,
        r#"{"role":"\"content\":\"a\""}"#,
    ] {
        assert_eq!(
            seen(Call::Chat, &delta(silent)),
            Seen::default(),
            "{silent}"
        );
    }
    for odd in [
        r#"{"choices":[{"index":0,"finish_reason":""}]}"#,
        r#"{"choices":[{"index":0}]}"#,
        r#"{"choices":[]}"#,
        r#"{"choices":null}"#,
        r#"{"content":"a","delta":{"content":"a"}}"#,
        r#"{"x":{"choices":[{"delta":{"content":"a"}}]}}"#,
        r#"{"choices":{"delta":{"content":"a"}}}"#,
        r#"{"choices":[[{"delta":{"content":"a"}}],"text",7]}"#,
        "",
        "7",
        "null",
        "upstream exploded",
        STOP,
    ] {
        assert!(!seen(Call::Chat, odd).content, "{odd}");
    }
}

#[test]
fn any_of_several_choices_may_hold_the_content_and_the_event_counts_once() {
    let two = r#"{"choices":[{"index":0,"delta":{}},{"index":1,"delta":{"content":"a"}},{"index":2,"delta":{"content":"b"}}]}"#;
    let meter = meter_of(Call::Chat, &[two]);
    assert_eq!(figures(meter.totals()), (UsageSource::Counted, None, 1));
}

#[test]
fn text_is_the_content_of_a_completion() {
    assert!(seen(Call::Completions, r#"{"choices":[{"text":"a","index":0}]}"#).content);
    assert!(
        !seen(
            Call::Completions,
            r#"{"choices":[{"text":"","index":0,"finish_reason":"stop"}]}"#
        )
        .content
    );
}

// ---- chat: the end and errors

#[test]
fn only_data_that_is_exactly_done_is_the_end() {
    for call in [Call::Chat, Call::Completions, Call::Native] {
        assert!(seen(call, "[DONE]").end);
        for not in [
            "\"[DONE]\"",
            "[DONE] ",
            " [DONE]",
            "[DONE]\n",
            "[done]",
            "DONE",
            "[DONE",
            &delta(r#"{"content":"[DONE]"}"#),
        ] {
            assert!(!seen(call, not).end, "{not}");
        }
    }
    let named = Meter::new(Call::Chat).event(&event(Some("done"), "[DONE]"));
    assert!(named.end, "an event's name does not matter");
    assert!(!seen(Call::Messages, "[DONE]").end);
    assert!(!seen(Call::Responses, "[DONE]").end);
}

#[test]
fn an_error_object_or_an_error_event_is_the_upstreams_error() {
    let unnamed = "the upstream reported an error without a message";
    for (name, data, words) in [
        (
            None,
            r#"{"error":{"message":"engine \"lost\"","type":"server_error","code":500}}"#,
            "engine \"lost\"",
        ),
        (None, r#"{"error":"engine lost"}"#, "engine lost"),
        (
            None,
            r#"{"error":{"code":500},"choices":[{"delta":{"content":"secret"}}]}"#,
            unnamed,
        ),
        (Some("error"), "upstream exploded", "upstream exploded"),
        (
            Some("error"),
            r#"{"error":{"message":"engine lost"}}"#,
            "engine lost",
        ),
        (Some("error"), r#"{"message":"engine lost"}"#, unnamed),
    ] {
        let mut meter = Meter::new(Call::Chat);
        assert!(meter.event(&event(name, data)).error, "{data}");
        assert_eq!(meter.failure(), Some(words), "{data}");
    }
    for fine in [
        r#"{"error":null,"choices":[]}"#,
        r#"{"choices":[{"error":{"message":"x"}}]}"#,
        r#"{"error":false}"#,
        r#"{"error":""}"#,
    ] {
        assert!(!seen(Call::Chat, fine).error, "{fine}");
    }
}

// ---- chat: usage

#[test]
fn usage_is_taken_wherever_it_rides() {
    let on_finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
    let with_content = r#"{"choices":[{"index":0,"delta":{"content":"z"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
    let in_choice = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":11,"completion_tokens":7}}]}"#;
    let chunk = usage_chunk("11", "7");
    let cases: [&[&str]; 7] = [
        &[&say(None), STOP, &chunk, DONE],
        &[&say(None), on_finish, DONE],
        &[&say(None), with_content, DONE],
        &[&say(None), in_choice, DONE],
        &[&say(None), on_finish, &chunk, DONE],
        &[&say(None), &chunk, r#"{"choices":[],"cost":"0"}"#, DONE],
        &[
            &say(Some("null")),
            STOP,
            &chunk,
            r#"{"choices":[],"usage":null}"#,
            DONE,
        ],
    ];
    for events in cases {
        let totals = meter_of(Call::Chat, events).totals();
        assert_eq!(
            figures(totals),
            (UsageSource::Upstream, Some(11), 7),
            "{events:?}"
        );
    }
}

#[test]
fn the_upstreams_figure_stands_at_the_end_whatever_was_counted() {
    for (completion, said) in [("7", 2), ("2", 7)] {
        let mut events = vec![say(None); said];
        events.extend([usage_chunk("11", completion), DONE.to_owned()]);
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let want = completion.parse().unwrap();
        let totals = meter_of(Call::Chat, &events).totals();
        assert_eq!(figures(totals), (UsageSource::Upstream, Some(11), want));
    }
}

#[test]
fn cumulative_usage_is_not_summed() {
    let mut events: Vec<String> = (1..=50)
        .map(|i| {
            say(Some(&format!(
                r#"{{"prompt_tokens":9,"completion_tokens":{i}}}"#
            )))
        })
        .collect();
    let mut meter = Meter::new(Call::Chat);
    for (i, data) in events.iter().enumerate() {
        meter.event(&event(None, data));
        let so_far = u64::try_from(i).unwrap() + 1;
        assert_eq!(
            figures(meter.totals()),
            (UsageSource::Upstream, Some(9), so_far)
        );
    }
    events.push(DONE.to_owned());
    let all: Vec<&str> = events.iter().map(String::as_str).collect();
    assert_eq!(
        figures(meter_of(Call::Chat, &all).totals()),
        (UsageSource::Upstream, Some(9), 50)
    );
}

#[test]
fn figures_that_are_no_running_total_give_way_to_the_count_or_the_end() {
    // Each chunk of one choice only says what that choice has; the last says what all have.
    let per_choice = |i: u32| {
        say(Some(&format!(
            r#"{{"prompt_tokens":9,"completion_tokens":{}}}"#,
            i / 3 + 1
        )))
    };
    let mut meter = Meter::new(Call::Chat);
    for i in 0..12 {
        meter.event(&event(None, &per_choice(i)));
    }
    assert_eq!(
        figures(meter.totals()),
        (UsageSource::Counted, Some(9), 12),
        "broken off here"
    );
    meter.event(&event(None, &usage_chunk("9", "30")));
    meter.event(&event(None, DONE));
    assert_eq!(
        figures(meter.totals()),
        (UsageSource::Upstream, Some(9), 30)
    );
}

#[test]
fn figures_of_each_chunk_alone_are_no_total() {
    // One token in each of fifty chunks, and no usage at the end.
    let one = say(Some(r#"{"prompt_tokens":9,"completion_tokens":1}"#));
    let mut meter = Meter::new(Call::Chat);
    for _ in 0..50 {
        meter.event(&event(None, &one));
    }
    meter.event(&event(None, DONE));
    let want = (UsageSource::Counted, Some(9), 50);
    assert_eq!(figures(meter.totals()), want);
}

#[test]
fn of_running_figures_the_largest_counts() {
    let running = |n: u32| say(Some(&format!(r#"{{"completion_tokens":{n}}}"#)));
    let meter = meter_of(Call::Chat, &[&running(5), &running(3)]);
    assert_eq!(figures(meter.totals()), (UsageSource::Upstream, None, 5));
}

#[test]
fn a_figure_never_goes_back() {
    let events = [
        say(Some(r#"{"prompt_tokens":9,"completion_tokens":20}"#)),
        usage_chunk("9", "3"),
        DONE.to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    assert_eq!(
        figures(meter_of(Call::Chat, &events).totals()),
        (UsageSource::Upstream, Some(9), 20)
    );
}

#[test]
fn usage_that_cannot_be_is_not_believed_and_the_count_stands() {
    for (prompt, completion) in [
        ("-5", "-1000000"),
        ("9", "-7"),
        ("-5", "7"),
        ("9", "9223372036854775807"),
        ("1e30", "1e30"),
        ("9", "\"7\""),
        ("\"2147483647\"", "7"),
        ("9", "3.7"),
        ("9", "NaN"),
        ("9", "1000000001"),
        ("9", "true"),
    ] {
        let chunk = usage_chunk(prompt, completion);
        let (a, b, c) = (say(None), say(None), say(None));
        let totals = meter_of(Call::Chat, &[&a, &b, &c, STOP, &chunk, DONE]).totals();
        assert_eq!(figures(totals), (UsageSource::Counted, None, 3), "{chunk}");
    }
    let bad_total =
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":-1}}"#;
    assert_eq!(
        figures(meter_of(Call::Chat, &[&say(None), bad_total, DONE]).totals()),
        (UsageSource::Counted, None, 1)
    );
    let bad_part = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":-1}}}"#;
    assert_eq!(
        figures(meter_of(Call::Chat, &[&say(None), bad_part, DONE]).totals()),
        (UsageSource::Counted, None, 1)
    );
    // A good one before a bad one stays.
    let (good, bad) = (usage_chunk("11", "7"), usage_chunk("11", "-7"));
    let totals = meter_of(Call::Chat, &[&say(None), &good, &bad, DONE]).totals();
    assert_eq!(figures(totals), (UsageSource::Upstream, Some(11), 7));
}

#[test]
fn whole_figures_are_believed_however_they_are_spelled() {
    let chunk = usage_chunk("1.1e1", "7.0");
    let totals = meter_of(Call::Chat, &[&say(None), &chunk, DONE]).totals();
    assert_eq!(figures(totals), (UsageSource::Upstream, Some(11), 7));
}

#[test]
fn zeros_are_figures_not_given() {
    let chunk = usage_chunk("0", "0");
    let totals = meter_of(Call::Chat, &[&say(None), &chunk, DONE]).totals();
    assert_eq!(figures(totals), (UsageSource::Counted, None, 1));
    let silent = usage_chunk("11", "0");
    assert_eq!(
        figures(meter_of(Call::Chat, &[&silent, DONE]).totals()),
        (UsageSource::Upstream, Some(11), 0)
    );
}

#[test]
fn a_lie_in_the_text_is_no_usage() {
    let lie = r#"{"choices":[{"delta":{"content":"\",\"usage\":{\"completion_tokens\":999}"},"x":{"usage":{"completion_tokens":99}}}]}"#;
    assert_eq!(
        figures(meter_of(Call::Chat, &[lie, DONE]).totals()),
        (UsageSource::Counted, None, 1)
    );
    let torn = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":999}"#;
    assert_eq!(
        figures(meter_of(Call::Chat, &[&say(None), torn, DONE]).totals()),
        (UsageSource::Counted, None, 1)
    );
}

#[test]
fn cached_input_is_a_part_of_the_input() {
    let chunk = r#"{"choices":[],"usage":{"completion_tokens":7,"prompt_tokens_details":{"audio_tokens":3,"cached_tokens":64},"prompt_tokens":100}}"#;
    let totals = meter_of(Call::Chat, &[&say(None), chunk, DONE]).totals();
    assert_eq!(
        (totals.input, totals.input_cached, totals.input_cache_write),
        (Some(Units(100)), Some(Units(64)), None)
    );
}

#[test]
fn only_a_chunk_of_usage_alone_is_one_to_hide() {
    let timings = r#"{"object":"chat.completion.chunk","usage":{"completion_tokens":7},"timings":{"a":1},"choices":[]}"#;
    for hidden in [
        &usage_chunk("11", "7"),
        timings,
        r#"{"usage":{}}"#,
        r#"{"choices":null,"usage":{"x":1}}"#,
    ] {
        assert!(seen(Call::Chat, hidden).usage_only, "{hidden}");
    }
    let riding =
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":7}}"#;
    for shown in [
        riding,
        r#"{"choices":[]}"#,
        r#"{"choices":[],"usage":null}"#,
        r#"{"choices":[],"cost":"0"}"#,
        r#"{"choices":[],"usage":{"a":1},"error":{"message":"x"}}"#,
        r#"{"choices":[],"usage":{"a":1}"#,
        r#"{"choices":[{"usage":{"a":1}}]}"#,
        DONE,
    ] {
        assert!(!seen(Call::Chat, shown).usage_only, "{shown}");
    }
}

#[test]
fn what_comes_after_the_end_changes_no_figure() {
    let late = usage_chunk("99", "99");
    let totals = meter_of(Call::Chat, &[&say(None), DONE, &say(None), &late]).totals();
    assert_eq!(figures(totals), (UsageSource::Counted, None, 1));
}

#[test]
fn usage_without_content_and_without_an_end_is_not_an_ended_answer() {
    let meter = meter_of(Call::Chat, &[&usage_chunk("11", "0")]);
    assert_eq!(figures(meter.totals()), (UsageSource::Counted, Some(11), 0));
    assert!(!meter.ended());
}

// ---- messages

fn begin(usage: &str) -> String {
    format!(
        r#"{{"type":"message_start","message":{{"id":"m","role":"assistant","content":[],"usage":{usage}}}}}"#
    )
}

fn sum_up(usage: &str) -> String {
    format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}},"usage":{usage}}}"#)
}

fn bit(delta: &str) -> String {
    format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#)
}

fn text_bit() -> String {
    bit(r#"{"type":"text_delta","text":"a"}"#)
}

const FINISH: &str = r#"{"type":"message_stop"}"#;

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

// ---- responses

const RESPONSE_END: &str = r#"{"type":"response.completed","response":{"id":"r","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"abcd"}]}],"usage":{"input_tokens":13,"input_tokens_details":{"cached_tokens":5},"output_tokens":6,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":19}}}"#;

fn typed(kind: &str, rest: &str) -> String {
    format!(r#"{{"type":"{kind}",{rest}}}"#)
}

#[test]
fn response_events_are_told_apart() {
    for content in [
        typed("response.output_text.delta", r#""delta":"a""#),
        r#"{"delta":"a","type":"response.output_text.delta"}"#.to_owned(),
        typed("response.refusal.delta", r#""delta":"a""#),
        typed("response.reasoning_summary_text.delta", r#""delta":"a""#),
        typed("response.function_call_arguments.delta", r#""delta":"{""#),
        typed("response.audio.delta", r#""delta":"UklG""#),
        typed(
            "response.image_generation_call.partial_image",
            r#""partial_image_b64":"AA""#,
        ),
        typed(
            "response.output_item.added",
            r#""item":{"type":"function_call","name":"f","arguments":""}"#,
        ),
    ] {
        let want = Seen {
            content: true,
            ..Seen::default()
        };
        assert_eq!(seen(Call::Responses, &content), want, "{content}");
    }
    for silent in [
        typed(
            "response.created",
            r#""response":{"id":"r","status":"in_progress","usage":null}"#,
        ),
        typed("response.output_text.delta", r#""delta":"""#),
        typed(
            "response.output_text.done",
            r#""text":"all of it","delta":"x""#,
        ),
        typed(
            "response.output_item.added",
            r#""item":{"type":"message","content":[]}"#,
        ),
        typed(
            "response.output_item.done",
            r#""item":{"type":"function_call","name":"f"}"#,
        ),
        typed(
            "response.content_part.added",
            r#""part":{"type":"output_text","text":""}"#,
        ),
    ] {
        assert_eq!(seen(Call::Responses, &silent), Seen::default(), "{silent}");
    }
}

#[test]
fn a_response_has_three_ends_and_two_kinds_of_error() {
    for (end, error) in [
        ("response.completed", false),
        ("response.incomplete", false),
        ("response.failed", true),
    ] {
        let got = seen(
            Call::Responses,
            &typed(end, r#""response":{"error":{"message":"why"}}"#),
        );
        assert_eq!((got.end, got.error), (true, error), "{end}");
    }
    let mut meter = meter_of(
        Call::Responses,
        &[&typed(
            "response.failed",
            r#""response":{"error":{"code":"x","message":"why"}}"#,
        )],
    );
    assert_eq!(meter.failure(), Some("why"));
    assert!(
        meter
            .event(&event(
                Some("error"),
                r#"{"type":"error","code":"x","message":"no"}"#
            ))
            .error
    );
    let named = meter_of(Call::Responses, &[]).event(&event(
        Some("response.output_text.delta"),
        r#"{"delta":"a"}"#,
    ));
    assert!(named.content, "by its name where the data names no type");
}

#[test]
fn the_usage_of_a_response_stands_at_its_end() {
    let a = typed("response.output_text.delta", r#""delta":"a""#);
    let meter = meter_of(Call::Responses, &[&a, &a, &a, &a]);
    assert_eq!(figures(meter.totals()), (UsageSource::Counted, None, 4));
    let totals = meter_of(Call::Responses, &[&a, &a, &a, &a, RESPONSE_END]).totals();
    assert_eq!(figures(totals), (UsageSource::Upstream, Some(13), 6));
    assert_eq!(totals.input_cached, Some(Units(5)));
}

// ---- whole bodies

fn whole(call: Call, body: &str) -> (bool, Totals) {
    let mut meter = Meter::new(call);
    meter.body(body.as_bytes());
    let whole = meter.body_ends();
    (whole, meter.body_totals(4))
}

#[test]
fn a_whole_answer_is_metered() {
    for (call, body, want) in [
        (
            Call::Chat,
            r#"{"choices":[{"message":{"content":"ok"}}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#,
            (UsageSource::Upstream, Some(11), 7),
        ),
        (
            Call::Chat,
            r#"{"choices":[{"message":{"content":"nine char"}},{"message":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]}}]}"#,
            (UsageSource::Counted, None, 3),
        ),
        (
            Call::Chat,
            r#"{"choices":[{"message":{"content":"nine char"}}],"usage":{"prompt_tokens":11,"completion_tokens":-7}}"#,
            (UsageSource::Counted, None, 3),
        ),
        (
            Call::Completions,
            r#"{"choices":[{"text":"ok"}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#,
            (UsageSource::Upstream, Some(11), 7),
        ),
        (
            Call::Embeddings,
            r#"{"object":"list","data":[{"embedding":[0.1,-2e-3],"index":0}],"usage":{"prompt_tokens":8,"total_tokens":8}}"#,
            (UsageSource::Upstream, Some(8), 0),
        ),
        (
            Call::Messages,
            r#"{"type":"message","content":[{"type":"text","text":"ok"}],"usage":{"input_tokens":5,"cache_read_input_tokens":6,"output_tokens":7}}"#,
            (UsageSource::Upstream, Some(11), 7),
        ),
        (
            Call::Messages,
            r#"{"type":"message","content":[{"type":"text","text":"nine char"},{"type":"tool_use","id":"t","name":"f","input":{"city":"Rome"}}]}"#,
            (UsageSource::Counted, None, 4),
        ),
        (
            Call::Responses,
            r#"{"object":"response","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"ok"}]}],"usage":{"input_tokens":11,"output_tokens":7}}"#,
            (UsageSource::Upstream, Some(11), 7),
        ),
        (
            Call::Responses,
            r#"{"object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"nine char"}]},{"type":"function_call","name":"f","arguments":"{}"}]}"#,
            (UsageSource::Counted, None, 3),
        ),
        (
            Call::CountTokens,
            r#"{"input_tokens":2095}"#,
            (UsageSource::Counted, None, 0),
        ),
    ] {
        let (is_whole, totals) = whole(call, body);
        assert!(is_whole, "{body}");
        assert_eq!(figures(totals), want, "{body}");
    }
}

#[test]
fn a_body_that_is_cut_is_not_whole() {
    let body = r#" {"choices":[{"message":{"content":"nine char"}}],"usage":{"prompt_tokens":11,"completion_tokens":7}} "#;
    let end = body.trim_end().len();
    for cut in 0..=body.len() {
        let (is_whole, totals) = whole(Call::Chat, &body[..cut]);
        assert_eq!(is_whole, cut >= end, "cut at {cut}");
        let from_upstream = totals.source == UsageSource::Upstream;
        assert_eq!(from_upstream, is_whole, "cut at {cut}");
    }
    for odd in ["", "<html>bad gateway</html>", "{}{}", "{} x"] {
        assert!(!whole(Call::Chat, odd).0, "{odd}");
    }
}

#[test]
fn an_error_in_a_whole_answer_is_the_upstreams_error() {
    let mut meter = Meter::new(Call::Chat);
    meter.body(br#"{"error":{"message":"engine lost"}}"#);
    assert!(meter.body_ends());
    assert_eq!(meter.failure(), Some("engine lost"));
}

// ---- any pieces

/// All that is known of a whole body that came in these pieces.
fn whole_of(pieces: &[&[u8]]) -> (bool, Totals, Option<String>) {
    let mut meter = Meter::new(Call::Chat);
    for piece in pieces {
        meter.body(piece);
    }
    let whole = meter.body_ends();
    let failure = meter.failure().map(str::to_owned);
    (whole, meter.body_totals(4), failure)
}

fn spelled_out(name: &str) -> String {
    name.bytes().map(|b| format!("\\u{b:04x}")).collect()
}

/// Bytes behind the document, and what is too long to be kept of a token that is cut.
#[test]
fn a_whole_body_in_any_pieces_says_the_same() {
    const USAGE: &str = r#""usage":{"prompt_tokens":5,"completion_tokens":6}"#;
    let long_number = format!("7.{}1", "0".repeat(600));
    let (name, words) = (
        spelled_out("completion_tokens"),
        "lost it \"北\" ".repeat(60),
    );
    let said = |words: &str| format!(r#"{{"error":{{"message":"{words}"}}}}"#);
    let (plain, escaped) = (words.replace('"', "\\\""), spelled_out(&words));
    for body in [
        format!("{{{USAGE}}}  \0\0"),
        format!("{{{USAGE}}}{{{USAGE}}}"),
        format!(r#"{{"usage":{{"completion_tokens":{long_number}}}}}"#),
        format!(r#"{{"usage":{{"prompt_tokens":5,"{name}":6}}}}"#),
        said(&plain),
        said(&escaped),
    ] {
        let bytes = body.as_bytes();
        let want = whole_of(&[bytes]);
        for cut in 0..=bytes.len() {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(whole_of(&[a, b]), want, "{body} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(whole_of(&single), want, "{body}");
    }
    let (_, _, failure) = whole_of(&[said(&plain).as_bytes()]);
    let failure = failure.unwrap();
    assert!(failure.starts_with("lost it \"北\" "), "{failure}");
    assert!(failure.ends_with('…'), "{failure}");
    let (whole, totals, _) = whole_of(&[format!("{{{USAGE}}} x").as_bytes()]);
    assert!(!whole);
    assert_eq!(figures(totals), (UsageSource::Upstream, Some(5), 6));
}

#[test]
fn a_document_in_any_pieces_says_the_same() {
    let chat = usage_chunk("11", "7");
    let samples = [
        (
            Call::Chat,
            say(Some(r#"{"prompt_tokens":9,"completion_tokens":12}"#)),
        ),
        (Call::Chat, chat),
        (
            Call::Chat,
            delta(r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"北"}}]}"#),
        ),
        (
            Call::Messages,
            begin(r#"{"input_tokens":317,"output_tokens":1}"#),
        ),
        (Call::Messages, text_bit()),
        (Call::Messages, FINISH.to_owned()),
        (Call::Responses, RESPONSE_END.to_owned()),
        (
            Call::Responses,
            typed("response.output_text.delta", r#""delta":"a""#),
        ),
        (
            Call::Chat,
            r#"{"error":{"message":"engine lost"}}"#.to_owned(),
        ),
    ];
    for (call, document) in samples {
        let mut meter = Meter::new(call);
        let whole = (meter.event(&event(None, &document)), meter.totals());
        for cut in 0..=document.len() {
            let mut meter = Meter::new(call);
            meter.piece(&document.as_bytes()[..cut]);
            meter.piece(&document.as_bytes()[cut..]);
            let got = (meter.event_ends(None), meter.totals());
            assert_eq!(got, whole, "{document} cut at {cut}");
        }
    }
}

#[test]
fn bytes_of_any_kind_do_no_harm() {
    let samples = [
        say(None),
        usage_chunk("1", "2"),
        RESPONSE_END.to_owned(),
        begin(r#"{"input_tokens":1}"#),
        text_bit(),
        STOP.to_owned(),
    ];
    const ODD: &[u8] = b"{}[],:\"\\ u0-.\xffe\n";
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut data = samples[random.below(samples.len())].clone().into_bytes();
        for _ in 0..random.below(8) {
            let at = random.below(data.len());
            match random.below(2) {
                0 if !data.is_empty() => drop(data.remove(at)),
                _ => data.insert(at, ODD[random.below(ODD.len())]),
            }
        }
        for call in Call::ALL {
            let mut meter = Meter::new(*call);
            meter.event(&Event {
                name: None,
                data: Some(&data),
            });
            let mut pieces = Meter::new(*call);
            for piece in random_pieces(&data, &mut random) {
                pieces.piece(piece);
            }
            pieces.event_ends(None);
            assert_eq!(meter.totals(), pieces.totals(), "seed {seed}");
        }
    }
}
