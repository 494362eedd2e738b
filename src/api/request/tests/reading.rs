//! What is read of a request.

use super::*;

#[test]
fn a_chat_request_is_read() {
    let request = parse(
        Call::Chat,
        r#" {"stream" : true, "max_tokens":5e1, "max_completion_tokens": 40.0, "n":3, "mod\u0065l":"ca\u0066\u00e9",
            "stream_options":{"include_usage":true}, "messages":[{"role":"user","content":"hello there"}]} "#,
    );
    assert_eq!(request.model, "café");
    assert!(request.stream && request.usage_asked);
    assert_eq!(request.cap, Some(Units(40)), "the smaller of the two");
    assert_eq!(request.input_estimate(4), Units(3));
    assert_eq!(request.output_reserve(None, Units(1024)), Units(120));
    assert_eq!(
        request.output_reserve(Some(Units(10)), Units(1024)),
        Units(30)
    );
    assert_eq!(
        request.output_reserve(Some(Units(100)), Units(1024)),
        Units(120)
    );
    assert!(request.prompt.is_some());
}

#[test]
fn the_member_that_bounds_the_output_is_known_by_the_name_its_client_knows() {
    let named = |call, body| parse(call, body).cap_member();
    let both = r#"{"model":"m","max_tokens":50,"max_completion_tokens":40}"#;
    assert_eq!(named(Call::Chat, both), Some("max_completion_tokens"));
    let null = r#"{"model":"m","max_completion_tokens":null}"#;
    assert_eq!(named(Call::Chat, null), Some("max_tokens"));
    let none = r#"{"model":"m","input":"hello"}"#;
    assert_eq!(named(Call::Responses, none), Some("max_output_tokens"));
    assert_eq!(named(Call::Native, none), Some("max_output_units"));
    assert_eq!(named(Call::Embeddings, none), None);
}

#[test]
fn what_a_request_leaves_out_has_its_default() {
    let request = parse(Call::Chat, r#"{"model":"m"}"#);
    assert!(!request.stream && !request.usage_asked);
    assert_eq!(
        (request.cap, request.choices, &request.prompt),
        (None, 1, &None)
    );
    assert_eq!(request.output_reserve(None, Units(1024)), Units(1024));
    assert_eq!(
        request.output_reserve(Some(Units(4096)), Units(1024)),
        Units(4096)
    );
    let nulls = r#"{"model":"m","max_tokens":null,"n":null,"stream_options":null,"max_completion_tokens":null}"#;
    let request = parse(Call::Chat, nulls);
    assert_eq!((request.cap, request.choices), (None, 1));
}

#[test]
fn usage_is_asked_for_only_of_a_stream() {
    for (body, asked) in [
        (
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
            true,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"include\u005fusage":true}}"#,
            true,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"x":{"include_usage":true}}}"#,
            false,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":false}}"#,
            false,
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":null}}"#,
            false,
        ),
        (
            r#"{"model":"m","stream":false,"stream_options":{"include_usage":true}}"#,
            false,
        ),
        (
            r#"{"model":"m","stream":true,"x":{"stream_options":{"include_usage":true}}}"#,
            false,
        ),
    ] {
        assert_eq!(parse(Call::Chat, body).usage_asked, asked, "{body}");
    }
}

#[test]
fn each_api_has_members_of_its_own() {
    let request = parse(
        Call::Completions,
        r#"{"model":"m","prompt":"hello there","suffix":"end!","max_tokens":5,"best_of":4,"n":2}"#,
    );
    assert_eq!(
        (
            request.input_estimate(4),
            request.output_reserve(None, Units(9))
        ),
        (Units(4), Units(20))
    );
    let request = parse(
        Call::Responses,
        r#"{"model":"m","input":"hello there","instructions":"be so","max_output_tokens":7,"max_tokens":"x","n":0}"#,
    );
    assert_eq!(
        (request.input_estimate(4), request.cap),
        (Units(4), Some(Units(7)))
    );
    let request = parse(
        Call::Messages,
        r#"{"model":"m","system":[{"type":"text","text":"be so"}],"messages":[{"role":"user","content":"hi"}],"tools":[{"a":1}],"max_tokens":9,"n":0}"#,
    );
    assert_eq!(
        (request.input.text_bytes, request.cap),
        (5 + 2 + 9, Some(Units(9)))
    );
    let request = parse(
        Call::Embeddings,
        r#"{"model":"m","input":["hello","there"],"max_tokens":-1}"#,
    );
    assert_eq!(
        (
            request.input_estimate(4),
            request.output_reserve(None, Units(9))
        ),
        (Units(3), Units(0))
    );
    let request = parse(
        Call::CountTokens,
        r#"{"model":"m","messages":[{"role":"user","content":"hello there"}]}"#,
    );
    assert_eq!(
        (
            request.input_estimate(4),
            request.output_reserve(None, Units(9))
        ),
        (Units(0), Units(0))
    );
}

#[test]
fn several_prompts_are_several_answers() {
    for (prompt, choices, units) in [
        (r#""a b""#, 2, 1),
        (r#"["a","b","c"]"#, 6, 1),
        ("[1,2,3]", 2, 3),
        ("[[1,2],[3]]", 4, 3),
        ("[]", 2, 0),
    ] {
        let request = parse(
            Call::Completions,
            &format!(r#"{{"model":"m","prompt":{prompt},"n":2}}"#),
        );
        assert_eq!(
            (request.choices, request.input_estimate(4)),
            (choices, Units(units)),
            "{prompt}"
        );
    }
}

#[test]
fn absurd_counts_of_answers_saturate() {
    let request = parse(
        Call::Chat,
        r#"{"model":"m","n":1000000000,"max_tokens":1000000000}"#,
    );
    assert_eq!(
        request.output_reserve(None, Units(1)),
        Units(1_000_000_000_000_000_000)
    );
    let request = parse(
        Call::Completions,
        r#"{"model":"m","n":1000000000,"max_tokens":1000000000,"prompt":["","","","","","","","","","","","","","","","","","","",""]}"#,
    );
    assert_eq!(request.output_reserve(None, Units(1)), Units(u64::MAX));
}

#[test]
fn a_native_request_is_read() {
    let request = parse(
        Call::Native,
        r#"{"model":"m","input":"say three things","max_output_units":50,"stream":true,"request_id":"job-1"}"#,
    );
    assert_eq!(request.cap, Some(Units(50)));
    assert_eq!(request.request_id.unwrap().as_str(), "job-1");
    assert!(
        parse(
            Call::Native,
            r#"{"model":"m","messages":[],"request_id":null}"#
        )
        .request_id
        .is_none()
    );
}
