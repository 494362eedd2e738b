//! What passes, what does not, and when.

use super::*;

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
