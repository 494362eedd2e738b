//! The gateway's own API, written from a chat answer.

use super::*;

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
