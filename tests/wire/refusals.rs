//! Bad input: its own status and code, nothing reserved, nothing upstream.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::Stream;
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::script::tokens;
use crate::support::wait::ms;
use crate::support::{KEY, OTHER_KEY};
use serde_json::{Value, json};

/// What is wrong, and a request that has it.
type Case = (&'static str, Ask);

fn whole(body: &str) -> Ask {
    Ask::post("/v1/chat/completions").body(body)
}

/// By status and code.
fn cases() -> Vec<(u16, &'static str, Vec<Case>)> {
    let no_text = Ask::post("/v1/chat/completions").body([0xff, 0xfe, 0x00]);
    vec![
        (
            400,
            "invalid_json",
            vec![
                ("not JSON", whole("{\"model\": \"m\", ")),
                ("nothing", whole("")),
                ("bytes that are no text", no_text),
                (
                    "words after the end",
                    whole("{\"model\": \"m\", \"messages\": []} and more"),
                ),
            ],
        ),
        (400, "invalid_request", bad_members()),
        (400, "invalid_request_id", bad_ids()),
        (401, "invalid_api_key", bad_keys()),
        (
            403,
            "model_not_allowed",
            vec![("another's model", chat().key(OTHER_KEY))],
        ),
        (
            404,
            "model_not_found",
            vec![("an unknown model", chat().set("model", "nope"))],
        ),
        (
            404,
            "not_found",
            vec![("another path", Ask::get("/v1/nothing"))],
        ),
        (
            404,
            "unknown_request",
            vec![
                ("an unknown record", Ask::get("/generations/never-was")),
                (
                    "an unknown cancel",
                    Ask::post("/generations/never-was/cancel"),
                ),
            ],
        ),
        (
            405,
            "method_not_allowed",
            vec![("another method", Ask::get("/v1/chat/completions"))],
        ),
        (
            413,
            "request_too_large",
            vec![("a large body", chat().set("pad", "x".repeat(70_000)))],
        ),
        (
            415,
            "unsupported_encoding",
            vec![("gzip", chat().header("Content-Encoding", "gzip"))],
        ),
    ]
}

fn bad_ids() -> Vec<Case> {
    vec![
        ("an id with spaces", chat().id("a b c")),
        ("an id of 129 characters", chat().id(&"a".repeat(129))),
        ("an id with a slash", chat().id("a/b")),
    ]
}

fn bad_keys() -> Vec<Case> {
    let bare = chat().no_key().header("Authorization", KEY);
    vec![
        ("no key", chat().no_key()),
        ("a wrong key", chat().key("sk-test-nobody-9999")),
        ("an empty key", chat().key("")),
        ("a key in no scheme", bare),
    ]
}

fn bad_members() -> Vec<Case> {
    let huge: Value = serde_json::from_str("1e30").unwrap();
    vec![
        ("JSON, but no object", whole("[1, 2]")),
        ("no model", chat().without("model")),
        ("a model that is no text", chat().set("model", 7)),
        (
            "a member twice",
            whole("{\"model\": \"m\", \"model\": \"n\", \"messages\": []}"),
        ),
        ("a negative cap", chat().set("max_tokens", -1)),
        ("a cap of zero", chat().set("max_tokens", 0)),
        ("a cap that is no number", chat().set("max_tokens", "many")),
        ("a cap that is not whole", chat().set("max_tokens", 1.5)),
        ("an absurd cap", chat().set("max_tokens", huge)),
        (
            "a cap just over the most",
            chat().set("max_tokens", 1_000_000_001),
        ),
        (
            "another absurd cap",
            chat().set("max_completion_tokens", u64::MAX),
        ),
        ("a stream that is no boolean", chat().set("stream", "yes")),
        ("a stream that is null", chat().set("stream", Value::Null)),
    ]
}

#[test]
fn each_bad_request_has_its_status_and_code_and_reaches_no_engine() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .server("max_body = \"64KiB\"")
        .other("models = [\"another\"]")
        .tenant("budget = { units = 1000, period = \"total\" }")
        .start();
    for (status, code, asks) in cases() {
        for (what, ask) in &asks {
            let answer = gateway.answer(ask);
            assert_eq!(answer.status, status, "{what}: {}", answer.text());
            answer.must_refuse(status, code);
        }
        let counted = gateway.metric("streamgate_rejected_total", &[("code", code)]);
        assert_eq!(counted, asks.len() as f64, "counted as {code}");
    }
    assert_eq!(engine.calls().len(), 0, "a refused request ran");
    assert_eq!(
        gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]),
        1000.0
    );
    gateway.settled();
}

#[test]
fn the_type_of_an_error_follows_its_status() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .other("models = [\"another\"]")
        .start();
    let cases = [
        (chat().without("model"), "invalid_request_error"),
        (chat().set("model", "nope"), "invalid_request_error"),
        (chat().no_key(), "authentication_error"),
        (chat().key(OTHER_KEY), "permission_error"),
    ];
    for (ask, expected) in cases {
        let error = gateway.answer(&ask).error();
        assert_eq!(error["type"], expected, "{error}");
        assert!(
            error["message"].as_str().is_some_and(|m| !m.is_empty()),
            "{error}"
        );
    }
}

#[test]
fn what_is_odd_but_allowed_runs() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let odd = [
        whole_chat().set("max_tokens", Value::Null),
        whole_chat().set("max_tokens", 1_000_000_000),
        whole_chat().set("max_completion_tokens", 5),
        whole_chat().set("stream", false),
        whole_chat().set("x_unknown", json!({"a": [1, 2]})),
        whole_chat().id(&"a".repeat(128)),
        whole_chat().id("named:ok_1.2-3"),
        whole_chat().no_key().header("X-API-Key", KEY),
        whole_chat()
            .no_key()
            .header("authorization", &format!("bearer {KEY}")),
        whole("{\"model\": \"m\", \"messages\": [], \"seed\": 1, \"seed\": 2}"),
    ];
    for ask in odd {
        let answer = gateway.answer(&ask);
        assert_eq!(answer.status, 200, "{ask:?}: {}", answer.text());
    }
    gateway.settled();
}

#[test]
fn a_refused_body_does_not_become_the_next_request() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let hidden = Ask::get("/v1/models").bytes();
    let mut stream = Stream::connect(gateway.addr());
    stream.write(
        Ask::post("/v1/chat/completions")
            .no_key()
            .head_for(hidden.len())
            .as_bytes(),
    );
    stream.write(&hidden);
    stream.next_answer().must_refuse(401, "invalid_api_key");
    // either the connection is closed, or the body was read past: the next answer is the next request's
    if stream
        .try_write(&Ask::get("/generations/never-was").bytes())
        .is_ok()
        && let Ok(body) = stream.try_rest()
    {
        assert!(
            body.is_empty() || stream.status() == 404,
            "the body was taken for a request: {stream:?}"
        );
    }
}

#[test]
fn a_body_without_a_length_is_refused_where_it_grows_too_large() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .server("max_body = \"64KiB\"")
        .start();
    let head = Ask::post("/v1/chat/completions").header("Transfer-Encoding", "chunked");
    let mut stream = Stream::connect(gateway.addr());
    stream.write(
        head.head_for(0)
            .replace("Content-Length: 0\r\n", "")
            .as_bytes(),
    );
    for _ in 0..70 {
        let piece = [&b"400\r\n"[..], &[b' '; 1024], b"\r\n"].concat();
        // the gateway need not read what it has refused
        if stream.try_write(&piece).is_err() {
            break;
        }
    }
    stream.answer().must_refuse(413, "request_too_large");
    assert_eq!(engine.calls().len(), 0);
}

#[test]
fn an_anonymous_tenant_serves_requests_that_show_no_key_and_no_others() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("anonymous = true")
        .start();
    assert_eq!(gateway.answer(&chat().no_key().id("nobody-1")).status, 200);
    assert_eq!(gateway.ended("nobody-1")["tenant"], "acme");
    gateway
        .answer(&chat().key("sk-test-nobody-9999"))
        .must_refuse(401, "invalid_api_key");
    assert_eq!(gateway.answer(&chat().key(OTHER_KEY)).status, 200);
}
