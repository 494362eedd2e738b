//! What names a request, and whose it is.

use crate::support::OTHER_KEY;
use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::script::{holding, tokens};
use crate::support::wait::ms;
use std::collections::HashSet;

fn is_uuid_v7(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|p| p.len()).collect();
    let hex = text
        .bytes()
        .all(|b| b == b'-' || b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    lengths == [8, 4, 4, 4, 12]
        && hex
        && parts[2].starts_with('7')
        && parts[3].starts_with(['8', '9', 'a', 'b'])
}

#[test]
fn every_answer_carries_an_id_of_its_own() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let asks = [
        chat(),
        whole_chat(),
        Ask::get("/v1/models"),
        Ask::get("/nowhere"),
        Ask::get("/generations/none"),
        chat().no_key(),
        chat().set("model", "nope"),
    ];
    let mut seen = HashSet::new();
    for ask in asks {
        let answer = gateway.answer(&ask);
        let id = answer
            .headers
            .get("x-request-id")
            .unwrap_or_default()
            .to_owned();
        assert!(is_uuid_v7(&id), "{ask:?}: {id:?}");
        assert!(seen.insert(id), "an id twice: {answer:?}");
    }
}

#[test]
fn an_idempotency_key_names_the_request() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&chat().id("named:ok_1.2-3"));
    assert_eq!(answer.headers.get("x-request-id"), Some("named:ok_1.2-3"));
    assert_eq!(
        gateway.ended("named:ok_1.2-3")["request_id"],
        "named:ok_1.2-3"
    );
}

#[test]
fn a_clients_x_request_id_is_a_trace_name_and_no_identity() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let calls = ["first", "second"].map(|user| {
        let answer = gateway.answer(&chat().set("user", user).header("X-Request-Id", "trace-7"));
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer
            .headers
            .get("x-request-id")
            .unwrap_or_default()
            .to_owned()
    });
    assert_ne!(calls[0], calls[1]);
    for id in &calls {
        assert_eq!(gateway.ended(id)["client_request_id"], "trace-7");
        assert_eq!(gateway.access_line(id)["client_request_id"], "trace-7");
    }
    assert_eq!(engine.call(0).headers.get("x-request-id"), Some("trace-7"));
}

#[test]
fn the_upstreams_own_id_is_kept_on_the_record_and_ours_is_shown() {
    let engine = Engine::scripted(|call| {
        let body = crate::support::script::completion(1).to_string();
        let length = body.len().to_string();
        let headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", &length),
            ("x-request-id", "req_42"),
        ];
        call.head_with(200, &headers)?;
        call.raw(body.as_bytes())
    });
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&whole_chat().id("ours-1"));
    assert_eq!(answer.headers.get("x-request-id"), Some("ours-1"));
    assert_eq!(answer.headers.count("x-request-id"), 1);
    assert_eq!(gateway.ended("ours-1")["upstream_request_id"], "req_42");
}

#[test]
fn a_record_is_the_tenants_own() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    gateway.chat("mine-1").rest();
    gateway.ended("mine-1");
    let record = Ask::get("/generations/mine-1");
    let cancel = Ask::post("/generations/mine-1/cancel");
    gateway
        .answer(&record.clone().key(OTHER_KEY))
        .must_refuse(404, "unknown_request");
    gateway
        .answer(&cancel.clone().key(OTHER_KEY))
        .must_refuse(404, "unknown_request");
    gateway
        .answer(&record.no_key())
        .must_refuse(401, "invalid_api_key");
    gateway
        .answer(&cancel.clone().no_key())
        .must_refuse(401, "invalid_api_key");
    let late = gateway.answer(&cancel);
    assert_eq!(
        (late.status, late.json()["state"].as_str()),
        (200, Some("COMPLETED"))
    );
}

#[test]
fn two_tenants_may_use_the_same_id() {
    let engine = Engine::scripted(holding(1));
    let gateway = Gateway::before(&engine);
    let mut ours = gateway.chat("same-1");
    ours.says("t0 ");
    let mut theirs = gateway.send(&chat().id("same-1").key(OTHER_KEY));
    theirs.says("t0 ");
    assert_eq!(
        gateway
            .answer(&Ask::post("/generations/same-1/cancel").key(OTHER_KEY))
            .status,
        202
    );
    assert_eq!(gateway.ended_of(OTHER_KEY, "same-1")["state"], "CANCELLED");
    assert_eq!(gateway.record("same-1")["state"], "STREAMING");
}

#[test]
fn the_same_id_with_another_payload_is_refused_first() {
    let engine = Engine::scripted(holding(1));
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("same-2");
    stream.says("t0 ");
    gateway
        .answer(&chat().id("same-2").set("user", "another"))
        .must_refuse(422, "request_id_mismatch");
    gateway
        .answer(&chat().id("same-2"))
        .must_refuse(409, "request_running");
    assert_eq!(engine.calls().len(), 1);
}

#[test]
fn an_id_that_ended_with_nothing_shown_may_be_sent_again() {
    let plain = tokens(2, ms(0));
    let engine = Engine::scripted(move |call| match call.seen.number {
        0 => call.answer(500, "text/plain", b"not now"),
        _ => plain(call),
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("retry = { attempts = 1 }")
        .start();
    assert_eq!(gateway.answer(&chat().id("again-1")).status, 500);
    assert_eq!(gateway.ended("again-1")["state"], "FAILED");
    assert_eq!(gateway.answer(&chat().id("again-1")).status, 200);
    let record = gateway.reaches("again-1", "COMPLETED");
    assert_eq!(
        record["attempts"].as_array().map(Vec::len),
        Some(2),
        "{record}"
    );
    gateway
        .answer(&chat().id("again-1"))
        .must_refuse(409, "request_already_shown");
}
