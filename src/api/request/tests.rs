//! What is read of a request, what is refused, and that only what must change changes.

use super::{Edits, ParseError, Request};
use crate::api::{Call, Code};
use crate::budget::Units;
use crate::config::CapMember;
use crate::sse::tests::Random;
use bytes::Bytes;

fn parse(call: Call, body: &str) -> Request {
    Request::parse(call, body.as_bytes()).unwrap_or_else(|e| panic!("{body}: {e:?}"))
}

fn refused(call: Call, body: impl AsRef<[u8]>) -> ParseError {
    let text = String::from_utf8_lossy(body.as_ref()).into_owned();
    match Request::parse(call, body.as_ref()) {
        Err(e) => e,
        Ok(request) => panic!("{text} was taken as {request:?}"),
    }
}

/// The code and the member at fault.
fn check_refused(call: Call, body: impl AsRef<[u8]>, code: Code, param: Option<&str>) {
    let text = String::from_utf8_lossy(body.as_ref()).into_owned();
    let e = refused(call, body);
    assert_eq!(
        (e.code, e.param.as_deref()),
        (code, param),
        "{text}: {}",
        e.message
    );
}

const EDITS: Edits<'static> = Edits {
    model: "m",
    cap: None,
    cap_member: CapMember::MaxTokens,
    include_usage: true,
};

/// The upstream's body as the edits make it.
fn check_edit(call: Call, body: &str, edits: &Edits<'_>, want: &str) {
    let request = parse(call, body);
    let got = request.upstream_body(&Bytes::copy_from_slice(body.as_bytes()), edits);
    assert_eq!(std::str::from_utf8(&got).unwrap(), want, "{body}");
}

// ---- reading

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

// ---- refusing

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

// ---- editing

const ODD: &str = r#"{"stream" : true,
 "temperature":1.0, "top_p":1e0,"n":1,  "seed":12345678901234567890 ,"presence_penalty":-0.0,"x_dup":1,"x_dup":{"a":1.50},
 "x_\u0065scaped":"caf\u00e9 \ud83d\ude00 \/ \u0000","user":"北京 \"q\" {[,]}",
 "messages":[ {"role":"user","content":"hel\u006co \n there","x":[1.0,1e3,null,true]} ],"stop":["\u000a"],MORE "model":"m" }"#;

#[test]
fn a_request_with_nothing_to_change_goes_as_the_very_same_bytes() {
    let body = Bytes::from(ODD.replace(
        "MORE",
        r#""max_tokens":50,"stream_options":{ "include_usage" : true },"#,
    ));
    let request = Request::parse(Call::Chat, &body).unwrap();
    let edits = Edits {
        cap: Some(Units(50)),
        ..EDITS
    };
    let got = request.upstream_body(&body, &edits);
    assert_eq!((got.as_ptr(), got.len()), (body.as_ptr(), body.len()));
}

#[test]
fn usage_is_asked_for_by_the_smallest_edit() {
    let ask = |options: &str, want: &str| {
        let body = ODD.replace("MORE", options);
        check_edit(Call::Chat, &body, &EDITS, &ODD.replace("MORE", want));
    };
    ask(
        r#""stream_options":null,"#,
        r#""stream_options":{"include_usage":true},"#,
    );
    ask(
        r#""stream_options":{},"#,
        r#""stream_options":{"include_usage":true},"#,
    );
    ask(
        r#""stream_options": { } ,"#,
        r#""stream_options": {"include_usage":true } ,"#,
    );
    ask(
        r#""stream_options":{"x":1.0,"include_usage":false},"#,
        r#""stream_options":{"x":1.0,"include_usage":true},"#,
    );
    ask(
        r#""stream_options":{"include_usage":null, "x":{"y":[1]}},"#,
        r#""stream_options":{"include_usage":true, "x":{"y":[1]}},"#,
    );
    ask(
        r#""stream_options":{ "x":{"include_usage":false} },"#,
        r#""stream_options":{ "x":{"include_usage":false},"include_usage":true },"#,
    );
    ask(
        r#""stream_options":{"x":[1.0,"k"],"y":"z"},"#,
        r#""stream_options":{"x":[1.0,"k"],"y":"z","include_usage":true},"#,
    );
    check_edit(
        Call::Chat,
        "{\"stream\":true,\"model\":\"m\" \n}",
        &EDITS,
        "{\"stream\":true,\"model\":\"m\",\"stream_options\":{\"include_usage\":true} \n}",
    );
    check_edit(
        Call::Completions,
        r#"{"model":"m","stream":true}"#,
        &EDITS,
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
    );
}

#[test]
fn usage_is_not_asked_for_where_it_is_no_option() {
    for (call, body) in [
        (Call::Chat, r#"{"model":"m","stream":false}"#),
        (Call::Chat, r#"{"model":"m","stream_options":{}}"#),
        (Call::Responses, r#"{"model":"m","stream":true}"#),
        (Call::Messages, r#"{"model":"m","stream":true}"#),
        (Call::Embeddings, r#"{"model":"m","stream":true}"#),
    ] {
        check_edit(call, body, &EDITS, body);
    }
    let keep = Edits {
        include_usage: false,
        ..EDITS
    };
    check_edit(
        Call::Chat,
        r#"{"model":"m","stream":true}"#,
        &keep,
        r#"{"model":"m","stream":true}"#,
    );
}

const CAPPED: Edits<'static> = Edits {
    cap: Some(Units(100)),
    ..EDITS
};

const CAPPED_BY_NEW_NAME: Edits<'static> = Edits {
    cap_member: CapMember::MaxCompletionTokens,
    ..CAPPED
};

#[test]
fn a_cap_is_lowered_where_it_stands() {
    for (body, want) in [
        (
            r#"{"max_tokens":500000,"model":"m"}"#,
            r#"{"max_tokens":100,"model":"m"}"#,
        ),
        (
            r#"{"max_tokens": 1e2 ,"model":"m"}"#,
            r#"{"max_tokens": 1e2 ,"model":"m"}"#,
        ),
        (
            r#"{"max_completion_tokens":101,"model":"m"}"#,
            r#"{"max_completion_tokens":100,"model":"m"}"#,
        ),
        (
            r#"{"max_tokens":200,"max_completion_tokens":101,"model":"m"}"#,
            r#"{"max_tokens":100,"max_completion_tokens":100,"model":"m"}"#,
        ),
        (
            r#"{"max_tokens":50,"max_completion_tokens":101,"model":"m"}"#,
            r#"{"max_tokens":50,"max_completion_tokens":100,"model":"m"}"#,
        ),
        (
            r#"{"max_tokens":null,"max_completion_tokens":7,"model":"m"}"#,
            r#"{"max_tokens":null,"max_completion_tokens":7,"model":"m"}"#,
        ),
    ] {
        check_edit(Call::Chat, body, &CAPPED, want);
        check_edit(Call::Chat, body, &CAPPED_BY_NEW_NAME, want);
    }
    let body = r#"{"model":"m","max_tokens":4096}"#;
    let want = r#"{"model":"m","max_tokens":100}"#;
    check_edit(Call::Messages, body, &CAPPED_BY_NEW_NAME, want);
}

#[test]
fn a_cap_is_added_where_none_stands() {
    let bare = r#"{"model":"m"}"#;
    for (call, edits, body, want) in [
        (
            Call::Chat,
            CAPPED,
            bare,
            r#"{"model":"m","max_tokens":100}"#,
        ),
        (
            Call::Chat,
            CAPPED_BY_NEW_NAME,
            bare,
            r#"{"model":"m","max_completion_tokens":100}"#,
        ),
        (
            Call::Completions,
            CAPPED_BY_NEW_NAME,
            bare,
            r#"{"model":"m","max_tokens":100}"#,
        ),
        (
            Call::Messages,
            CAPPED_BY_NEW_NAME,
            bare,
            r#"{"model":"m","max_tokens":100}"#,
        ),
        (
            Call::Responses,
            CAPPED,
            bare,
            r#"{"model":"m","max_output_tokens":100}"#,
        ),
        (Call::Embeddings, CAPPED, bare, bare),
        (Call::CountTokens, CAPPED, bare, bare),
        (
            Call::Chat,
            CAPPED,
            r#"{"max_tokens":null,"model":"m"}"#,
            r#"{"max_tokens":100,"model":"m"}"#,
        ),
        (
            Call::Chat,
            CAPPED_BY_NEW_NAME,
            r#"{"max_tokens":null,"model":"m"}"#,
            r#"{"max_tokens":null,"model":"m","max_completion_tokens":100}"#,
        ),
    ] {
        check_edit(call, body, &edits, want);
    }
}

#[test]
fn a_mapped_model_is_the_only_change() {
    let edits = Edits {
        model: "org/Model-8B \"q\"",
        include_usage: false,
        ..EDITS
    };
    let want = ODD
        .replace("MORE", "")
        .replace(r#""model":"m""#, r#""model":"org/Model-8B \"q\"""#);
    check_edit(Call::Chat, &ODD.replace("MORE", ""), &edits, &want);
    check_edit(
        Call::Chat,
        r#"{"mod\u0065l" : "\u006d"}"#,
        &EDITS,
        r#"{"mod\u0065l" : "\u006d"}"#,
    );
}

#[test]
fn all_edits_at_once_leave_the_rest() {
    let edits = Edits {
        model: "big",
        cap: Some(Units(9)),
        ..EDITS
    };
    check_edit(
        Call::Chat,
        r#"{ "stream":true , "x":[1.0] , "model":"m" }"#,
        &edits,
        r#"{ "stream":true , "x":[1.0] , "model":"big","max_tokens":9,"stream_options":{"include_usage":true} }"#,
    );
}

#[test]
fn a_native_request_goes_up_as_a_chat_request() {
    let edits = Edits {
        model: "up",
        cap: Some(Units(100)),
        ..EDITS
    };
    check_edit(
        Call::Native,
        r#"{"model":"m","input":"say \u0061 \"b\"","max_output_units":50,"stream":true,"request_id":"r"}"#,
        &edits,
        r#"{"model":"up","messages":[{"role":"user","content":"say \u0061 \"b\""}],"max_tokens":50,"stream":true,"stream_options":{"include_usage":true}}"#,
    );
    check_edit(
        Call::Native,
        r#"{"messages":[ {"role":"user","content":[1.0]} ],"model":"m"}"#,
        &Edits { cap: None, ..edits },
        r#"{"model":"up","messages":[ {"role":"user","content":[1.0]} ],"stream":false}"#,
    );
    check_edit(
        Call::Native,
        r#"{"model":"m","input":"x","max_output_units":500}"#,
        &Edits {
            cap_member: CapMember::MaxCompletionTokens,
            ..edits
        },
        r#"{"model":"up","messages":[{"role":"user","content":"x"}],"max_completion_tokens":100,"stream":false}"#,
    );
}

#[test]
fn edited_requests_are_json_and_read_the_same_but_for_the_edits() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let mut members = vec![r#""model":"m""#.to_owned()];
        for _ in 0..random.below(6) {
            members.push(
                random
                    .pick(&[
                        r#""stream":true"#,
                        r#""stream_options":{}"#,
                        r#""stream_options":{ "a":[{"b":"}"}] }"#,
                        r#""max_tokens":7"#,
                        r#""max_tokens": 1000 "#,
                        r#""max_completion_tokens":null"#,
                        r#""x":"\"}],{[\\""#,
                        r#""y" :{"model":"z","max_tokens":1}"#,
                    ])
                    .to_owned(),
            );
        }
        let last = members.len() - 1;
        members.swap(0, random.below(last + 1));
        let body = Bytes::from(format!("{{ {} }}", members.join(" , ")));
        let Ok(request) = Request::parse(Call::Chat, &body) else {
            continue;
        };
        let edits = Edits {
            model: "up",
            cap: Some(Units(100)),
            ..EDITS
        };
        let out = request.upstream_body(&body, &edits);
        let again = Request::parse(Call::Chat, &out).unwrap();
        assert_eq!(again.model, "up");
        assert!(again.cap.is_some_and(|cap| cap <= Units(100)));
        assert_eq!(again.usage_asked, again.stream);
        let strip = |bytes: &[u8]| {
            let mut value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
            let object = value.as_object_mut().unwrap();
            for edited in [
                "model",
                "max_tokens",
                "max_completion_tokens",
                "stream_options",
            ] {
                object.remove(edited);
            }
            value
        };
        assert_eq!(strip(&out), strip(&body), "seed {seed}");
        let edited_again = again.upstream_body(&out, &edits);
        assert_eq!(edited_again, out, "an edited body needs no edit");
    }
}

#[test]
fn bytes_of_any_kind_do_no_harm() {
    let seeds = [
        ODD,
        r#"{"model":"m","stream_options":{"include_usage":false},"prompt":[[1],[2]],"tools":[{"type":"image","input":{}}]}"#,
    ];
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut body = random.pick(&seeds).as_bytes().to_vec();
        for _ in 0..random.below(6) {
            if body.is_empty() {
                break;
            }
            let at = random.below(body.len());
            match random.below(3) {
                0 => drop(body.remove(at)),
                1 => body.insert(at, b"{}[],:\"\\ u0-.\xffe"[random.below(15)]),
                _ => body.truncate(at),
            }
        }
        for call in Call::ALL {
            if let Ok(request) = Request::parse(*call, &body) {
                request.upstream_body(&Bytes::from(body.clone()), &EDITS);
            }
        }
    }
}
