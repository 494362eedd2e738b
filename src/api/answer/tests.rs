//! What the client gets of an answer, in any pieces, to its end or torn.

use crate::api::native::About;
use crate::api::{Answer, AnswerOptions, Call, Code, Fault, Fed, Shape};
use crate::budget::Units;
use crate::config::LineEnds;
use crate::record::UsageSource;
use crate::sse::tests::{Random, random_pieces};
use bytes::Bytes;

const OPTIONS: AnswerOptions = AnswerOptions {
    hide_usage: false,
    line_ends: LineEnds::Keep,
    bytes_per_unit: 4,
};

const HIDING: AnswerOptions = AnswerOptions {
    hide_usage: true,
    ..OPTIONS
};

const FAULT: Fault<'static> = Fault {
    code: Code::UpstreamBroken,
    message: "the upstream broke off",
    param: None,
    request_id: "r-1",
};

fn events(end: &str, datas: &[&str]) -> String {
    datas
        .iter()
        .map(|data| format!("data: {data}{end}{end}"))
        .collect()
}

fn say(text: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#)
}

const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
const DONE: &str = "[DONE]";

/// Everything a client got and the gateway knows at the end.
#[derive(Debug, PartialEq)]
struct Run {
    out: String,
    content: u32,
    ended: bool,
    failure: Option<String>,
    generated: Units,
    source: UsageSource,
}

fn run_answer(mut answer: Answer, pieces: &[&[u8]]) -> Run {
    let mut all = Vec::new();
    let mut content = 0;
    let mut take = |fed: Fed| {
        all.extend_from_slice(&fed.bytes);
        content += fed.content;
    };
    for piece in pieces {
        take(answer.feed(Bytes::copy_from_slice(piece)));
    }
    take(answer.finish());
    Run {
        out: String::from_utf8_lossy(&all).into_owned(),
        content,
        ended: answer.ended(),
        failure: answer.failure().map(str::to_owned),
        generated: answer.totals().generated,
        source: answer.totals().source,
    }
}

fn run(call: Call, options: AnswerOptions, pieces: &[&[u8]]) -> Run {
    run_answer(Answer::new(call, Shape::Events, options), pieces)
}

/// The same run over every cut into two pieces and a byte at a time.
fn check_cuts(call: Call, options: AnswerOptions, stream: &str, want: &Run) {
    let bytes = stream.as_bytes();
    for cut in 0..=bytes.len() {
        let got = run(call, options, &[&bytes[..cut], &bytes[cut..]]);
        assert_eq!(&got, want, "cut at {cut} of {stream:?}");
    }
    let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(
        &run(call, options, &bytewise),
        want,
        "a byte at a time: {stream:?}"
    );
}

fn ended(out: &str, content: u32, generated: u64, source: UsageSource) -> Run {
    Run {
        out: out.to_owned(),
        content,
        ended: true,
        failure: None,
        generated: Units(generated),
        source,
    }
}

#[test]
fn a_stream_passes_unchanged_and_is_counted_wherever_it_is_cut() {
    for end in ["\n", "\r\n", "\r"] {
        let stream =
            "\u{feff}".to_owned() + &events(end, &[ROLE, &say("北😀"), &say("é"), STOP, DONE]);
        check_cuts(
            Call::Chat,
            OPTIONS,
            &stream,
            &ended(&stream, 2, 2, UsageSource::Counted),
        );
        let stream = events(end, &[ROLE, &say("a"), STOP, USAGE, DONE]);
        check_cuts(
            Call::Chat,
            OPTIONS,
            &stream,
            &ended(&stream, 1, 7, UsageSource::Upstream),
        );
    }
}

#[test]
fn the_usage_a_client_did_not_ask_for_leaves_no_trace() {
    for end in ["\n", "\r\n", "\r"] {
        let stream = events(end, &[ROLE, &say("a"), STOP, USAGE, DONE]);
        let shown = events(end, &[ROLE, &say("a"), STOP, DONE]);
        check_cuts(
            Call::Chat,
            HIDING,
            &stream,
            &ended(&shown, 1, 7, UsageSource::Upstream),
        );
    }
    let riding = STOP.replace("\"choices\"", "\"usage\":null,\"choices\"");
    let stream = events(
        "\n",
        &[&say("a"), &riding, r#"{"choices":[],"cost":"0"}"#, DONE],
    );
    check_cuts(
        Call::Chat,
        HIDING,
        &stream,
        &ended(&stream, 1, 1, UsageSource::Counted),
    );
}

#[test]
fn line_ends_become_lf_where_that_is_asked_for() {
    let to_lf = AnswerOptions {
        line_ends: LineEnds::Lf,
        ..HIDING
    };
    let shown = events("\n", &[ROLE, &say("a"), DONE]);
    for end in ["\n", "\r\n", "\r"] {
        let stream = events(end, &[ROLE, &say("a"), USAGE, DONE]);
        check_cuts(
            Call::Chat,
            to_lf,
            &stream,
            &ended(&shown, 1, 7, UsageSource::Upstream),
        );
    }
}

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
fn bytes_behind_the_end_pass_and_count_nothing() {
    let stream = events("\n", &[&say("a"), DONE, &say("b"), USAGE]) + ": bye";
    check_cuts(
        Call::Chat,
        OPTIONS,
        &stream,
        &Run {
            content: 2,
            ..ended(&stream, 1, 1, UsageSource::Counted)
        },
    );
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

#[test]
fn output_is_shown_from_the_first_content_on() {
    let mut answer = Answer::new(Call::Chat, Shape::Events, OPTIONS);
    for quiet in [
        ": warming up\n\n".to_owned(),
        events("\n", &[ROLE]),
        "data: {\"half".to_owned(),
    ] {
        answer.feed(Bytes::from(quiet));
        assert!(!answer.shown());
    }
    answer.feed(Bytes::from(format!(
        "\":1}}\n\n{}",
        events("\n", &[&say("a")])
    )));
    assert!(answer.shown());
    let mut large = Answer::new(Call::Chat, Shape::Events, OPTIONS);
    large.feed(Bytes::from(": ".to_owned() + &"x".repeat(70_000)));
    assert!(large.shown(), "a large event has passed in part");
}

#[test]
fn a_heartbeat_fits_only_between_events_as_the_client_has_them() {
    let to_lf = AnswerOptions {
        line_ends: LineEnds::Lf,
        ..OPTIONS
    };
    for (options, bytes, fits) in [
        (OPTIONS, "", true),
        (OPTIONS, "data: {}\n\n", true),
        (OPTIONS, "data: {}\n\ndata: {\"ha", true),
        (OPTIONS, "data: {}\n\ndata: {}\n", true),
        (OPTIONS, "data: {}\r\n\r\n", true),
        (OPTIONS, "data: {}\r\n\r", false),
        (to_lf, "data: {}\r\n\r", true),
        (OPTIONS, "data: {}\r\n\r\ndata: {}\r", true),
        (OPTIONS, "data: {}\r\rd", true),
        (OPTIONS, "data: [DONE]\n\n", false),
    ] {
        let mut answer = Answer::new(Call::Chat, Shape::Events, options);
        answer.feed(Bytes::from(bytes));
        assert_eq!(answer.heartbeat_fits(), fits, "{bytes:?}");
    }
    assert!(!Answer::new(Call::Chat, Shape::Whole, OPTIONS).heartbeat_fits());
}

#[test]
fn a_whole_answer_passes_as_read() {
    let body = r#"{"choices":[{"message":{"content":"ok"}}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
    for cut in 0..body.len() {
        let answer = Answer::new(Call::Chat, Shape::Whole, OPTIONS);
        let got = run_answer(answer, &[&body.as_bytes()[..cut], &body.as_bytes()[cut..]]);
        assert_eq!(got, ended(body, 0, 7, UsageSource::Upstream));
        let answer = Answer::new(Call::Chat, Shape::Whole, OPTIONS);
        let torn = run_answer(answer, &[&body.as_bytes()[..cut]]);
        assert_eq!((torn.out.as_str(), torn.ended), (&body[..cut], false));
    }
    let mut answer = Answer::new(Call::Chat, Shape::Whole, OPTIONS);
    assert!(!answer.shown());
    let chunk = Bytes::from(body);
    let fed = answer.feed(chunk.clone());
    assert_eq!(fed.bytes.as_ptr(), chunk.as_ptr());
    assert!(
        answer.shown() && answer.ended(),
        "known before the upstream's close"
    );
    assert_eq!(answer.totals().generated, Units(7));
}

// ---- native

fn about() -> About {
    About {
        request_id: "n-1".to_owned(),
        model: "fast".to_owned(),
        input_estimate: Units(4),
    }
}

const NATIVE: &str = "id: 1\nevent: started\ndata: {\"request_id\":\"n-1\",\"model\":\"fast\"}\n\n\
    id: 2\nevent: delta\ndata: {\"text\":\"a\\\"\"}\n\n\
    id: 3\nevent: delta\ndata: {\"text\":\"\",\"reasoning\":\"r\"}\n\n\
    id: 4\nevent: completed\ndata: {\"request_id\":\"n-1\",\"finish_reason\":\"stop\",\"usage\":{\"input_units\":11,\"generated_units\":7}}\n\n";

#[test]
fn a_native_stream_is_written_from_the_chat_stream_wherever_it_is_cut() {
    let thought = r#"{"choices":[{"delta":{"reasoning_content":"r"}}]}"#;
    for end in ["\n", "\r\n", "\r"] {
        let stream = format!(": hi{end}{end}")
            + &events(end, &[ROLE, &say("a\\\""), thought, STOP, USAGE, DONE]);
        for cut in 0..=stream.len() {
            let pieces = [&stream.as_bytes()[..cut], &stream.as_bytes()[cut..]];
            let got = run_answer(Answer::native(Shape::Events, HIDING, about()), &pieces);
            assert_eq!(
                got,
                ended(NATIVE, 2, 7, UsageSource::Upstream),
                "cut at {cut}"
            );
        }
        let no_blank = stream.trim_end();
        let got = run_answer(
            Answer::native(Shape::Events, HIDING, about()),
            &[no_blank.as_bytes()],
        );
        assert_eq!(got.out, NATIVE, "the end without its blank line");
    }
}

#[test]
fn a_native_stream_completes_once_and_says_nothing_more() {
    let stream = events("\n", &[&say("a"), DONE, &say("b"), DONE]);
    let answer = Answer::native(Shape::Events, HIDING, about());
    let got = run_answer(answer, &[stream.as_bytes()]).out;
    assert_eq!(got.matches("event: completed").count(), 1, "{got}");
    assert_eq!(got.matches("event: delta").count(), 1, "{got}");
}

#[test]
fn a_native_stream_that_fails_says_so_in_its_own_words() {
    let error = r#"{"error":{"message":"engine lost"}}"#;
    let mut answer = Answer::native(Shape::Events, OPTIONS, about());
    let fed = answer.feed(Bytes::from(events("\n", &[&say("a"), error])));
    let text = String::from_utf8(fed.bytes.to_vec()).unwrap();
    assert!(
        text.ends_with("data: {\"text\":\"a\"}\n\n"),
        "the chat error is not passed: {text}"
    );
    assert_eq!(answer.failure(), Some("engine lost"));
    let failed = answer.error_event(&FAULT);
    assert!(
        failed.starts_with(b"id: 3\nevent: failed\ndata: {\"request_id\":\"r-1\",\"error\":{"),
        "{failed:?}"
    );
    let cancelled = answer.error_event(&Fault {
        code: Code::Cancelled,
        ..FAULT
    });
    assert!(
        cancelled.starts_with(b"id: 4\nevent: cancelled\n"),
        "{cancelled:?}"
    );
}

#[test]
fn a_native_answer_is_one_document() {
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"t0 t1"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
    for cut in 0..=body.len() {
        let pieces = [&body.as_bytes()[..cut], &body.as_bytes()[cut..]];
        let got = run_answer(Answer::native(Shape::Whole, OPTIONS, about()), &pieces);
        let want = r#"{"request_id":"n-1","model":"fast","text":"t0 t1","finish_reason":"stop","usage":{"input_units":11,"generated_units":7}}"#;
        assert_eq!(
            got,
            ended(want, 0, 7, UsageSource::Upstream),
            "cut at {cut}"
        );
    }
    let torn = run_answer(
        Answer::native(Shape::Whole, OPTIONS, about()),
        &[&body.as_bytes()[..40]],
    );
    assert_eq!(
        (torn.out.as_str(), torn.ended, torn.failure),
        ("", false, None)
    );
}

#[test]
fn what_is_too_large_to_convert_fails() {
    let huge = "x".repeat(9 * 1024 * 1024);
    let mut answer = Answer::native(Shape::Events, OPTIONS, about());
    let stream = events("\n", &[&say("a"), &say(&huge), DONE]);
    for piece in stream.as_bytes().chunks(1_000_000) {
        let out = answer.feed(Bytes::copy_from_slice(piece)).bytes;
        assert!(out.len() < 1000, "no chat bytes pass");
    }
    assert!(!answer.ended() && answer.failure().is_some());
    let mut answer = Answer::native(Shape::Whole, OPTIONS, about());
    for _ in 0..10 {
        answer.feed(Bytes::from(vec![b'x'; 1024 * 1024]));
    }
    assert_eq!(answer.finish().bytes, "");
    assert!(!answer.ended() && answer.failure().is_some());
}

// ---- any bytes, any pieces

fn odd_stream(random: &mut Random) -> (String, u32) {
    let end = random.pick(&["\n", "\r\n", "\r"]);
    let mut out = String::new();
    let mut content = 0;
    for _ in 0..random.below(20) {
        let (block, counts): (String, u32) = match random.below(8) {
            0 => (events(end, &[ROLE]), 0),
            1 => (events(end, &[STOP]), 0),
            2 => (format!(": note{end}"), 0),
            3 => (
                format!(
                    "event: message{end}data: {{\"choices\":{end}data: [{{\"delta\":{{\"content\":\"m\"}}}}]}}{end}{end}"
                ),
                1,
            ),
            4 => (
                events(
                    end,
                    &[&say(&"z"
                        .repeat(random.below(90_000))
                        .replace("zz", "z\\n"))],
                ),
                0,
            ),
            _ => (events(end, &[&say("北 \\\" {}[]")]), 1),
        };
        out.push_str(&block);
        content += counts + u32::from(block.contains("content\":\"z"));
    }
    (out + &events(end, &[DONE]), content)
}

#[test]
fn random_streams_pass_unchanged_and_are_counted_right() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let (stream, content) = odd_stream(&mut random);
        let pieces = random_pieces(stream.as_bytes(), &mut random);
        let got = run(Call::Chat, HIDING, &pieces);
        assert_eq!(
            got,
            ended(&stream, content, u64::from(content), UsageSource::Counted),
            "seed {seed}"
        );
    }
}

#[test]
fn bytes_of_any_kind_do_no_harm() {
    let samples = [
        events("\r\n", &[ROLE, &say("a"), USAGE, DONE]),
        events(
            "\n",
            &[r#"{"type":"message_delta","usage":{"output_tokens":9}}"#],
        ),
    ];
    for seed in 0..800 {
        let mut random = Random::new(seed);
        let mut bytes = samples[random.below(samples.len())].clone().into_bytes();
        for _ in 0..random.below(10) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, b"\r\n:{}\",[\xff\\"[random.below(10)]),
                _ => bytes[at] = bytes[at].wrapping_add(1),
            }
        }
        let pieces = random_pieces(&bytes, &mut random);
        for call in Call::ALL {
            let whole = run(*call, OPTIONS, &[&bytes]);
            assert_eq!(run(*call, OPTIONS, &pieces), whole, "seed {seed}");
            let native = run_answer(Answer::native(Shape::Events, OPTIONS, about()), &pieces);
            let again = run_answer(Answer::native(Shape::Events, OPTIONS, about()), &[&bytes]);
            assert_eq!(native, again, "seed {seed}");
        }
    }
}
