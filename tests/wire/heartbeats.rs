//! Heartbeats: in every silence, between events only, one line end each.

use crate::support::ask::chat;
use crate::support::engine::Engine;
use crate::support::events::{self, delta, done};
use crate::support::gateway::Gateway;
use crate::support::script::pieces;
use crate::support::wait::ms;
use std::time::Duration;

const BEAT: &[u8] = b": keepalive\n";

/// Six heartbeat intervals.
const SILENCE: Duration = ms(600);

/// Sends the pieces with a silence between two; gives the body, which holds nothing but the pieces and whole beats
/// that stand between events.
fn stream_of(sent: Vec<Vec<u8>>) -> Vec<u8> {
    let plain = sent.concat();
    let engine = Engine::scripted(pieces(sent, SILENCE));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("stream = { heartbeat = \"100ms\" }")
        .start();
    let body = gateway.chat("beat-1").rest();
    let text = String::from_utf8_lossy(&body).into_owned();
    let without = without_beats(&body);
    assert_eq!(
        String::from_utf8_lossy(&without),
        String::from_utf8_lossy(&plain),
        "{text}"
    );
    let counted = gateway.metric("streamgate_heartbeats_total", &[("pool", "p")]);
    assert_eq!(counted, events::count(&body, BEAT) as f64, "{text}");
    let record = gateway.ended("beat-1");
    assert_eq!(
        record["generated_units"],
        events::contents(&without).len(),
        "a beat counts as nothing: {record}"
    );
    body
}

/// The body without its beats; fails where one stands inside an event.
fn without_beats(body: &[u8]) -> Vec<u8> {
    let mut plain: Vec<u8> = Vec::new();
    let mut rest = body;
    while let Some(at) = events::find(rest, BEAT) {
        plain.extend_from_slice(&rest[..at]);
        let between = plain.is_empty() || plain.ends_with(b"\n\n");
        assert!(
            between,
            "a heartbeat inside an event: {}",
            String::from_utf8_lossy(&plain)
        );
        rest = &rest[at + BEAT.len()..];
    }
    plain.extend_from_slice(rest);
    plain
}

#[test]
fn they_come_in_the_silence_before_the_first_event() {
    let body = stream_of(vec![Vec::new(), delta("a"), done()]);
    assert!(
        body.starts_with(&BEAT.repeat(2)),
        "{}",
        String::from_utf8_lossy(&body)
    );
}

#[test]
fn they_come_in_the_silence_between_events() {
    let body = stream_of(vec![delta("a"), delta("b"), done()]);
    let between = &body[delta("a").len()..];
    assert!(
        between.starts_with(&BEAT.repeat(2)),
        "{}",
        String::from_utf8_lossy(&body)
    );
}

#[test]
fn they_go_on_while_the_engine_stops_in_mid_event_and_never_stand_inside_one() {
    let event = delta("ü");
    let inside_a_character = events::find(&event, "ü".as_bytes()).unwrap() + 1;
    let cuts = [5, inside_a_character, event.len() - 2, event.len() - 1];
    let mut sent = vec![delta("a")];
    for cut in cuts {
        sent.push(event[..cut].to_vec());
        sent.push(event[cut..].to_vec());
    }
    sent.push(done());
    let silences = sent.len() - 1;
    let body = stream_of(sent);
    assert!(
        events::count(&body, BEAT) >= silences * 2,
        "{}",
        String::from_utf8_lossy(&body)
    );
}

#[test]
fn they_stop_with_the_stream() {
    let engine = Engine::scripted(|call| {
        call.head()?;
        call.delta("a")?;
        // the end is said, and the connection stays open without a last chunk
        call.chunk(&done())?;
        call.hold()
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("stream = { heartbeat = \"100ms\" }")
        .start();
    let mut stream = gateway.send(&chat());
    let body = stream.rest();
    assert!(
        body.ends_with(&done()),
        "{}",
        String::from_utf8_lossy(&body)
    );
    gateway.settled();
}

#[test]
fn none_come_where_events_do() {
    let sent: Vec<Vec<u8>> = (0..20)
        .map(|n| delta(&n.to_string()))
        .chain([done()])
        .collect();
    let engine = Engine::scripted(pieces(sent, ms(20)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("stream = { heartbeat = \"2s\" }")
        .start();
    let body = gateway.send(&chat()).rest();
    assert_eq!(
        events::count(&body, b": keepalive"),
        0,
        "{}",
        String::from_utf8_lossy(&body)
    );
}
