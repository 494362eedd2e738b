//! The request's body: whole, whatever its size, and changed nowhere but where it must be.

use crate::support::ask::{Ask, chat};
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::script::tokens;
use crate::support::wait::ms;
use serde_json::{Value, json};

/// A little over 4 MiB of text that a careless rewrite would spell otherwise.
fn prompt() -> String {
    "naïve 北 \\\" \\\\ \\u00e9 \\t".repeat(1 << 18)
}

#[test]
fn a_prompt_of_four_mib_that_needs_no_change_arrives_byte_for_byte() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let body = format!(
        "{{ \"model\":\"m\", \"temperature\": 1.0, \"x_unknown\": [1e3, null, 12345678901234567890],\n\
         \"stream_options\": {{\"include_usage\": true}}, \"stream\": true, \"max_tokens\": 100,\n\
         \"messages\": [{{\"role\": \"user\", \"content\": \"{}\"}}] }}",
        prompt()
    );
    assert!(body.len() > 4 << 20);
    let answer = gateway.answer(
        &Ask::post("/v1/chat/completions")
            .body(body.clone())
            .id("big-1"),
    );
    assert_eq!(answer.status, 200, "{}", answer.text());
    must_be_same(&engine.call(0).body, body.as_bytes());
    let length = engine
        .call(0)
        .headers
        .get("content-length")
        .map(str::to_owned);
    assert_eq!(length, Some(body.len().to_string()));
    assert_eq!(gateway.ended("big-1")["state"], "COMPLETED");
    gateway.settled();
}

#[test]
fn a_stream_that_did_not_ask_for_usage_has_it_asked_upstream_and_nothing_else_changed() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let content: Value = serde_json::from_str(&format!("\"{}\"", prompt())).unwrap();
    let ask = chat().set("messages", json!([{"role": "user", "content": content}]));
    let answer = gateway.answer(&ask);
    assert_eq!(answer.status, 200);
    assert_eq!(events::contents(&answer.body), ["t0 "]);
    let mut sent = engine.call(0).json();
    let options = sent
        .as_object_mut()
        .unwrap()
        .remove("stream_options")
        .unwrap_or_default();
    assert_eq!(options, json!({"include_usage": true}));
    assert!(&sent == ask.document(), "other members changed");
}

#[test]
fn the_usage_that_only_the_gateway_asked_for_is_hidden_from_the_client() {
    let engine = Engine::scripted(tokens(3, ms(0)));
    let gateway = Gateway::before(&engine);
    let plain = gateway.answer(&chat().id("hidden-1"));
    assert_eq!(
        events::count(&plain.body, b"\"usage\""),
        0,
        "{}",
        plain.text()
    );
    let asked = gateway.answer(&chat().set("stream_options", json!({"include_usage": true})));
    assert_eq!(
        events::count(&asked.body, b"\"usage\""),
        1,
        "{}",
        asked.text()
    );
    let record = gateway.ended("hidden-1");
    assert_eq!(record["usage_source"], "upstream", "{record}");
    assert_eq!(record["input_units"], 5, "{record}");
    assert_eq!(record["generated_units"], 3, "{record}");
}

#[test]
fn a_mapped_model_goes_upstream_by_its_other_name() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let pool = format!(
        "[[pool]]\nname = \"q\"\nmodels = [{{ public = \"fast\", upstream = \"llama-8b\" }}]\nbackends = [{{ addr = \"{}\" }}]",
        engine.addr()
    );
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .extra(&pool)
        .start();
    assert_eq!(
        gateway
            .answer(&chat().set("model", "fast").id("mapped-1"))
            .status,
        200
    );
    assert_eq!(engine.call(0).json()["model"], "llama-8b");
    let record = gateway.ended("mapped-1");
    assert_eq!(
        (&record["model"], &record["pool"]),
        (&json!("fast"), &json!("q")),
        "{record}"
    );
}

#[test]
fn a_tenants_cap_goes_upstream_where_the_request_names_none_or_more() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("max_output_units = 50")
        .start();
    for (number, ask) in [
        chat(),
        chat().without("max_tokens"),
        chat().set("max_tokens", 20),
    ]
    .iter()
    .enumerate()
    {
        let id = format!("cap-{number}");
        assert_eq!(gateway.answer(&ask.clone().id(&id)).status, 200);
        let cap = if number == 2 { 20 } else { 50 };
        assert_eq!(engine.call(number).json()["max_tokens"], cap);
        let record = gateway.ended(&id);
        // the upstream reported five units of input; what was reserved was the estimate
        assert_eq!(record["reserved_units"].as_u64(), Some(3 + cap), "{record}");
    }
}

#[test]
fn a_chunked_request_body_arrives_whole_with_a_length() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let body = chat()
        .set("stream_options", json!({"include_usage": true}))
        .document()
        .to_string();
    let head = Ask::post("/v1/chat/completions")
        .header("Transfer-Encoding", "chunked")
        .head_for(0);
    let mut stream = crate::support::client::Stream::connect(gateway.addr());
    stream.write(head.replace("Content-Length: 0\r\n", "").as_bytes());
    for piece in body.as_bytes().chunks(10) {
        stream.write(&[format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
    }
    stream.write(b"0\r\n\r\n");
    assert_eq!(stream.status(), 200, "{stream:?}");
    must_be_same(&engine.call(0).body, body.as_bytes());
}

#[test]
fn the_clients_key_never_goes_upstream() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let keyed = Gateway::builder()
        .backend(engine.addr())
        .file("upstream.key", "sk-upstream-0003\n")
        .pool("api_key = { file = \"upstream.key\" }")
        .start();
    let plain = Gateway::before(&engine);
    for (gateway, expected) in [(&keyed, Some("Bearer sk-upstream-0003")), (&plain, None)] {
        for ask in [
            chat(),
            chat().no_key().header("x-api-key", crate::support::KEY),
        ] {
            assert_eq!(
                gateway
                    .answer(&ask.header("X-Streamgate-Tenant", "other"))
                    .status,
                200
            );
            let call = engine.calls().pop().unwrap();
            assert_eq!(call.headers.get("authorization"), expected);
            assert_eq!(call.headers.count("x-api-key"), 0);
            assert_eq!(call.headers.count("x-streamgate-tenant"), 0);
        }
    }
}

#[track_caller]
fn must_be_same(got: &[u8], sent: &[u8]) {
    let apart = got
        .iter()
        .zip(sent)
        .position(|(a, b)| a != b)
        .unwrap_or(got.len().min(sent.len()));
    assert!(
        got == sent,
        "{} bytes sent, {} arrived, equal up to byte {apart}",
        sent.len(),
        got.len()
    );
}
