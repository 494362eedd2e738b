//! Heartbeats of `/v1/messages`: Anthropic's own ping events, in every silence and nowhere inside an event.

use crate::support::dialect::{self, Dialect};
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::script::pieces;
use crate::support::wait::ms;

const PING: &[u8] = b"event: ping\ndata: {\"type\": \"ping\"}\n\n";
const LINES: &str = "stream = { heartbeat = \"100ms\" }";

/// Sends the pieces with a silence of several intervals between two; gives the body and how many pings stood in it.
fn through(sent: Vec<Vec<u8>>) -> (Vec<u8>, usize) {
    let plain = sent.concat();
    let engine = Engine::scripted(pieces(sent, ms(450)));
    let gateway = dialect::gateway(&engine, LINES);
    let body = gateway.send(&Dialect::Messages.ask().id("ping")).rest();
    let pings = events::count(&body, PING);
    let without = String::from_utf8_lossy(&body).replace(&*String::from_utf8_lossy(PING), "");
    assert_eq!(
        without,
        String::from_utf8_lossy(&plain),
        "whole pings between whole events: {}",
        String::from_utf8_lossy(&body)
    );
    assert_eq!(
        gateway.metric("streamgate_heartbeats_total", &[("pool", "a")]),
        pings as f64
    );
    let record = gateway.ended("ping");
    assert_eq!(record["state"], "COMPLETED", "{record}");
    assert_eq!(
        record["generated_units"],
        Dialect::Messages.texts(&body).len(),
        "a ping is no output: {record}"
    );
    (body, pings)
}

#[test]
fn they_come_before_the_first_event_and_between_two() {
    let messages = Dialect::Messages;
    let (body, pings) = through(vec![
        Vec::new(),
        messages.preamble(),
        messages.say("a"),
        messages.end(),
    ]);
    assert!(
        pings >= 6,
        "{pings} pings: {}",
        String::from_utf8_lossy(&body)
    );
    assert!(body.starts_with(PING), "{}", String::from_utf8_lossy(&body));
    assert!(
        body.ends_with(&messages.end()),
        "{}",
        String::from_utf8_lossy(&body)
    );
}

#[test]
fn they_go_on_while_an_event_is_torn_and_never_stand_inside_it() {
    let event = Dialect::Messages.say("ü");
    let places = [
        3,
        events::find(&event, "ü".as_bytes()).unwrap() + 1,
        event.len() - 1,
    ];
    for place in places {
        let (head, tail) = event.split_at(place);
        let (_, pings) = through(vec![
            Dialect::Messages.preamble(),
            head.to_vec(),
            [tail.to_vec(), Dialect::Messages.end()].concat(),
        ]);
        assert!(pings >= 3, "cut at {place}: {pings} pings");
    }
}

#[test]
fn the_engines_own_pings_pass_and_are_no_heartbeats() {
    let engine = Engine::scripted(|call| {
        call.head()?;
        call.chunk(PING)?;
        call.chunk(&Dialect::Messages.say("a"))?;
        call.chunk(&Dialect::Messages.end())?;
        call.end()
    });
    let gateway = dialect::gateway(&engine, "");
    let body = gateway.send(&Dialect::Messages.ask()).rest();
    assert_eq!(events::count(&body, PING), 1);
    assert_eq!(gateway.metric("streamgate_heartbeats_total", &[]), 0.0);
}

#[test]
fn no_other_api_gets_them() {
    dialect::each(|dialect| {
        let engine = Engine::scripted(move |call| {
            call.head()?;
            call.chunk(&dialect.say("a"))?;
            call.pause(ms(450))?;
            call.chunk(&dialect.end())?;
            call.end()
        });
        let gateway = dialect::gateway(&engine, LINES);
        let body = gateway.send(&dialect.ask()).rest();
        let (pings, comments) = (
            events::count(&body, b"event: ping"),
            events::count(&body, b": keepalive\n"),
        );
        if dialect == Dialect::Messages {
            assert!(
                pings >= 2 && comments == 0,
                "{dialect:?}: {}",
                String::from_utf8_lossy(&body)
            );
        } else {
            assert!(
                pings == 0 && comments >= 2,
                "{dialect:?}: {}",
                String::from_utf8_lossy(&body)
            );
        }
        assert_eq!(dialect.texts(&body), ["a"], "{dialect:?}");
    });
}
