//! How an answer ends, or breaks off.

use super::*;

#[test]
fn a_stream_without_its_own_end_is_not_complete_and_shows_nothing_torn() {
    let whole = events("\n", &[&say("u"), &say("v")]);
    for tail in [
        "",
        "data: {\"choices\":[{\"del",
        "data: \"[DONE]\"\n\n",
        "data: [DON",
        "data: \"[DONE]\"",
        ": a comment\n",
        &format!("data: {}\n", say("w")),
    ] {
        let got = run(Call::Chat, OPTIONS, &[whole.as_bytes(), tail.as_bytes()]);
        let shown = if tail.ends_with("\n\n") { tail } else { "" };
        assert_eq!(
            (got.out, got.ended),
            (format!("{whole}{shown}"), false),
            "{tail:?}"
        );
        assert_eq!(got.generated, Units(2));
    }
}

#[test]
fn the_end_passes_without_its_blank_line() {
    for tail in [
        "data: [DONE]",
        "data: [DONE]\n",
        "data: [DONE]\r\n",
        "data: [DONE]\r",
        "data:[DONE]\n",
        "event: x\ndata: [DONE]",
    ] {
        let stream = events("\n", &[&say("a")]) + tail;
        check_cuts(
            Call::Chat,
            OPTIONS,
            &stream,
            &ended(&stream, 1, 1, UsageSource::Counted),
        );
    }
    let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}";
    check_cuts(
        Call::Messages,
        OPTIONS,
        stop,
        &ended(stop, 0, 0, UsageSource::Counted),
    );
    let torn = "event: message_stop\ndata: {\"type\":\"message_stop\"";
    assert!(!run(Call::Messages, OPTIONS, &[torn.as_bytes()]).ended);
}

#[test]
fn the_upstreams_own_error_passes_and_is_known() {
    let error = r#"{"error":{"message":"engine lost","code":500}}"#;
    let stream = events("\n", &[&say("a"), error]);
    let want = Run {
        ended: false,
        failure: Some("engine lost".to_owned()),
        ..ended(&stream, 1, 1, UsageSource::Counted)
    };
    check_cuts(Call::Chat, OPTIONS, &stream, &want);
    let with_done = stream.clone() + &events("\n", &[DONE]);
    let got = run(Call::Chat, OPTIONS, &[with_done.as_bytes()]);
    assert_eq!(
        (got.ended, got.failure.as_deref()),
        (true, Some("engine lost"))
    );
}

#[test]
fn an_event_over_the_limit_passes_in_parts_and_is_metered_to_its_end() {
    for n in [65_537, 1_048_577, 2 * 1024 * 1024] {
        let stream = events(
            "\n",
            &[
                &say("a"),
                &say(&"x".repeat(n)),
                &say("b"),
                STOP,
                USAGE,
                DONE,
            ],
        );
        let pieces: Vec<&[u8]> = stream.as_bytes().chunks(16_001).collect();
        let got = run(Call::Chat, OPTIONS, &pieces);
        assert_eq!(got, ended(&stream, 3, 7, UsageSource::Upstream), "{n}");
        let no_usage = stream.replace(&events("\n", &[USAGE]), "");
        let pieces: Vec<&[u8]> = no_usage.as_bytes().chunks(16_001).collect();
        assert_eq!(run(Call::Chat, OPTIONS, &pieces).generated, Units(3));
    }
}

#[test]
fn a_large_last_event_still_ends_a_response_and_brings_its_usage() {
    let text = "y".repeat(200_000);
    let end = format!(
        r#"{{"type":"response.completed","response":{{"output":[{{"content":[{{"text":"{text}"}}]}}],"usage":{{"input_tokens":13,"output_tokens":6}}}}}}"#
    );
    let delta = r#"{"type":"response.output_text.delta","delta":"a"}"#;
    let stream = events("\n", &[delta, delta, &end]);
    for stream in [stream.as_str(), stream.trim_end()] {
        let pieces: Vec<&[u8]> = stream.as_bytes().chunks(4096).collect();
        let got = run(Call::Responses, OPTIONS, &pieces);
        assert_eq!(got, ended(stream, 2, 6, UsageSource::Upstream));
    }
}

#[test]
fn an_event_torn_after_it_was_shown_in_part_is_closed_before_the_error() {
    let start = events("\n", &[&say("a")])
        + "data: {\"choices\":[{\"delta\":{\"content\":\""
        + &"x".repeat(100_000);
    let mut answer = Answer::new(Call::Chat, Shape::Events, OPTIONS);
    let mut out = Vec::new();
    for piece in start.as_bytes().chunks(5000) {
        out.extend_from_slice(&answer.feed(Bytes::copy_from_slice(piece)).bytes);
    }
    assert_eq!(out, start.as_bytes());
    assert!(!answer.heartbeat_fits());
    assert_eq!(answer.finish().bytes, "");
    assert!(!answer.ended());
    let error = answer.error_event(&FAULT);
    assert!(
        error.starts_with(b"\n\ndata: {\"error\":{\"message\":\"the upstream broke off\""),
        "{error:?}"
    );
    assert!(error.ends_with(b"}}\n\n"));
}

#[test]
fn an_error_event_needs_no_closing_between_events() {
    for (call, start) in [
        (Call::Chat, "data: {\"error\":{"),
        (
            Call::Messages,
            "event: error\ndata: {\"type\":\"error\",\"error\":{",
        ),
        (Call::Responses, "event: error\ndata: {\"type\":\"error\","),
    ] {
        let mut answer = Answer::new(call, Shape::Events, OPTIONS);
        answer.feed(Bytes::from_static(b"data: {}\n\ndata: {\"half"));
        answer.finish();
        let error = answer.error_event(&FAULT);
        assert!(error.starts_with(start.as_bytes()), "{error:?}");
    }
}
