//! Only what must change changes.

use super::*;

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
