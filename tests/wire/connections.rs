//! A client's connection beyond one request: closed on one side, more than one request at once, bytes that mean nothing.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::Stream;
use crate::support::engine::{Call, Engine, Played};
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::script::{holding, silent, token, tokens};
use crate::support::wait::{ms, seconds};
use std::time::Instant;

/// An engine that is told by the request's `user` what to play.
fn engine() -> Engine {
    let (ten, two, hold) = (tokens(10, ms(10)), tokens(2, ms(0)), holding(1));
    Engine::scripted(move |call| match call.member("user").as_str() {
        "ten" => ten(call),
        "hold" => hold(call),
        "silent" => silent(call),
        "for ever" => for_ever(call),
        _ => two(call),
    })
}

fn for_ever(call: &mut Call) -> Played {
    call.head()?;
    loop {
        call.delta("and ")?;
        call.pause(ms(10))?;
    }
}

fn asks(user: &str, id: &str) -> Ask {
    chat().set("user", user).id(id)
}

#[track_caller]
fn must_be_ten(body: &[u8]) {
    assert_eq!(
        events::contents(body).len(),
        10,
        "{}",
        String::from_utf8_lossy(body)
    );
    assert!(events::is_done(body));
}

fn going_on(engine: &Engine) -> Gateway {
    Gateway::builder()
        .backend(engine.addr())
        .pool("stream = { half_close = \"continue\" }")
        .start()
}

#[test]
fn a_half_closed_client_is_served_to_the_end_where_the_pool_goes_on() {
    let engine = engine();
    let gateway = going_on(&engine);
    for early in [true, false] {
        let id = format!("half-{early}");
        let mut stream = gateway.send(&asks("ten", &id));
        if !early {
            stream.says(&token(0));
        }
        stream.half_close();
        must_be_ten(&stream.rest());
        assert_eq!(gateway.ended(&id)["state"], "COMPLETED");
    }
    let mut whole = gateway.send(&whole_chat().id("half-whole").set("user", "ten"));
    whole.half_close();
    assert_eq!(whole.next_answer().status, 200);
    assert_eq!(gateway.ended("half-whole")["state"], "COMPLETED");
    gateway.settled();
}

#[test]
fn a_client_that_has_really_gone_is_noticed_at_the_next_write_where_the_pool_goes_on() {
    let engine = engine();
    let gateway = going_on(&engine);
    for (n, leave) in [Stream::close as fn(Stream), Stream::reset]
        .into_iter()
        .enumerate()
    {
        let id = format!("gone-{n}");
        let mut stream = gateway.send(&asks("for ever", &id));
        stream.says("and ");
        leave(stream);
        engine.call(n).closed();
        let record = gateway.ended(&id);
        assert_eq!(record["state"], "CANCELLED", "{record}");
        assert_eq!(record["ended_by"], "client_closed", "{record}");
    }
    gateway.settled();
}

#[test]
fn a_client_that_resets_is_noticed_in_silence_too_where_the_pool_goes_on() {
    let engine = engine();
    let gateway = going_on(&engine);
    for (n, user) in ["hold", "silent"].into_iter().enumerate() {
        let id = format!("reset-{user}");
        let stream = gateway.send(&asks(user, &id));
        engine.held(n);
        stream.reset();
        engine.call(n).closed();
        assert_eq!(gateway.ended(&id)["ended_by"], "client_closed");
    }
    gateway.settled();
}

#[test]
fn pipelined_requests_are_served_in_their_order() {
    let engine = engine();
    let gateway = Gateway::before(&engine);
    let first = asks("ten", "one").bytes();
    let others = [
        whole_chat().id("two").bytes(),
        Ask::get("/generations/one").bytes(),
        chat().id("four").bytes(),
        whole_chat().set("model", "nope").bytes(),
        chat().id("six").bytes(),
    ]
    .concat();
    for together in [true, false] {
        let mut stream = Stream::connect(gateway.addr());
        if together {
            stream.write(&[first.clone(), others.clone()].concat());
        } else {
            let again = asks("ten", "again").bytes();
            stream.write(&again);
            stream.says(&token(0));
            let text = String::from_utf8(others.clone()).unwrap();
            stream.write(text.replace("Key: ", "Key: later-").as_bytes());
        }
        must_be_ten(&stream.next_answer().body);
        let answers: Vec<_> = (0..5).map(|_| stream.next_answer()).collect();
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [200, 200, 200, 404, 200], "together: {together}");
        assert_eq!(answers[1].json()["state"], "COMPLETED");
        assert!(events::is_done(&answers[2].body) && events::is_done(&answers[4].body));
        let ids: Vec<&str> = [0, 2, 4]
            .map(|n: usize| answers[n].headers.get("x-request-id").unwrap())
            .to_vec();
        let named = ["two", "four", "six"].map(|id| {
            if together {
                id.to_owned()
            } else {
                format!("later-{id}")
            }
        });
        assert_eq!(ids, named);
    }
    assert_eq!(engine.calls().len(), 8);
    gateway.settled();
}

#[test]
fn a_large_request_that_comes_early_waits_for_its_turn_and_is_whole() {
    let engine = engine();
    let gateway = Gateway::before(&engine);
    let large = whole_chat().set("pad", "x".repeat(1 << 20)).id("large");
    let mut stream = gateway.send(&asks("ten", "first"));
    stream.says(&token(0));
    stream.write(&large.bytes());
    must_be_ten(&stream.next_answer().body);
    assert_eq!(stream.next_answer().status, 200);
    assert_eq!(
        engine.call(1).body.len(),
        large.document().to_string().len()
    );
    gateway.settled();
}

#[test]
fn a_client_that_sent_its_next_request_early_and_left_is_noticed() {
    let engine = engine();
    let gateway = Gateway::before(&engine);
    let leaves: [(&str, fn(Stream)); 2] = [("fin", Stream::close), ("rst", Stream::reset)];
    let mut calls = 0;
    for (how, leave) in leaves {
        for user in ["hold", "silent"] {
            // the last is more than is read ahead
            for behind in ["POST /v1/chat", "whole", "much"] {
                let id = format!("left-{how}-{user}-{}", behind.len());
                let mut stream = gateway.send(&asks(user, &id));
                engine.held(calls);
                let next = match behind {
                    "whole" => whole_chat().id(&format!("next-{id}")).bytes(),
                    "much" => whole_chat().set("much", "x".repeat(100_000)).bytes(),
                    half => half.as_bytes().to_vec(),
                };
                stream.write(&next);
                assert_eq!(
                    gateway.record(&id)["ended_at"],
                    serde_json::Value::Null,
                    "{id}"
                );
                assert!(
                    engine.call(calls).fate().closed_at.is_none(),
                    "{id}: taken for a disconnect"
                );
                let left = Instant::now();
                leave(stream);
                let took = engine.call(calls).closed().saturating_duration_since(left);
                assert!(took < ms(500), "{id}: let go after {took:?}");
                assert_eq!(gateway.ended(&id)["ended_by"], "client_closed", "{id}");
                calls += 1;
            }
        }
    }
    gateway.settled();
    assert_eq!(
        engine.calls().len(),
        calls,
        "the next request of a client that left ran"
    );
}

#[test]
fn a_half_closed_client_gets_all_it_asked_for_early_where_the_pool_goes_on() {
    let engine = engine();
    let gateway = going_on(&engine);
    let mut stream = Stream::connect(gateway.addr());
    stream.write(
        &[
            asks("ten", "one").bytes(),
            asks("ten", "two").bytes(),
            whole_chat().bytes(),
        ]
        .concat(),
    );
    stream.half_close();
    must_be_ten(&stream.next_answer().body);
    must_be_ten(&stream.next_answer().body);
    assert_eq!(stream.next_answer().status, 200);
    gateway.settled();
}

#[test]
fn line_ends_behind_a_body_are_nothing() {
    let engine = engine();
    let gateway = Gateway::before(&engine);
    let strays: [&[u8]; 4] = [b"\r\n", b"\n", b"\r\n\r\n", b"\r"];
    for (n, stray) in strays.into_iter().enumerate() {
        for late in [false, true] {
            let id = format!("stray-{n}-{late}");
            let mut stream = Stream::connect(gateway.addr());
            if late {
                stream.write(&asks("ten", &id).bytes());
                stream.says(&token(0));
                stream.write(stray);
            } else {
                stream.write(&[&asks("ten", &id).bytes(), stray].concat());
            }
            must_be_ten(&stream.next_answer().body);
            assert_eq!(gateway.ended(&id)["state"], "COMPLETED");
            if stray.ends_with(b"\n") {
                stream.write(&whole_chat().bytes());
                assert_eq!(
                    stream.next_answer().status,
                    200,
                    "behind {stray:?}, late: {late}"
                );
            }
        }
    }
    gateway.settled();
}

/// The time of a head begins with its first byte, which a blank line is not.
#[test]
fn a_stray_line_end_does_not_end_an_idle_connection() {
    let engine = engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .server("timeouts = { header = \"200ms\" }")
        .start();
    let mut stream = Stream::connect(gateway.addr());
    stream.write(&[&whole_chat().bytes(), &b"\r\n"[..]].concat());
    assert_eq!(stream.next_answer().status, 200);
    assert!(!stream.has_answer(ms(600)), "an answer to nothing");
    stream.write(&whole_chat().bytes());
    assert_eq!(stream.next_answer().status, 200);
}

#[test]
fn a_client_that_leaves_behind_a_stray_line_end_is_noticed() {
    let engine = engine();
    let gateway = Gateway::before(&engine);
    for (n, user) in ["hold", "silent"].into_iter().enumerate() {
        let mut stream = gateway.send(&asks(user, user));
        engine.held(n);
        stream.write(b"\r\n");
        assert_eq!(gateway.record(user)["ended_at"], serde_json::Value::Null);
        stream.close();
        engine.call(n).closed();
        assert_eq!(gateway.ended(user)["ended_by"], "client_closed");
    }
    gateway.settled();
}

#[test]
fn a_connection_goes_on_behind_every_kind_of_answer_that_ends_well() {
    let engine = engine();
    let gateway = Gateway::before(&engine);
    let mut stream = Stream::connect(gateway.addr()).patience(seconds(5));
    let asked = [
        chat(),
        whole_chat(),
        Ask::get("/v1/models"),
        Ask::get("/nothing"),
        whole_chat().set("model", "nope"),
        whole_chat().key("sk-nobody"),
        Ask::get("/generations/never"),
        chat(),
    ];
    let statuses = [200, 200, 200, 404, 404, 401, 404, 200];
    for (ask, status) in asked.iter().zip(statuses) {
        stream.write(&ask.bytes());
        let answer = stream.next_answer();
        assert_eq!(answer.status, status, "{ask:?}: {}", answer.text());
        if answer.headers.get("connection") == Some("close") {
            // a refusal may leave the body unread; then it says so
            assert!(status >= 400, "{ask:?}: {:?}", answer.headers);
            stream = Stream::connect(gateway.addr()).patience(seconds(5));
        }
    }
    gateway.settled();
}
