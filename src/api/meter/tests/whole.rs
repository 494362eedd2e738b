//! Whole bodies.

use super::*;

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
