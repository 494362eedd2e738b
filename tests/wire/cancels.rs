//! Cancelling by id, in every state a request can be in.

use crate::support::ask::{chat, whole_chat};
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::script::{holding, silent, token};

#[test]
fn a_cancelled_stream_ends_with_an_error_event_and_a_proper_end() {
    let engine = Engine::scripted(holding(3));
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("cut-1");
    (0..3).for_each(|n| stream.says(&token(n)));
    let cancel = gateway.cancel("cut-1");
    assert_eq!(
        (cancel.status, cancel.json()["request_id"].as_str()),
        (202, Some("cut-1"))
    );
    assert_eq!(events::final_error(&stream.rest())["code"], "cancelled");
    engine.call(0).closed();
    let record = gateway.ended("cut-1");
    assert_eq!(record["state"], "CANCELLED", "{record}");
    assert_eq!(record["ended_by"], "cancel_api", "{record}");
    assert!(record["cancel_requested_at"].is_string(), "{record}");
    gateway.settled();
}

#[test]
fn a_request_cancelled_before_anything_was_shown_is_499() {
    for ask in [chat().id("early-stream"), whole_chat().id("early-whole")] {
        let id = if ask.document()["stream"] == true {
            "early-stream"
        } else {
            "early-whole"
        };
        let engine = Engine::scripted(silent);
        let gateway = Gateway::before(&engine);
        let stream = gateway.send(&ask);
        engine.held(0);
        assert_eq!(gateway.cancel(id).status, 202);
        stream.answer().must_refuse(499, "cancelled");
        engine.call(0).closed();
        let record = gateway.ended(id);
        assert_eq!(record["state"], "CANCELLED", "{record}");
        assert_eq!(
            record["first_output_at"],
            serde_json::Value::Null,
            "{record}"
        );
        gateway.settled();
    }
}

#[test]
fn cancelling_twice_is_no_error() {
    let engine = Engine::scripted(holding(1));
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("twice-1");
    stream.says("t0 ");
    assert_eq!(gateway.cancel("twice-1").status, 202);
    stream.rest();
    gateway.ended("twice-1");
    let again = gateway.cancel("twice-1");
    assert_eq!(
        (again.status, again.json()["state"].as_str()),
        (200, Some("CANCELLED"))
    );
}

#[test]
fn a_slow_reader_can_be_cancelled_while_its_write_is_blocked() {
    // more than all sockets on the way can hold, to a client that reads nothing
    let piece = events::delta(&"x".repeat(60_000));
    let engine = Engine::scripted(move |call| {
        call.head()?;
        (0..2000).try_for_each(|_| call.chunk(&piece))?;
        call.done()
    });
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("slow-1");
    assert_eq!(stream.status(), 200);
    gateway.reaches("slow-1", "STREAMING");
    assert_eq!(gateway.cancel("slow-1").status, 202);
    engine.call(0).closed();
    assert_eq!(gateway.ended("slow-1")["ended_by"], "cancel_api");
    gateway.settled();
    drop(stream);
}
