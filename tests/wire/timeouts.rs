//! Time-outs, hop by hop: each ends what it is for, in its time, with its own error to the client and its own words on
//! the record; and none cuts a stream that is well.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::{Broken, Stream};
use crate::support::deaf::Deaf;
use crate::support::engine::{Call, Engine, Played};
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::http2::Http2;
use crate::support::script::{holding, silent, tokens};
use crate::support::wait::{ms, seconds};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// A status, before anything was shown.
    Status,
    /// An error event and a proper end.
    Event,
    /// Nothing: a body of known length can only be broken off.
    Cut,
}

/// An upstream that is too slow: which time-out ends it and what else the pool has, what the engine plays for a stream or
/// for a whole answer, and what the client gets.
type Case = (&'static str, &'static str, Told);

const CASES: [Case; 15] = [
    ("connect", "stream: nothing", Told::Status),
    ("connect", "whole: nothing", Told::Status),
    ("first_byte", "stream: nothing", Told::Status),
    ("first_byte", "whole: nothing", Told::Status),
    ("first_byte, early heads", "stream: nothing", Told::Event),
    ("idle", "stream: a head", Told::Event),
    ("idle", "stream: three events", Told::Event),
    ("idle, heartbeats", "stream: three events", Told::Event),
    ("idle", "stream: half an event", Told::Event),
    ("idle", "whole: half a body", Told::Cut),
    ("idle", "whole: a head", Told::Status),
    ("total", "stream: and on", Told::Event),
    ("total, heartbeats", "stream: and on", Told::Event),
    ("total", "stream: nothing", Told::Status),
    ("total", "whole: nothing", Told::Status),
];

/// The time that each case sets.
const TIME: Duration = ms(400);

/// What a loaded machine may add.
const SLACK: Duration = seconds(3);

fn play(call: &mut Call) -> Played {
    match call.member("user").as_str() {
        "stream: a head" => holding(0)(call),
        "stream: three events" => holding(3)(call),
        "stream: half an event" => half_an_event(call),
        "stream: and on" => busy(call),
        "whole: half a body" => half_a_body(call),
        "whole: a head" => no_body(call),
        _ => silent(call),
    }
}

/// The pool's lines for a time-out.
fn lines(time_out: &str) -> String {
    let (key, more) = time_out.split_once(", ").unwrap_or((time_out, ""));
    let stream = match more {
        "heartbeats" => "heartbeat = \"50ms\"",
        "early heads" => "heartbeat = \"50ms\", early_headers = true",
        _ => "",
    };
    format!(
        "max_streams = 1\nretry = {{ attempts = 1 }}\ntimeouts = {{ {key} = \"400ms\" }}\nstream = {{ {stream} }}"
    )
}

fn half_an_event(call: &mut Call) -> Played {
    call.head()?;
    call.delta("t0 ")?;
    call.chunk(b"data: {\"choices\":[{\"index\":0,\"del")?;
    call.hold()
}

fn sized(call: &mut Call) -> Played {
    call.head_with(
        200,
        &[
            ("Content-Type", "application/json"),
            ("Content-Length", "1000"),
        ],
    )
}

fn half_a_body(call: &mut Call) -> Played {
    sized(call)?;
    call.raw(b"{\"id\":\"c1\",")?;
    call.hold()
}

fn no_body(call: &mut Call) -> Played {
    sized(call)?;
    call.hold()
}

/// Sends and sends.
fn busy(call: &mut Call) -> Played {
    call.head()?;
    for _ in 0..1000 {
        call.delta("and ")?;
        call.pause(ms(20))?;
    }
    call.done()
}

fn check(&(time_out, plays, told): &Case) {
    let name = format!("{time_out}; {plays}");
    let key = time_out.split(',').next().unwrap_or_default();
    let connects = key != "connect";
    let (deaf, engine) = (Deaf::start(), Engine::scripted(play));
    let addr = if connects { engine.addr() } else { deaf.addr() };
    let gateway = Gateway::builder()
        .backend(addr)
        .pool(&lines(time_out))
        .start();
    let ask = if plays.starts_with("stream") {
        chat()
    } else {
        whole_chat()
    };
    let start = Instant::now();
    let mut stream = gateway.send(&ask.id("late").set("user", plays));
    match told {
        Told::Status => stream.next_answer().must_refuse(504, "upstream_timeout"),
        Told::Event => {
            let error = events::final_error(&stream.rest());
            assert_eq!(error["code"], "upstream_timeout", "{name}");
        }
        Told::Cut => assert_eq!(stream.try_rest(), Err(Broken::Cut), "{name}"),
    }
    let took = start.elapsed();
    assert!(
        (TIME..TIME + SLACK).contains(&took),
        "{name}: after {took:?}"
    );
    let record = gateway.ended("late");
    must_say(&record, key, connects);
    if connects {
        engine.call(0).closed();
        assert_eq!(engine.calls().len(), 1, "{name}: sent again");
    }
    gateway.settled();
    let line = gateway.access_line("late");
    let ended = (&line["state"], &line["ended_by"]);
    assert_eq!(
        ended,
        (&json!("FAILED"), &json!("timeout")),
        "{name}: {line}"
    );
}

#[track_caller]
fn must_say(record: &Value, key: &str, connects: bool) {
    let says = |member: &str| record[member].as_str().unwrap_or_default().to_owned();
    let upstream = if connects { "aborted" } else { "none" };
    let ended = [says("state"), says("ended_by"), says("upstream_end")];
    assert_eq!(ended, ["FAILED", "timeout", upstream], "{record}");
    assert!(says("error").contains(key), "{record}");
    assert_eq!(
        record["attempts"].as_array().map_or(0, Vec::len),
        1,
        "{record}"
    );
    assert_eq!(record["attempts"][0]["outcome"], "timeout", "{record}");
    if !connects {
        assert_eq!(record["charged_units"], 0, "{record}");
    }
}

/// Each case mostly waits: they wait side by side.
#[test]
fn an_upstream_that_is_too_slow_is_left_in_time_and_the_client_told() {
    std::thread::scope(|scope| {
        for some in CASES.chunks(4) {
            scope.spawn(|| some.iter().for_each(check));
        }
    });
}

#[test]
fn the_next_backend_is_tried_where_the_first_cannot_be_reached_in_time() {
    let deaf = Deaf::start();
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::builder()
        .backend(deaf.addr())
        .backend(engine.addr())
        .pool("balance = \"round_robin\"\ntimeouts = { connect = \"200ms\" }")
        .start();
    // whichever is picked first: one of two requests begins with the one that is deaf
    for n in 0..2 {
        let id = format!("next-{n}");
        assert!(events::is_done(&gateway.chat(&id).rest()));
        let record = gateway.ended(&id);
        assert_eq!(record["state"], "COMPLETED", "{record}");
    }
    gateway.settled();
}

fn slow_ground() -> (Engine, Gateway) {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .server("timeouts = { header = \"400ms\", body = \"400ms\", keepalive = \"400ms\" }")
        .start();
    (engine, gateway)
}

/// Sends a byte now and then until the other side ends it; how long that took.
fn drip(stream: &mut Stream, bytes: &[u8]) -> Duration {
    let start = Instant::now();
    for byte in bytes.iter().cycle() {
        if stream.try_write(&[*byte]).is_err() || stream.has_answer(ms(50)) {
            break;
        }
        assert!(
            start.elapsed() < TIME + SLACK,
            "it is still read after {:?}",
            start.elapsed()
        );
    }
    start.elapsed()
}

#[test]
fn a_head_that_drips_is_ended_in_its_time() {
    let (engine, gateway) = slow_ground();
    let starts: [&[u8]; 3] = [
        b"P",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"\r\n",
    ];
    for start in starts {
        let mut stream = Stream::connect(gateway.addr());
        stream.write(start);
        let took = drip(&mut stream, if start == b"\r\n" { b"\r\n" } else { b"x" });
        assert!(took >= TIME, "{start:?}: after {took:?}");
        // told or just closed
        if let Ok(answer) = stream.try_answer() {
            answer.must_refuse(408, "request_timeout");
        }
    }
    assert_eq!(engine.calls().len(), 0);
    gateway.settled();
}

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let (_engine, gateway) = slow_ground();
    let mut stream = Stream::connect(gateway.addr());
    let start = Instant::now();
    assert_eq!(stream.read_to_close().as_deref(), Ok(&[][..]));
    assert!(
        (TIME..TIME + SLACK).contains(&start.elapsed()),
        "after {:?}",
        start.elapsed()
    );
}

#[test]
fn a_next_head_that_drips_is_ended_in_its_time() {
    let (_engine, gateway) = slow_ground();
    let mut stream = gateway.send(&whole_chat());
    assert_eq!(stream.next_answer().status, 200);
    stream.write(b"GET /v1/models HTTP/1.1\r\nX-Slow: ");
    assert!(drip(&mut stream, b"x") >= TIME);
}

#[test]
fn a_body_that_stops_or_drips_is_408_and_reaches_no_engine() {
    let (engine, gateway) = slow_ground();
    let ask = whole_chat().id("never-whole");
    let chunked = ask
        .head_for(0)
        .replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let starts = [
        ("a body that does not begin", ask.head_for(1000)),
        (
            "a body that stops",
            ask.head_for(1000) + "{\"model\": \"m\"",
        ),
        ("chunks that stop", chunked.clone() + "5\r\n{\"mod"),
        ("a chunk's size that stops", chunked + "5"),
    ];
    for (name, start) in starts {
        let mut stream = Stream::connect(gateway.addr());
        let begun = Instant::now();
        stream.write(start.as_bytes());
        stream.next_answer().must_refuse(408, "request_timeout");
        let took = begun.elapsed();
        assert!(
            (TIME..TIME + SLACK).contains(&took),
            "{name}: after {took:?}"
        );
    }
    let (head, _) = ask.http2();
    let mut stream = Http2::connect(gateway.addr()).open(head, false);
    stream.upload(b"{\"model\"".to_vec(), false);
    stream.until(|_| false);
    assert_eq!(stream.status, 408, "over HTTP/2");
    assert_eq!(engine.calls().len(), 0);
    gateway.settled();
}

#[test]
fn an_idle_connection_is_closed_in_its_time_and_not_before() {
    let (_engine, gateway) = slow_ground();
    for ask in [
        whole_chat(),
        chat(),
        Ask::get("/v1/models"),
        Ask::get("/nothing"),
    ] {
        let mut stream = gateway.send(&ask);
        stream.next_answer();
        let start = Instant::now();
        // and is told nothing: between two requests a 408 would be taken for an answer
        assert_eq!(stream.read_to_close().as_deref(), Ok(&[][..]), "{ask:?}");
        let took = start.elapsed();
        assert!(
            (TIME - ms(50)..TIME + SLACK).contains(&took),
            "{ask:?}: after {took:?}"
        );
    }
}

/// All time-outs short, and a stream that lasts six times as long.
#[test]
fn a_long_healthy_stream_is_never_cut() {
    let engine = Engine::scripted(|call| {
        if call.member("user") == "bytes" {
            return bytes_apart(call);
        }
        tokens(20, ms(120))(call)
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .server("timeouts = { header = \"400ms\", body = \"400ms\", keepalive = \"400ms\" }")
        .pool(
            "timeouts = { connect = \"400ms\", first_byte = \"400ms\", idle = \"400ms\" }\n\
             stream = { write_timeout = \"400ms\" }",
        )
        .start();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let body = gateway.chat("long").rest();
            assert_eq!(events::contents(&body).len(), 20);
            assert!(events::is_done(&body));
        });
        scope.spawn(|| {
            let mut stream = Http2::connect(gateway.addr()).send(&chat().id("long-http2"));
            let body = stream.rest();
            assert_eq!(events::contents(&body).len(), 20);
            assert!(events::is_done(&body));
        });
        scope.spawn(|| {
            let body = gateway
                .send(&chat().id("long-bytes").set("user", "bytes"))
                .rest();
            assert_eq!(events::contents(&body), ["slow"]);
            assert!(events::is_done(&body));
        });
    });
    for id in ["long", "long-http2", "long-bytes"] {
        assert_eq!(gateway.ended(id)["state"], "COMPLETED", "{id}");
    }
    gateway.settled();
}

/// One event that takes two seconds.
fn bytes_apart(call: &mut Call) -> Played {
    call.head()?;
    for piece in events::delta("slow").chunks(10) {
        call.chunk(piece)?;
        call.pause(ms(120))?;
    }
    call.done()
}

#[test]
fn a_reader_that_is_slow_but_reads_is_never_cut() {
    let piece = events::delta(&"x".repeat(20_000));
    let engine = Engine::scripted(move |call| {
        call.head()?;
        (0..400).try_for_each(|_| call.chunk(&piece))?;
        call.done()
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .server("socket_buffer = \"16KiB\"")
        .pool("stream = { write_timeout = \"600ms\" }")
        .start();
    let mut stream = gateway.chat("slow-but-reads");
    let start = Instant::now();
    let mut events = 0;
    while stream.content().is_some() {
        events += 1;
        // its writes are blocked nearly all the time, and never for the whole time-out
        if events % 20 == 0 {
            std::thread::sleep(ms(100));
        }
    }
    assert_eq!(events, 400);
    assert!(start.elapsed() > ms(1200), "it was no slow reader");
    assert_eq!(gateway.ended("slow-but-reads")["state"], "COMPLETED");
}
