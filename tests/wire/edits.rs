//! The request upstream: edited where the gateway must, and nowhere else a byte changed.

use crate::support::ask::Ask;
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::script::tokens;
use crate::support::wait::ms;

const CHAT: &str = "/v1/chat/completions";

/// The model `fast` is `llama-8b` upstream; the tenant's cap is 50.
fn ground() -> (Engine, Gateway) {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let pool = |name: &str, model: &str, lines: &str| {
        format!(
            "[[pool]]\nname = \"{name}\"\nmodels = [{model}]\nbackends = [{{ addr = \"{}\" }}]\n{lines}\n",
            engine.addr()
        )
    };
    let mapped = "{ public = \"fast\", upstream = \"llama-8b\" }";
    let odd = "{ public = \"odd\", upstream = \"a\\\"b\\\\c\" }";
    let pools = [
        pool("mapped", &format!("{mapped}, {odd}"), ""),
        pool("new", "\"new\"", "cap_member = \"max_completion_tokens\""),
        pool("a", "\"claude\"", "protocol = \"anthropic\""),
    ];
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("max_output_units = 50")
        .extra(&pools.concat())
        .start();
    (engine, gateway)
}

#[track_caller]
fn check(ground: &(Engine, Gateway), path: &str, sent: &str, upstream: &str) {
    let (engine, gateway) = ground;
    let before = engine.calls().len();
    let answer = gateway.answer(&Ask::post(path).body(sent));
    assert_eq!(answer.status, 200, "{sent}: {}", answer.text());
    let call = engine.call(before);
    assert_eq!(
        String::from_utf8_lossy(&call.body),
        upstream,
        "{path} {sent}"
    );
    assert_eq!(
        call.headers.get("content-length"),
        Some(upstream.len().to_string().as_str())
    );
}

#[test]
fn what_needs_no_edit_goes_as_it_came() {
    let ground = ground();
    let asked = "\"stream_options\":{\"include_usage\":true}";
    for body in [
        "{\"model\":\"m\",\"messages\":[],\"max_tokens\":50}".to_owned(),
        " {\t\"max_tokens\" : 5e0 ,\r\n \"model\":\"\\u006d\", \"messages\":[] , \"x\":[1.0,1e3,-0,12345678901234567890,1E+2] } ".to_owned(),
        format!("{{\"x\":1,\"x\":2,\"model\":\"m\",\"messages\":[{{\"content\":\"\\ud83d\\ude00 \\/ é\"}}],\"max_tokens\":1,\"stream\":true,{asked}}}"),
        "{\"model\":\"m\",\"messages\":[],\"max_completion_tokens\":50,\"temperature\":1.0,\"logit_bias\":{\"50256\":-100}}".to_owned(),
    ] {
        check(&ground, CHAT, &body, &body);
    }
}

#[test]
fn only_the_member_in_question_is_edited() {
    let ground = ground();
    let cases = [
        // a mapped model, also one whose name must be quoted
        (
            CHAT,
            r#"{ "x": 1.0, "model" : "fast" , "max_tokens":7, "messages":[] }"#,
            r#"{ "x": 1.0, "model" : "llama-8b" , "max_tokens":7, "messages":[] }"#,
        ),
        (
            CHAT,
            r#"{"model":"\u006fdd","max_tokens":7,"messages":[]}"#,
            r#"{"model":"a\"b\\c","max_tokens":7,"messages":[]}"#,
        ),
        // a cap that is too high, in each spelling of the number and under each name
        (
            CHAT,
            r#"{"messages":[],"max_tokens" : 1e3,"model":"m","a":1e3}"#,
            r#"{"messages":[],"max_tokens" : 50,"model":"m","a":1e3}"#,
        ),
        (
            CHAT,
            r#"{"model":"m","max_tokens":100,"max_completion_tokens":60,"messages":[]}"#,
            r#"{"model":"m","max_tokens":50,"max_completion_tokens":50,"messages":[]}"#,
        ),
        (
            CHAT,
            r#"{"model":"m","max_tokens":10,"max_completion_tokens":60,"messages":[]}"#,
            r#"{"model":"m","max_tokens":10,"max_completion_tokens":50,"messages":[]}"#,
        ),
        // no cap, or a null one
        (
            CHAT,
            r#"{"model":"m","messages":[]}"#,
            r#"{"model":"m","messages":[],"max_tokens":50}"#,
        ),
        (
            CHAT,
            "{\"model\":\"m\",\"messages\":[ ]\n}\n",
            "{\"model\":\"m\",\"messages\":[ ],\"max_tokens\":50\n}\n",
        ),
        (
            CHAT,
            r#"{"model":"m","max_tokens":null,"messages":[]}"#,
            r#"{"model":"m","max_tokens":50,"messages":[]}"#,
        ),
        (
            CHAT,
            r#"{"model":"new","messages":[]}"#,
            r#"{"model":"new","messages":[],"max_completion_tokens":50}"#,
        ),
        // usage, in every state the options can be in
        (
            CHAT,
            r#"{"model":"m","messages":[],"max_tokens":5,"stream":true}"#,
            r#"{"model":"m","messages":[],"max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}"#,
        ),
        (
            CHAT,
            r#"{"model":"m","messages":[],"stream_options" : null,"max_tokens":5,"stream":true}"#,
            r#"{"model":"m","messages":[],"stream_options" : {"include_usage":true},"max_tokens":5,"stream":true}"#,
        ),
        (
            CHAT,
            r#"{"model":"m","messages":[],"stream_options":{ "x" : 1.0 , "include_usage" : false },"max_tokens":5,"stream":true}"#,
            r#"{"model":"m","messages":[],"stream_options":{ "x" : 1.0 , "include_usage" : true },"max_tokens":5,"stream":true}"#,
        ),
        (
            CHAT,
            r#"{"model":"m","messages":[],"stream_options":{ "x" : 1.0 },"max_tokens":5,"stream":true}"#,
            r#"{"model":"m","messages":[],"stream_options":{ "x" : 1.0,"include_usage":true },"max_tokens":5,"stream":true}"#,
        ),
        // the other calls' own names for a cap
        (
            "/v1/completions",
            r#"{"model":"m","prompt":"a"}"#,
            r#"{"model":"m","prompt":"a","max_tokens":50}"#,
        ),
        (
            "/v1/responses",
            r#"{"model":"m","input":"a"}"#,
            r#"{"model":"m","input":"a","max_output_tokens":50}"#,
        ),
        (
            "/v1/responses",
            r#"{"max_output_tokens":51,"model":"fast","input":"a"}"#,
            r#"{"max_output_tokens":50,"model":"llama-8b","input":"a"}"#,
        ),
        (
            "/v1/messages",
            r#"{"model":"claude","max_tokens":60.0,"messages":[]}"#,
            r#"{"model":"claude","max_tokens":50,"messages":[]}"#,
        ),
        (
            "/v1/embeddings",
            r#"{"model":"fast","input":["a"]}"#,
            r#"{"model":"llama-8b","input":["a"]}"#,
        ),
        (
            "/v1/messages/count_tokens",
            r#"{"model":"claude","messages":[]}"#,
            r#"{"model":"claude","messages":[]}"#,
        ),
        // all at once
        (
            CHAT,
            r#"{"stream":true,"model":"fast","x":{"model":"fast"},"messages":[{"content":"\"model\":\"fast\""}],"max_tokens":1000}"#,
            r#"{"stream":true,"model":"llama-8b","x":{"model":"fast"},"messages":[{"content":"\"model\":\"fast\""}],"max_tokens":50,"stream_options":{"include_usage":true}}"#,
        ),
    ];
    for (path, sent, upstream) in cases {
        check(&ground, path, sent, upstream);
    }
}
