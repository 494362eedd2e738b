//! OpenAI's responses: events, ends, usage.

use super::*;

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
