//! What bounds a request: its head, its body, all bodies together; and bodies of every framing that come whole.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::Stream;
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::http2::Http2;
use crate::support::machine;
use crate::support::random::Random;
use crate::support::script::{holding, silent, tokens};
use crate::support::wait::{self, ms, seconds};
use serde_json::json;

/// Headers of every request a test sends: Host, Content-Type, Content-Length, Authorization.
const USUAL: usize = 4;

fn with_headers(count: usize, value: &str) -> Ask {
    (0..count).fold(whole_chat(), |ask, n| ask.header(&format!("X-H{n}"), value))
}

/// What of a head counts as its size: each line of it.
fn size_of(ask: &Ask) -> usize {
    let bytes = ask.bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let head = text.split("\r\n\r\n").next().unwrap();
    head.split("\r\n").skip(1).map(|line| line.len() + 2).sum()
}

#[test]
fn heads_over_the_limits_are_431_and_those_at_them_are_served() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .server("max_headers = { count = 20, size = \"8KiB\" }")
        .start();
    let at_size = |size: usize| {
        let without = size_of(&whole_chat().header("X-Big", ""));
        whole_chat().header("X-Big", &"b".repeat(size - without))
    };
    let cases = [
        ("20 headers", with_headers(20 - USUAL, "v"), 200),
        ("21 headers", with_headers(21 - USUAL, "v"), 431),
        ("200 headers", with_headers(200, "v"), 431),
        ("8 KiB", at_size(8192), 200),
        ("8 KiB and one byte", at_size(8193), 431),
        ("one header of 200 KiB", at_size(200 << 10), 431),
        (
            "many that make 40 KiB",
            with_headers(10, &"v".repeat(4000)),
            431,
        ),
    ];
    for (name, ask, status) in cases {
        let answer = gateway.answer(&ask);
        if status == 431 {
            answer.must_refuse(431, "headers_too_large");
        }
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
    }
    for (name, ask) in [
        ("21 headers", with_headers(21 - 2, "v")),
        ("9 KiB", at_size(9 << 10)),
    ] {
        let mut stream = Http2::connect(gateway.addr()).send(&ask);
        stream.rest();
        assert_eq!(stream.status, 431, "{name} over HTTP/2");
        let body = String::from_utf8_lossy(&stream.body).into_owned();
        assert!(
            body.contains("headers_too_large"),
            "{name} over HTTP/2: {body}"
        );
    }
    assert_eq!(engine.calls().len(), 2);
    gateway.settled();
}

/// A request with so much in its body. The engine holds it unless its user says otherwise.
fn padded(kib: usize) -> Ask {
    chat().set("pad", "x".repeat(kib << 10))
}

#[test]
fn all_bodies_together_have_one_bound_and_give_it_back() {
    let engine = Engine::scripted(silent);
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .server("max_body_memory = \"300KiB\"")
        .start();
    gateway
        .answer(&padded(301))
        .must_refuse(503, "body_memory_full");
    for round in 0..3 {
        let held = gateway.send(&padded(200));
        engine.held(round * 2);
        gateway
            .answer(&padded(150))
            .must_refuse(503, "body_memory_full");
        // a smaller one fits beside it
        let beside = gateway.send(&padded(50));
        engine.held(round * 2 + 1);
        beside.reset();
        held.close();
        gateway.settled();
    }
    assert_eq!(engine.calls().len(), 6);
}

#[test]
fn a_body_that_is_still_being_sent_counts_and_gives_back_what_it_had() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .server("max_body_memory = \"300KiB\"")
        .start();
    let asked = |status: u16| match gateway.answer(&padded(150)).status {
        seen if seen == status => Ok(()),
        seen => Err(format!("status {seen}")),
    };
    let half = wait::until("half a body to count", || {
        let mut half = Stream::connect(gateway.addr());
        half.write(chat().head_for(250 << 10).as_bytes());
        half.write(&vec![b' '; 200 << 10]);
        // where the whole one was read first, it is the half one that found no room
        asked(503).map(|()| half)
    });
    half.reset();
    wait::until("what it had to come back", || asked(200));
    gateway.settled();
}

#[test]
fn an_answer_that_has_begun_holds_no_body() {
    let engine = Engine::scripted(holding(1));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .server("max_body_memory = \"300KiB\"")
        .start();
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = gateway.send(&padded(200));
        stream.says("t0 ");
        streams.push(stream);
    }
}

#[test]
fn a_compressed_body_is_415_and_reaches_no_engine() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    for coding in [
        "gzip",
        "GZIP",
        "br",
        "zstd",
        "deflate",
        "compress",
        "gzip, identity",
        "identity, gzip",
        "odd",
    ] {
        let answer = gateway.answer(&whole_chat().header("Content-Encoding", coding));
        answer.must_refuse(415, "unsupported_encoding");
    }
    assert_eq!(engine.calls().len(), 0);
    for coding in ["identity", "Identity"] {
        assert_eq!(
            gateway
                .answer(&whole_chat().header("Content-Encoding", coding))
                .status,
            200,
            "{coding:?}"
        );
    }
    gateway.settled();
}

/// The document cut into chunks of many sizes, with an extension on some.
fn in_chunks(document: &[u8], random: &mut Random) -> Vec<u8> {
    let mut wire = Vec::new();
    let mut rest = document;
    while !rest.is_empty() {
        let size = random.pick(&[1, 2, 17, 4096, 65_537]).min(rest.len());
        let (piece, after) = rest.split_at(size);
        let extension = if random.one_in(3) { ";x=\"1\"" } else { "" };
        wire.extend_from_slice(format!("{size:x}{extension}\r\n").as_bytes());
        wire.extend_from_slice(piece);
        wire.extend_from_slice(b"\r\n");
        rest = after;
    }
    wire
}

/// A chat with a prompt of about so many bytes; nothing in it is changed on the way.
fn long_chat(bytes: usize) -> Ask {
    whole_chat().set(
        "messages",
        json!([{"role": "user", "content": "wörd ".repeat(bytes / 6)}]),
    )
}

#[test]
fn bodies_of_every_size_and_framing_arrive_whole() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .start();
    let mut random = Random::new(7);
    let mut number = 0;
    for size in [0, 100, 16_384, 65_536, 1 << 20, 8 << 20] {
        let ask = long_chat(size);
        let document = ask.document().to_string().into_bytes();
        let mut must_have_come = |how: &str, status: u16| {
            assert_eq!(status, 200, "{how} of {size} bytes");
            let call = engine.call(number);
            number += 1;
            assert!(
                *call.body == document,
                "{how}: {} bytes sent, {} came",
                document.len(),
                call.body.len()
            );
            let length = document.len().to_string();
            assert_eq!(
                call.headers.get("content-length"),
                Some(length.as_str()),
                "{how}"
            );
            assert_eq!(call.headers.count("transfer-encoding"), 0, "{how}");
        };
        must_have_come("a body with its length", gateway.answer(&ask).status);

        let head = ask
            .head_for(0)
            .replace("Content-Length: 0", "Transfer-Encoding: chunked");
        let mut stream = Stream::connect(gateway.addr());
        stream.write(head.as_bytes());
        stream.write(&in_chunks(&document, &mut random));
        stream.write(b"0\r\nX-Sum: 1\r\n");
        // the end of the last chunk comes by itself
        stream.write(b"\r\n");
        must_have_come("chunks", stream.next_answer().status);

        let mut stream = Http2::connect(gateway.addr()).send(&ask);
        stream.rest();
        must_have_come("a body over HTTP/2", stream.status);
    }
    gateway.settled();
}

#[test]
fn a_body_over_http_2_that_is_not_as_long_as_it_says_reaches_no_engine() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .start();
    for length in [10_usize, 10_000] {
        let ask = whole_chat().header("Content-Length", &length.to_string());
        let mut stream = Http2::connect(gateway.addr()).send(&ask);
        let ended = stream.try_until(|_| false);
        assert!(
            ended.is_err() || stream.status == 400,
            "a length of {length}: {} {:?}",
            stream.status,
            ended
        );
    }
    assert_eq!(engine.calls().len(), 0);
    gateway.settled();
}

#[test]
fn a_body_that_is_too_large_is_413_and_its_client_can_read_it() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .server("max_body = \"1MiB\"")
        .start();
    let ask = long_chat(8 << 20);
    let document = ask.document().to_string().into_bytes();
    gateway.answer(&ask).must_refuse(413, "request_too_large");

    let head = ask
        .head_for(0)
        .replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let mut stream = Stream::connect(gateway.addr());
    stream.write(head.as_bytes());
    stream.write(&in_chunks(&document, &mut Random::new(8)));
    stream.write(b"0\r\n\r\n");
    stream.next_answer().must_refuse(413, "request_too_large");

    let (head, _) = ask.http2();
    let connection = Http2::connect(gateway.addr());
    let mut stream = connection.open(head, false);
    // the gateway may stop taking it at any point
    stream.try_upload(document, true).ok();
    stream.try_until(|_| false).ok();
    assert_eq!(stream.status, 413, "over HTTP/2");
    assert_eq!(engine.calls().len(), 0);
    gateway.settled();
}

/// Half a chunk's head and a close once kept a whole core busy.
#[test]
fn uploads_that_break_off_leave_nothing_that_spins() {
    let engine = Engine::scripted(tokens(51, ms(20)));
    let gateway = Gateway::before(&engine);
    let head = chat()
        .head_for(0)
        .replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let half = [head.as_str(), "4\r"].concat();
    let kept: Vec<Stream> = (0..8)
        .map(|n| {
            let mut stream = Stream::connect(gateway.addr());
            stream.write(half.as_bytes());
            if n % 2 == 0 {
                stream.half_close();
            }
            stream
        })
        .collect();
    let pid = gateway.process.pid();
    let mut running = gateway.chat("running");
    running.says("t0 ");
    let ticks = machine::cpu_ticks(pid);
    (1..51).for_each(|n| running.says(&format!("t{n} ")));
    let used = machine::cpu_ticks(pid) - ticks;
    assert!(
        used < 50,
        "{used} hundredths of a second on the CPU in one: it spins"
    );
    drop(kept);
    assert_eq!(engine.calls().len(), 1);
}

#[test]
fn a_client_that_asks_before_it_sends_its_body_is_told_to_go_on() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    for (n, expect) in ["100-continue", "100-Continue"].iter().enumerate() {
        let ask = whole_chat().header("Expect", expect);
        let document = ask.document().to_string();
        let mut stream = Stream::connect(gateway.addr()).patience(seconds(5));
        stream.write(ask.head_for(document.len()).as_bytes());
        let interim = stream.interim();
        assert!(interim.starts_with("HTTP/1.1 100"), "{expect}: {interim}");
        stream.write(document.as_bytes());
        assert_eq!(stream.next_answer().status, 200, "{expect}");
        assert_eq!(engine.call(n).headers.count("expect"), 0);
    }
}

/// An interim answer is none: what follows it is told by a status, and the connection goes on.
#[test]
fn a_client_that_was_told_to_go_on_gets_an_answer_like_any_other() {
    let run = tokens(1, ms(0));
    let engine = Engine::scripted(move |call| match call.member("user").as_str() {
        "fails" => call.reset(),
        _ => run(call),
    });
    let gateway = Gateway::before(&engine);
    let mut stream = Stream::connect(gateway.addr());
    for (user, status) in [("runs", 200), ("fails", 502), ("runs", 200)] {
        let ask = whole_chat()
            .set("user", user)
            .header("Expect", "100-continue");
        let document = ask.document().to_string();
        stream.write(ask.head_for(document.len()).as_bytes());
        let interim = stream.interim();
        assert!(interim.starts_with("HTTP/1.1 100"), "{user}: {interim}");
        stream.write(document.as_bytes());
        assert_eq!(stream.next_answer().status, status, "{user}");
    }
    stream.write(&whole_chat().bytes());
    assert_eq!(stream.next_answer().status, 200, "without asking");
    gateway.settled();
}

#[test]
fn a_client_that_asks_and_is_refused_is_not_told_to_go_on() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let asks = |ask: Ask| ask.header("Expect", "100-continue");
    let cases = [
        (
            "a wrong key",
            asks(whole_chat().key("sk-nobody")),
            1000,
            401,
        ),
        ("too large a body", asks(whole_chat()), 64 << 20, 413),
        (
            "a compressed body",
            asks(whole_chat()).header("Content-Encoding", "gzip"),
            1000,
            415,
        ),
        ("an unknown path", asks(Ask::post("/nothing")), 1000, 404),
    ];
    for (name, ask, length, status) in cases {
        let mut stream = Stream::connect(gateway.addr());
        stream.write(ask.head_for(length).as_bytes());
        let first = stream.interim();
        assert!(first.contains(&format!(" {status} ")), "{name}: {first}");
    }
    assert_eq!(engine.calls().len(), 0);
}

/// An HTTP/1.0 client knows no chunks, no 100, and a close as the end.
#[test]
fn http_1_0_clients_get_what_they_can_read() {
    let engine = Engine::scripted(tokens(5, ms(5)));
    let gateway = Gateway::before(&engine);
    let old = |ask: &Ask| {
        String::from_utf8(ask.bytes())
            .unwrap()
            .replacen("HTTP/1.1", "HTTP/1.0", 1)
    };
    let asks = [
        ("a stream", chat()),
        ("a whole answer", whole_chat()),
        (
            "a stream that asks to keep the connection",
            chat().header("Connection", "keep-alive"),
        ),
        ("a refusal", whole_chat().key("sk-nobody")),
        (
            "a question first",
            whole_chat().header("Expect", "100-continue"),
        ),
        ("no Host", whole_chat()),
    ];
    for (name, ask) in asks {
        let mut stream = Stream::connect(gateway.addr());
        let request = match name {
            "no Host" => old(&ask).replacen("Host: localhost\r\n", "", 1),
            _ => old(&ask),
        };
        stream.write(request.as_bytes());
        let head = stream.interim();
        let refused = name == "a refusal";
        assert!(
            head.contains(if refused { " 401 " } else { " 200 " }),
            "{name}: {head}"
        );
        assert!(
            !head.to_ascii_lowercase().contains("transfer-encoding"),
            "{name}: {head}"
        );
        let body = stream
            .read_to_close()
            .unwrap_or_else(|e| panic!("{name}: {e:?}"));
        if ask.document()["stream"] == true {
            assert_eq!(crate::support::events::contents(&body).len(), 5, "{name}");
            assert!(body.ends_with(b"data: [DONE]\n\n"), "{name}");
        } else {
            let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert!(document.is_object(), "{name}");
        }
    }
    gateway.settled();
}

#[test]
fn an_http_1_0_client_that_asks_keeps_its_connection_behind_a_whole_answer() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let ask = whole_chat().header("Connection", "keep-alive");
    let request = String::from_utf8(ask.bytes())
        .unwrap()
        .replacen("HTTP/1.1", "HTTP/1.0", 1);
    let mut stream = Stream::connect(gateway.addr());
    for _ in 0..3 {
        stream.write(request.as_bytes());
        assert_eq!(stream.next_answer().status, 200);
    }
}
