//! Chat and completions: content, the end, errors.

use super::*;

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
