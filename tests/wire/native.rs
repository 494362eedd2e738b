//! The native API: generations, streamed as named events or as one document.

use crate::support::ask::Ask;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::script::{holding, tokens};
use crate::support::wait::ms;
use serde_json::json;
use std::collections::HashSet;

fn generation() -> Ask {
    Ask::post("/generations")
        .json(json!({"model": "m", "input": "say three things", "max_output_units": 50}))
}

#[test]
fn a_stream_is_started_then_deltas_then_completed() {
    let engine = Engine::scripted(tokens(3, ms(0)));
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&generation().set("stream", true).id("native-1"));
    assert_eq!(
        answer.headers.get("content-type"),
        Some("text/event-stream"),
        "{}",
        answer.text()
    );
    let blocks = events::blocks(&answer.body);
    let names: Vec<_> = blocks
        .iter()
        .filter_map(|block| events::field(block, "event"))
        .collect();
    assert_eq!(
        names,
        ["started", "delta", "delta", "delta", "completed"],
        "{}",
        answer.text()
    );
    let ids: HashSet<_> = blocks
        .iter()
        .filter_map(|block| events::field(block, "id"))
        .collect();
    assert_eq!(ids.len(), 5, "an id on each event: {}", answer.text());
    for (n, block) in blocks[1..4].iter().enumerate() {
        let data = events::data_of(block).unwrap_or_else(|| panic!("no JSON: {block}"));
        assert!(data.to_string().contains(&format!("\"t{n} \"")), "{data}");
    }
    let record = gateway.ended("native-1");
    assert_eq!(
        (&record["api"], &record["state"]),
        (&json!("native"), &json!("COMPLETED")),
        "{record}"
    );
    assert_eq!(record["generated_units"], 3, "{record}");
}

#[test]
fn the_upstream_is_asked_for_a_chat() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    assert_eq!(gateway.answer(&generation()).status, 200);
    let messages =
        json!([{"role": "system", "content": "short"}, {"role": "user", "content": "hi"}]);
    let ask = Ask::post("/generations").json(json!({"model": "m", "messages": messages}));
    assert_eq!(gateway.answer(&ask).status, 200);
    let (first, second) = (engine.call(0), engine.call(1));
    assert_eq!(first.path, "/v1/chat/completions");
    assert_eq!(
        first.json()["messages"],
        json!([{"role": "user", "content": "say three things"}])
    );
    assert_eq!(first.json()["max_tokens"], 50);
    assert_eq!(second.json()["messages"], messages);
}

#[test]
fn without_stream_it_is_one_document() {
    let engine = Engine::scripted(tokens(3, ms(0)));
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&generation());
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(
        answer.json().to_string().contains("t0 t1 t2"),
        "{}",
        answer.text()
    );
    let id = answer.headers.get("x-request-id").unwrap();
    assert_eq!(gateway.ended(id)["state"], "COMPLETED");
}

#[test]
fn the_member_request_id_names_the_request_as_the_header_does() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&generation().set("request_id", "member-1"));
    assert_eq!(answer.headers.get("x-request-id"), Some("member-1"));
    gateway
        .answer(&generation().set("request_id", "member-1"))
        .must_refuse(409, "request_already_shown");
    gateway
        .answer(&generation().set("request_id", "a b"))
        .must_refuse(400, "invalid_request_id");
}

#[test]
fn a_cancelled_stream_ends_with_cancelled() {
    let engine = Engine::scripted(holding(2));
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.send(&generation().set("stream", true).id("native-2"));
    (0..3).for_each(|_| assert!(stream.event().is_some()));
    assert_eq!(gateway.cancel("native-2").status, 202);
    let last = events::blocks(&stream.rest()).pop().unwrap_or_default();
    assert_eq!(
        events::field(&last, "event").as_deref(),
        Some("cancelled"),
        "{last}"
    );
}

#[test]
fn a_broken_stream_ends_with_failed() {
    let engine = Engine::scripted(|call| {
        call.head()?;
        call.delta("a")?;
        call.reset()
    });
    let gateway = Gateway::before(&engine);
    let body = gateway
        .send(&generation().set("stream", true).id("native-3"))
        .rest();
    let last = events::blocks(&body).pop().unwrap_or_default();
    assert_eq!(
        events::field(&last, "event").as_deref(),
        Some("failed"),
        "{last}"
    );
    assert_eq!(gateway.ended("native-3")["state"], "FAILED");
}

#[test]
fn bad_input_is_refused_in_the_contracts_json() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let cases = [
        generation().without("model"),
        generation().without("input"),
        generation().set("messages", json!([{"role": "user", "content": "both"}])),
        generation().set("input", 7),
        generation().set("max_output_units", 0),
        generation().set("max_output_units", -3),
        generation().set("stream", "yes"),
    ];
    for ask in cases {
        gateway.answer(&ask).must_refuse(400, "invalid_request");
    }
    gateway
        .answer(&Ask::post("/generations").body("{"))
        .must_refuse(400, "invalid_json");
    assert_eq!(engine.calls().len(), 0);
}

/// What follows a gap would look whole.
#[test]
fn an_event_that_is_too_large_to_be_converted_ends_the_stream() {
    let engine = Engine::scripted(|call| {
        call.head()?;
        call.delta("first ")?;
        call.delta(&"x".repeat(3 << 20))?;
        call.delta("last ")?;
        call.done()
    });
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&generation().set("stream", true).id("gap"));
    let names: Vec<_> = events::blocks(&answer.body)
        .iter()
        .filter_map(|block| events::field(block, "event"))
        .collect();
    assert_eq!(names, ["started", "delta", "failed"], "{}", answer.text());
    assert_eq!(gateway.ended("gap")["state"], "FAILED");
    gateway.settled();
}
