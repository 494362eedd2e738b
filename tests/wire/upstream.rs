//! Connections to an upstream: which are used again, what becomes of one that has gone stale, and answers framed and
//! cut in every way that HTTP allows, or does not.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::Stream;
use crate::support::engine::{Call, Engine, Gone, Played};
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::script::{Door, completion, tokens};
use crate::support::wait::{self, ms, seconds};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// How a first answer ends for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A stream that says `[DONE]`.
    Done,
    /// A stream with an error event at its end.
    Failed,
    /// An answer of this status, whole.
    Status(u16),
    /// The client leaves after the first event.
    Left,
}

fn document() -> Vec<u8> {
    completion(2).to_string().into_bytes()
}

fn sized(call: &mut Call, more: &[(&str, &str)], body: &[u8]) -> Played {
    let length = body.len().to_string();
    let usual = [
        ("Content-Type", "application/json"),
        ("Content-Length", length.as_str()),
    ];
    call.head_with(200, &[&usual, more].concat())?;
    call.raw(body)
}

/// The events of a whole stream, without its framing.
fn stream() -> Vec<u8> {
    [events::delta("t0 "), events::delta("t1 "), events::done()].concat()
}

/// A first answer, how it ends, and whether its connection may carry the next request.
type First = (&'static str, End, bool);

const FIRSTS: [First; 17] = [
    ("a body of known length", End::Status(200), true),
    ("a body in chunks", End::Status(200), true),
    ("a stream in chunks", End::Done, true),
    ("a stream with trailers", End::Done, true),
    ("a stream of known length", End::Done, true),
    ("a refusal", End::Status(400), true),
    ("no body", End::Status(204), true),
    ("a body that says close", End::Status(200), false),
    ("a body of HTTP/1.0", End::Status(200), false),
    ("a body until the close", End::Status(200), false),
    ("a stream until the close", End::Done, false),
    ("a stream without a last chunk", End::Done, false),
    ("a stream that is cut", End::Failed, false),
    ("a stream its client left", End::Left, false),
    ("bytes behind a body", End::Status(200), false),
    ("bytes behind the last chunk", End::Done, false),
    ("another answer behind a body", End::Status(200), false),
];

fn play(name: &str, call: &mut Call) -> Played {
    match name {
        "a body of known length" => sized(call, &[], &document()),
        "a body in chunks" => chunked_body(call),
        "a stream in chunks" => in_one_chunk(call, b"0\r\n\r\n"),
        "a stream with trailers" => with_trailers(call),
        "a stream of known length" => sized_stream(call),
        "a refusal" => call.answer(400, "application/json", b"{\"error\":{}}"),
        "no body" => call.head_with(204, &[]),
        "a body that says close" => sized(call, &[("Connection", "close")], &document()),
        "a body of HTTP/1.0" => old(call),
        "a body until the close" => until_close(call, "application/json", &document()),
        "a stream until the close" => until_close(call, "text/event-stream", &stream()),
        "a stream without a last chunk" => {
            in_one_chunk(call, b"")?;
            call.hold()
        }
        "a stream that is cut" => {
            begin(call)?;
            call.fin()
        }
        "a stream its client left" => {
            begin(call)?;
            call.hold()
        }
        "bytes behind a body" => {
            sized(call, &[], &document())?;
            call.raw(b"and more")
        }
        "bytes behind the last chunk" => in_one_chunk(call, b"0\r\n\r\nand more"),
        "another answer behind a body" => {
            sized(call, &[], &document())?;
            call.raw(b"HTTP/1.1 400 Late\r\nContent-Length: 4\r\n\r\noops")
        }
        other => panic!("no such answer: {other}"),
    }
}

fn asks(end: End) -> Ask {
    match end {
        End::Status(_) => whole_chat(),
        End::Done | End::Failed | End::Left => chat(),
    }
}

fn begin(call: &mut Call) -> Played {
    call.head()?;
    call.delta("t0 ")
}

fn in_one_chunk(call: &mut Call, end: &[u8]) -> Played {
    call.head()?;
    call.chunk(&stream())?;
    call.raw(end)
}

fn chunked_body(call: &mut Call) -> Played {
    call.head_with(
        200,
        &[
            ("Content-Type", "application/json"),
            ("Transfer-Encoding", "chunked"),
        ],
    )?;
    document()
        .chunks(20)
        .try_for_each(|piece| call.chunk(piece))?;
    call.end()
}

fn with_trailers(call: &mut Call) -> Played {
    call.head_with(
        200,
        &[
            ("Content-Type", "text/event-stream"),
            ("Transfer-Encoding", "chunked"),
            ("Trailer", "X-Sum"),
        ],
    )?;
    call.chunk(&stream())?;
    call.raw(b"0\r\nX-Sum: 1\r\nContent-Length: 5\r\n\r\n")
}

fn sized_stream(call: &mut Call) -> Played {
    let length = stream().len().to_string();
    call.head_with(
        200,
        &[
            ("Content-Type", "text/event-stream"),
            ("Content-Length", &length),
        ],
    )?;
    call.raw(&stream())
}

fn old(call: &mut Call) -> Played {
    let body = document();
    let head = format!(
        "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    call.raw(head.as_bytes())?;
    call.raw(&body)
}

fn until_close(call: &mut Call, content_type: &str, body: &[u8]) -> Played {
    call.head_with(200, &[("Content-Type", content_type)])?;
    call.raw(body)?;
    call.fin()
}

#[track_caller]
fn must_end(name: &str, mut stream: Stream, end: End) {
    match end {
        End::Done => assert!(events::is_done(&stream.rest()), "{name}: {stream:?}"),
        End::Failed => assert_eq!(
            events::final_error(&stream.rest())["code"],
            "upstream_broken",
            "{name}"
        ),
        End::Status(status) => assert_eq!(stream.next_answer().status, status, "{name}"),
        End::Left => {
            stream.says("t0 ");
            stream.close();
        }
    }
}

#[test]
fn a_connection_is_used_again_behind_a_whole_answer_only() {
    for (name, end, reused) in FIRSTS {
        let engine = Engine::scripted(move |call| match call.seen.number {
            0 => play(name, call),
            _ => call.answer(200, "application/json", &document()),
        });
        let gateway = Gateway::before(&engine);
        must_end(name, gateway.send(&asks(end).id("first")), end);
        gateway.ended("first");
        gateway.settled();
        // whatever became of the first connection, the next request is served, and gets its own answer
        for n in 1..3 {
            let next = gateway.answer(&whole_chat());
            assert_eq!(next.status, 200, "{name}: request {n}: {}", next.text());
            assert_eq!(next.body, document(), "{name}: request {n}");
        }
        let again = engine.call(1).connection == engine.call(0).connection;
        assert_eq!(again, reused, "{name}: used again");
        assert_eq!(
            engine.call(2).connection,
            engine.call(1).connection,
            "{name}: the second is not used again"
        );
    }
}

#[test]
fn an_answer_that_ends_well_is_completed_however_it_is_framed() {
    let whole = FIRSTS
        .into_iter()
        .filter(|(_, end, _)| matches!(end, End::Done | End::Status(200)));
    for (name, end, _) in whole {
        let engine = Engine::scripted(move |call| play(name, call));
        let gateway = Gateway::before(&engine);
        let answer = gateway.answer(&asks(end).id("framed"));
        let expected = if end == End::Done {
            stream()
        } else {
            document()
        };
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        assert!(answer.body == expected, "{name}: {}", answer.text());
        assert_eq!(
            answer.headers.count("trailer"),
            0,
            "{name}: {:?}",
            answer.headers
        );
        let record = gateway.ended("framed");
        assert_eq!(record["state"], "COMPLETED", "{name}: {record}");
        assert_eq!(record["upstream_end"], "complete", "{name}: {record}");
        gateway.settled();
    }
}

/// The engine answers and then, once told, closes the idle connection.
#[test]
fn a_connection_that_went_stale_is_replaced_without_the_client_knowing() {
    let door = Door::default();
    let engine = Engine::scripted({
        let door = door.clone();
        move |call| {
            tokens(2, ms(0))(call)?;
            door.pass()?;
            match call.seen.number % 2 {
                0 => call.fin(),
                _ => call.reset(),
            }
        }
    });
    let gateway = Gateway::before(&engine);
    for n in 0..20 {
        let id = format!("stale-{n}");
        let body = gateway.chat(&id).rest();
        assert!(
            events::is_done(&body),
            "request {n}: {}",
            String::from_utf8_lossy(&body)
        );
        let record = gateway.ended(&id);
        assert_eq!(record["state"], "COMPLETED", "{record}");
        assert_eq!(
            record["attempts"].as_array().map(Vec::len),
            Some(1),
            "{record}"
        );
        door.open();
        wait::until_true("the engine to close", || {
            engine.call(n).fate().ended_at.is_some()
        });
    }
    assert_eq!(engine.calls().len(), 20, "each is called once");
    gateway.settled();
}

#[test]
fn a_large_request_survives_a_stale_connection_whole() {
    let door = Door::default();
    let engine = Engine::scripted({
        let door = door.clone();
        move |call| {
            call.answer(200, "application/json", &document())?;
            door.pass()?;
            call.reset()
        }
    });
    let gateway = Gateway::before(&engine);
    let large = whole_chat().set("pad", "x".repeat(8 << 20));
    for n in 0..4 {
        assert_eq!(gateway.answer(&large).status, 200, "request {n}");
        assert_eq!(
            engine.call(n).body.len(),
            large.document().to_string().len(),
            "request {n}"
        );
        door.open();
        wait::until_true("the engine to close", || {
            engine.call(n).fate().ended_at.is_some()
        });
    }
    gateway.settled();
}

/// It may have begun to run it: that it came by a connection that was used before changes nothing.
#[test]
fn a_request_the_engine_took_is_not_sent_again() {
    for warm in [false, true] {
        for how in ["fin", "reset"] {
            let engine = Engine::scripted(move |call| match call.member("user").as_str() {
                "fin" => call.fin(),
                "reset" => call.reset(),
                _ => call.answer(200, "application/json", &document()),
            });
            let gateway = Gateway::before(&engine);
            if warm {
                assert_eq!(gateway.answer(&whole_chat()).status, 200);
            }
            let id = format!("taken-{how}-{warm}");
            let answer = gateway.answer(&chat().id(&id).set("user", how));
            answer.must_refuse(502, "upstream_broken");
            let record = gateway.ended(&id);
            assert_eq!(record["state"], "FAILED", "{record}");
            assert_eq!(
                record["attempts"].as_array().map(Vec::len),
                Some(1),
                "{record}"
            );
            assert_eq!(record["attempts"][0]["outcome"], "reset", "{record}");
            assert_eq!(
                engine.calls().len(),
                1 + usize::from(warm),
                "{id}: sent again"
            );
            gateway.settled();
        }
    }
}

/// An upstream that plays on raw connections, and reads no more than it wants.
fn raw(
    play: impl Fn(usize, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (n, socket) in listener.incoming().enumerate() {
            // an end that the test makes is none of the upstream's
            socket.and_then(|mut socket| play(n, &mut socket)).ok();
        }
    });
    addr
}

/// Reads the head of a request, and what came with it.
fn read_head(socket: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    while events::find(&read, b"\r\n\r\n").is_none() {
        let n = socket.read(&mut piece)?;
        if n == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(&piece[..n]);
    }
    Ok(read)
}

/// The upstream says no before it has read the body, and closes with the rest of it unread.
#[test]
fn an_answer_before_the_body_was_read_reaches_the_client() {
    let early = "HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\nContent-Length: 16\r\nConnection: close\r\n\r\n{\"error\": \"big\"}";
    let addr = raw(move |n, socket| {
        read_head(socket)?;
        socket.write_all(early.as_bytes())?;
        if n % 2 == 0 {
            // reads on for a while, as servers do so that their answer is not lost
            socket.set_read_timeout(Some(ms(200)))?;
            std::io::copy(socket, &mut std::io::sink()).ok();
        }
        Ok(())
    });
    let gateway = Gateway::builder().backend(&addr).start();
    for (n, size) in [1 << 10, 1 << 20, 16 << 20].into_iter().enumerate() {
        for again in 0..2 {
            let id = format!("early-{n}-{again}");
            let answer = gateway.answer(&chat().id(&id).set("pad", "x".repeat(size)));
            let polite = again == 0;
            // a close with bytes unread may take the answer away: then it is the upstream that broke
            let seen = answer.status == 413 || (!polite && answer.status == 502);
            assert!(seen, "{id}: {} {}", answer.status, answer.text());
            if answer.status == 413 {
                assert_eq!(answer.text(), "{\"error\": \"big\"}", "{id}");
            }
            let record = gateway.ended(&id);
            assert_eq!(record["state"], "FAILED", "{record}");
            assert_eq!(
                record["attempts"].as_array().map(Vec::len),
                Some(1),
                "{record}"
            );
        }
    }
    gateway.settled();
}

#[test]
fn a_connection_whose_request_was_not_read_whole_is_not_used_again() {
    // it answers with the length of what it read, and keeps the connection open
    let addr = raw(|_, socket| {
        for _ in 0..2 {
            read_head(socket)?;
            socket.write_all(
                b"HTTP/1.1 429 Later\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nlater",
            )?;
        }
        Ok(())
    });
    let gateway = Gateway::builder()
        .backend(&addr)
        .pool("retry = { attempts = 1 }")
        .start();
    for n in 0..4 {
        let large = chat().set("pad", format!("{n}").repeat(16 << 20));
        let answer = gateway.answer(&large);
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (429, "later"),
            "request {n}"
        );
    }
    gateway.settled();
}

#[test]
fn an_upstream_that_takes_no_more_of_the_request_is_left_in_time() {
    let addr = raw(|_, socket| {
        read_head(socket)?;
        // it lives, and reads nothing
        std::thread::sleep(seconds(20));
        Ok(())
    });
    let gateway = Gateway::builder()
        .backend(&addr)
        .pool("timeouts = { first_byte = \"500ms\" }")
        .start();
    let large = chat().set("pad", "x".repeat(16 << 20)).id("not-taken");
    gateway.answer(&large).must_refuse(504, "upstream_timeout");
    let record = gateway.ended("not-taken");
    assert_eq!(record["ended_by"], "timeout", "{record}");
    gateway.settled();
}

#[test]
fn interim_answers_are_stepped_over() {
    let interims: [(&str, &[u8]); 5] = [
        ("100", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("102", b"HTTP/1.1 102 Processing\r\n\r\n"),
        ("103", b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"),
        ("several", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n"),
        ("an unknown one", b"HTTP/1.1 199 Odd\r\n\r\n"),
    ];
    for (name, interim) in interims {
        for ask in [chat(), whole_chat()] {
            let engine = Engine::scripted(move |call| {
                call.raw(interim)?;
                call.pause(ms(5))?;
                tokens(2, ms(0))(call)
            });
            let gateway = Gateway::before(&engine);
            for n in 0..2 {
                let mut stream = gateway.send(&ask.clone().id(&format!("interim-{n}")));
                // the first head that comes is the answer's
                let head = stream.interim();
                assert!(head.starts_with("HTTP/1.1 200"), "{name}: {head}");
                assert!(
                    !head.to_ascii_lowercase().contains("link:"),
                    "{name}: {head}"
                );
                assert_eq!(
                    gateway.ended(&format!("interim-{n}"))["state"],
                    "COMPLETED",
                    "{name}"
                );
            }
            assert_eq!(
                engine.call(0).connection,
                engine.call(1).connection,
                "{name}"
            );
        }
    }
}

/// Answers that are no HTTP, or not as they should be, and bring no output.
#[test]
fn an_answer_that_is_no_http_is_502_and_its_connection_is_gone() {
    let large = format!(
        "HTTP/1.1 200 OK\r\nX-Large: {}\r\n\r\n",
        "x".repeat(2 << 20)
    );
    let odd: Vec<(&str, Vec<u8>)> = vec![
        ("words", b"what do you want?\r\n\r\n".to_vec()),
        ("TLS", b"\x15\x03\x01\x00\x02\x02\x46".repeat(20)),
        ("HTTP/0.9", b"{\"choices\":[]}".to_vec()),
        ("half a head", b"HTTP/1.1 200 OK\r\nContent-Ty".to_vec()),
        ("a head without an end", b"HTTP/1.1 200 OK\r\n".to_vec()),
        ("a status that is no number", b"HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
        ("two lengths that differ", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{\"a\":1}".to_vec()),
        ("a negative length", b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: -5\r\n\r\n{\"a\":1}".to_vec()),
        ("a switch of protocols", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n".to_vec()),
        ("a head of 2 MiB", large.into_bytes()),
        ("nothing but interim answers", b"HTTP/1.1 100 Continue\r\n\r\n".repeat(50)),
        ("a NUL in the head", b"HTTP/1.1 200 OK\r\nX-Odd: a\0b\r\nContent-Length: 0\r\n\r\n".to_vec()),
    ];
    for (name, bytes) in odd {
        let engine = Engine::scripted(move |call| match call.seen.number {
            0 => {
                call.raw(&bytes)?;
                call.fin()
            }
            _ => call.answer(200, "application/json", &document()),
        });
        let gateway = Gateway::before(&engine);
        let answer = gateway.answer(&whole_chat().id("odd"));
        assert_eq!(answer.status, 502, "{name}: {}", answer.text());
        answer.must_refuse(502, "upstream_broken");
        let record = gateway.ended("odd");
        assert_eq!(
            (&record["state"], &record["ended_by"]),
            (&json!("FAILED"), &json!("upstream")),
            "{name}: {record}"
        );
        assert_eq!(
            gateway.answer(&whole_chat()).status,
            200,
            "{name}: the next request"
        );
        assert_eq!(engine.calls().len(), 2, "{name}");
        gateway.settled();
    }
}

fn without_beats(body: &[u8]) -> (Vec<u8>, usize) {
    const BEAT: &[u8] = b": keepalive\n";
    let mut rest = body;
    let (mut kept, mut beats) = (Vec::new(), 0);
    while let Some(at) = events::find(rest, BEAT) {
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[at + BEAT.len()..];
        beats += 1;
    }
    kept.extend_from_slice(rest);
    (kept, beats)
}

/// A byte at a time, with heartbeats in between.
fn dribble(call: &mut Call, bytes: &[u8]) -> Played {
    for (n, byte) in bytes.iter().enumerate() {
        call.raw(&[*byte])?;
        // the timer of a heartbeat and a byte come due together, again and again
        if n % 3 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

fn in_chunks(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in body.chunks(7) {
        out.extend_from_slice(format!("{:x};odd=1\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// A read that loses the race against a heartbeat has lost no byte.
#[test]
fn no_byte_is_lost_when_bytes_come_one_at_a_time_and_heartbeats_race_them() {
    let body: Vec<u8> = (0..40)
        .flat_map(|n| events::delta(&format!("{n} wörd")))
        .chain(events::done())
        .collect();
    let framings: [(&str, fn(&mut Call, &[u8]) -> Result<(), Gone>); 3] = [
        ("chunks", |call, body| {
            call.head()?;
            dribble(call, &in_chunks(body))
        }),
        ("a known length", |call, body| {
            let length = body.len().to_string();
            call.head_with(
                200,
                &[
                    ("Content-Type", "text/event-stream"),
                    ("Content-Length", &length),
                ],
            )?;
            dribble(call, body)
        }),
        ("the connection's end", |call, body| {
            call.head_with(200, &[("Content-Type", "text/event-stream")])?;
            dribble(call, body)?;
            call.fin()
        }),
    ];
    std::thread::scope(|scope| {
        for (name, play) in framings {
            let body = &body;
            scope.spawn(move || {
                let sent = body.clone();
                let engine = Engine::scripted(move |call| play(call, &sent));
                let gateway = Gateway::builder()
                    .backend(engine.addr())
                    .pool("stream = { heartbeat = \"10ms\" }")
                    .start();
                let mut stream = gateway.chat("dribble").patience(seconds(30));
                let (got, beats) = without_beats(&stream.rest());
                assert!(
                    got == *body,
                    "{name}: {} bytes of {}",
                    got.len(),
                    body.len()
                );
                assert!(beats > 20, "{name}: only {beats} heartbeats raced");
                let record = gateway.ended("dribble");
                assert_eq!(record["state"], "COMPLETED", "{name}: {record}");
                assert_eq!(record["delivered_units"], 40, "{name}: {record}");
            });
        }
    });
}

#[test]
fn a_whole_answer_that_comes_a_byte_at_a_time_is_whole() {
    let engine = Engine::scripted(|call| {
        let body = document();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        dribble(call, &[head.as_bytes(), &body].concat())
    });
    let gateway = Gateway::before(&engine);
    for n in 0..2 {
        let answer = gateway.answer(&whole_chat());
        assert_eq!(
            (answer.status, answer.body),
            (200, document()),
            "request {n}"
        );
    }
    assert_eq!(engine.call(0).connection, engine.call(1).connection);
}
