//! What is refused, with its code and the member at fault.

use super::*;

#[test]
fn what_is_not_one_json_document_is_invalid_json() {
    let deep = format!(r#"{{"model":"m","x":{}"#, "[".repeat(100_000));
    let bodies: [&[u8]; 14] = [
        b"",
        b"   ",
        br#"{"model": "m", "#,
        br#"{"model":"m"} x"#,
        br#"{"model":"m"}{"model":"m"}"#,
        br#"{"model":"m","x":NaN}"#,
        br#"{"model":"m","x":01}"#,
        br#"{"model":"m","x":1.}"#,
        br#"{"model":"m",}"#,
        b"{\"model\":\"m\",\"x\":\"a\nb\"}",
        b"{\"model\":\"m\",\"x\":\"\xff\"}",
        b"\xef\xbb\xbf{\"model\":\"m\"}",
        br#"{'model':'m'}"#,
        deep.as_bytes(),
    ];
    for body in bodies {
        check_refused(Call::Chat, body, Code::InvalidJson, None);
    }
    let e = refused(Call::Chat, r#"{"model":"m" "x":1}"#);
    assert!(e.message.contains("column 14"), "says where: {}", e.message);
}

#[test]
fn what_is_no_object_is_an_invalid_request() {
    for body in ["[]", "null", "1", "\"m\"", "true", "[{\"model\":\"m\"}]"] {
        check_refused(Call::Chat, body, Code::InvalidRequest, None);
    }
}

#[test]
fn a_model_must_be_named() {
    for body in [
        r#"{"messages":[]}"#,
        r#"{"model":null}"#,
        r#"{"model":7}"#,
        r#"{"model":""}"#,
        r#"{"model":["m"]}"#,
        r#"{"model":"\ud800"}"#,
    ] {
        check_refused(Call::Chat, body, Code::InvalidRequest, Some("model"));
    }
}

#[test]
fn caps_are_whole_numbers_from_one_to_a_thousand_million() {
    for (call, name) in [
        (Call::Chat, "max_tokens"),
        (Call::Chat, "max_completion_tokens"),
        (Call::Chat, "n"),
        (Call::Completions, "max_tokens"),
        (Call::Completions, "best_of"),
        (Call::Messages, "max_tokens"),
        (Call::Responses, "max_output_tokens"),
        (Call::Native, "max_output_units"),
    ] {
        let body = |value: &str| format!(r#"{{"model":"m","{name}":{value},"input":"x"}}"#);
        for value in [
            "0",
            "-1",
            "1000000001",
            "1e30",
            "1.5",
            "\"many\"",
            "true",
            "[1]",
            "{}",
            "1000000000000000000000000000000",
        ] {
            check_refused(call, body(value), Code::InvalidRequest, Some(name));
        }
        for value in ["1", "1000000000", "50.0", "1e3", "null"] {
            parse(call, &body(value));
        }
    }
}

#[test]
fn a_stream_that_is_no_boolean_is_refused() {
    for call in Call::ALL {
        for value in ["\"true\"", "1", "0", "null", "{}", "[true]"] {
            let body = format!(r#"{{"model":"m","stream":{value}}}"#);
            check_refused(*call, body, Code::InvalidRequest, Some("stream"));
        }
    }
    check_refused(
        Call::Chat,
        r#"{"model":"m","stream_options":7}"#,
        Code::InvalidRequest,
        Some("stream_options"),
    );
    let odd = r#"{"model":"m","stream_options":{"include_usage":"yes"}}"#;
    check_refused(
        Call::Chat,
        odd,
        Code::InvalidRequest,
        Some("stream_options.include_usage"),
    );
}

#[test]
fn a_member_the_gateway_reads_may_stand_once() {
    for (call, first, second, name) in [
        (Call::Chat, r#""model":"m""#, r#""model":"dear""#, "model"),
        (Call::Chat, r#""model":"m""#, r#""mod\u0065l":"m""#, "model"),
        (Call::Chat, r#""stream":true"#, r#""stream":true"#, "stream"),
        (
            Call::Chat,
            r#""max_tokens":1"#,
            r#""max_tokens":1"#,
            "max_tokens",
        ),
        (
            Call::Chat,
            r#""max_tokens":1"#,
            r#""max\u005ftokens":null"#,
            "max_tokens",
        ),
        (Call::Chat, r#""n":1"#, r#""n":2"#, "n"),
        (
            Call::Chat,
            r#""messages":[]"#,
            r#""messages":[]"#,
            "messages",
        ),
        (
            Call::Chat,
            r#""stream_options":null"#,
            r#""stream_options":{}"#,
            "stream_options",
        ),
        (
            Call::Completions,
            r#""prompt":"a""#,
            r#""prompt":"b""#,
            "prompt",
        ),
        (Call::Responses, r#""input":"a""#, r#""input":"b""#, "input"),
        (
            Call::Responses,
            r#""max_output_tokens":1"#,
            r#""max_output_tokens":1"#,
            "max_output_tokens",
        ),
        (
            Call::Messages,
            r#""max_tokens":1"#,
            r#""max_tokens":1"#,
            "max_tokens",
        ),
        (
            Call::Native,
            r#""request_id":"a""#,
            r#""request_id":"b""#,
            "request_id",
        ),
    ] {
        let model = if name == "model" {
            ""
        } else {
            r#""model":"m","#
        };
        let between = if call == Call::Native { "" } else { "\"x\":1," };
        let body = format!("{{{model}{first},{between}{second}}}");
        check_refused(call, body, Code::InvalidRequest, Some(name));
    }
    let inner =
        r#"{"model":"m","stream_options":{"include_usage":false,"include_usag\u0065":true}}"#;
    let name = Some("stream_options.include_usage");
    check_refused(Call::Chat, inner, Code::InvalidRequest, name);
}

#[test]
fn members_the_gateway_does_not_read_may_stand_twice() {
    // Also members of the same name deeper down, and names that another API reads.
    parse(
        Call::Chat,
        r#"{"model":"m","x":1,"x":{"model":1,"model":2},"stream_options":{"y":1,"y":2},"max_output_tokens":1,"max_output_tokens":"x"}"#,
    );
    parse(Call::Chat, r#"{"model":"m","tools":[],"tools":[]}"#);
}

#[test]
fn a_body_of_nothing_but_duplicates_is_read_in_linear_time() {
    // Quadratic reading of these would take minutes.
    let tools = r#""tools":[],"#.repeat(200_000);
    let ns = r#""n":1,"#.repeat(200_000);
    let body = format!(r#"{{"model":"m",{tools}{ns}"x":1}}"#);
    check_refused(Call::Chat, body, Code::InvalidRequest, Some("n"));
    let odd = r#""x":1,"#.repeat(200_000);
    let body = format!(r#"{{"model":"m",{odd}"y":1}}"#);
    check_refused(Call::Native, body, Code::InvalidRequest, Some("x"));
}

#[test]
fn a_native_request_takes_its_own_members_only() {
    check_refused(
        Call::Native,
        r#"{"model":"m","input":"x","temperature":1}"#,
        Code::InvalidRequest,
        Some("temperature"),
    );
    check_refused(
        Call::Native,
        r#"{"input":"no model"}"#,
        Code::InvalidRequest,
        Some("model"),
    );
    check_refused(
        Call::Native,
        r#"{"model":"m"}"#,
        Code::InvalidRequest,
        Some("input"),
    );
    check_refused(
        Call::Native,
        r#"{"model":"m","input":"x","messages":[]}"#,
        Code::InvalidRequest,
        Some("input"),
    );
    check_refused(
        Call::Native,
        r#"{"model":"m","input":["x"]}"#,
        Code::InvalidRequest,
        Some("input"),
    );
    check_refused(
        Call::Native,
        r#"{"model":"m","messages":"x"}"#,
        Code::InvalidRequest,
        Some("messages"),
    );
    for id in ["\"a b\"", "7", "\"\"", &format!("\"{}\"", "a".repeat(129))] {
        let body = format!(r#"{{"model":"m","input":"x","request_id":{id}}}"#);
        check_refused(
            Call::Native,
            body,
            Code::InvalidRequestId,
            Some("request_id"),
        );
    }
}

#[test]
fn an_error_does_not_repeat_all_a_client_sent() {
    let long = "x".repeat(1_000_000);
    let e = refused(
        Call::Chat,
        format!(r#"{{"model":"m","max_tokens":"{long}"}}"#),
    );
    assert!(e.message.len() < 200, "{} bytes", e.message.len());
    let e = refused(Call::Native, format!(r#"{{"model":"m","{long}":1}}"#));
    assert!(e.message.len() < 1000 && e.param.unwrap().len() < 1000);
}
