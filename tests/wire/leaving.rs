//! Clients that leave: whatever they were waiting for, the upstream is let go and the slot is free.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::Stream;
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::script::{holding, silent, token, tokens};
use crate::support::wait::ms;
use std::time::{Duration, Instant};

/// A client reads some tokens of a request that holds, and leaves.
fn leaves(engine: &Engine, ask: Ask, tokens: usize, leave: impl FnOnce(Stream)) {
    let gateway = Gateway::before(engine);
    let mut stream = gateway.send(&ask.id("left-1"));
    (0..tokens).for_each(|n| stream.says(&token(n)));
    let call = engine.held(0);
    let left = Instant::now();
    leave(stream);
    let took = call.closed().saturating_duration_since(left);
    assert!(
        took < Duration::from_secs(1),
        "the upstream was let go after {took:?}"
    );
    gateway.settled();
    let record = gateway.ended("left-1");
    assert_eq!(record["state"], "CANCELLED", "{record}");
    assert_eq!(record["ended_by"], "client_closed", "{record}");
    assert_eq!(record["upstream_end"], "aborted", "{record}");
    assert!(
        record["client_gone_at"].is_string() && record["released_at"].is_string(),
        "{record}"
    );
}

#[test]
fn a_client_that_closes_mid_stream_has_its_upstream_aborted() {
    leaves(&Engine::scripted(holding(3)), chat(), 3, Stream::close);
}

#[test]
fn a_client_that_resets_mid_stream_has_its_upstream_aborted() {
    leaves(&Engine::scripted(holding(3)), chat(), 3, Stream::reset);
}

#[test]
fn a_client_that_leaves_before_the_first_event_has_its_upstream_aborted() {
    leaves(&Engine::scripted(holding(0)), chat(), 0, Stream::close);
}

#[test]
fn a_client_that_leaves_before_the_headers_has_its_upstream_aborted() {
    leaves(&Engine::scripted(silent), chat(), 0, Stream::close);
}

#[test]
fn a_client_that_leaves_a_non_stream_request_has_its_upstream_aborted() {
    leaves(&Engine::scripted(silent), whole_chat(), 0, Stream::close);
}

#[test]
fn a_client_that_resets_a_non_stream_request_has_its_upstream_aborted() {
    leaves(&Engine::scripted(silent), whole_chat(), 0, Stream::reset);
}

#[test]
fn a_client_that_leaves_a_native_request_has_its_upstream_aborted() {
    let ask = Ask::post("/generations")
        .set("model", "m")
        .set("input", "hi")
        .set("stream", true);
    leaves(&Engine::scripted(holding(2)), ask, 0, Stream::close);
}

#[test]
fn a_client_that_half_closes_has_left_where_nothing_else_is_said() {
    let mut reading_on = None;
    leaves(&Engine::scripted(holding(3)), chat(), 3, |stream| {
        stream.half_close();
        reading_on = Some(stream);
    });
    assert!(reading_on.is_some());
}

#[test]
fn a_client_that_leaves_after_the_end_has_a_completed_request() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("late-1");
    stream.rest();
    stream.close();
    let record = gateway.ended("late-1");
    assert_eq!(record["state"], "COMPLETED", "{record}");
    assert_eq!(record["upstream_end"], "complete", "{record}");
}

#[test]
fn a_client_that_leaves_in_the_middle_of_its_upload_calls_no_engine() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let mut stream = Stream::connect(gateway.addr());
    let ask = chat().id("upload-1");
    stream.write(ask.head_for(1_000_000).as_bytes());
    stream.write(b"{\"model\": \"m\", \"messages\": [");
    stream.reset();
    let next = gateway.answer(&chat().id("upload-2"));
    assert_eq!(next.status, 200);
    assert_eq!(engine.calls().len(), 1, "only the whole request ran");
    gateway.settled();
}

#[test]
fn leaving_over_and_over_leaks_no_slot() {
    let engine = Engine::scripted(tokens(50, ms(1)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("max_streams = 4")
        .start();
    for round in 0..40 {
        let mut stream = gateway.send(&chat());
        // leaves at every point: before the head, after it, after some tokens
        if round % 4 > 0 {
            assert_eq!(
                stream.status(),
                200,
                "round {round}: a slot leaked, {stream:?}"
            );
            (0..round % 4 * 3).for_each(|n| stream.says(&token(n)));
        }
        if round % 2 == 0 {
            stream.close()
        } else {
            stream.reset()
        }
        gateway.settled();
    }
    let mut last: Vec<Stream> = (0..4).map(|_| gateway.send(&chat())).collect();
    last.iter_mut()
        .for_each(|stream| assert_eq!(stream.status(), 200));
}
