//! Engines that compress although they are asked not to: read and counted, and passed on plain.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::engine::{Engine, Played};
use crate::support::events::{self, delta, done};
use crate::support::gateway::Gateway;
use crate::support::wait::ms;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::io::Write;

/// Each piece compressed and flushed, so that it can be read when it arrives; then the end of the compressed stream.
fn compressed(coding: &str, pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
    match coding {
        "gzip" => gzip(pieces),
        _ => brotli(pieces),
    }
}

fn gzip(pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut out = Vec::new();
    for piece in pieces {
        encoder.write_all(piece).unwrap();
        encoder.flush().unwrap();
        out.push(std::mem::take(encoder.get_mut()));
    }
    out.push(encoder.finish().unwrap());
    out
}

fn brotli(pieces: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    let mut out = Vec::new();
    let mut taken = 0;
    for piece in pieces {
        encoder.write_all(piece).unwrap();
        encoder.flush().unwrap();
        out.push(encoder.get_ref()[taken..].to_vec());
        taken = encoder.get_ref().len();
    }
    out.push(encoder.into_inner()[taken..].to_vec());
    out
}

/// The stream's events, one a piece.
fn stream() -> Vec<Vec<u8>> {
    vec![
        delta("北"),
        delta("b"),
        events::event(&events::usage(5, 7).to_string()),
        done(),
    ]
}

fn engine(coding: &'static str, pieces: Vec<Vec<u8>>) -> Engine {
    Engine::scripted(move |call| {
        head(call, coding, "text/event-stream")?;
        for piece in compressed(coding, &pieces) {
            call.pause(ms(20))?;
            call.chunk(&piece)?;
        }
        call.end()
    })
}

fn head(call: &mut crate::support::engine::Call, coding: &str, content_type: &str) -> Played {
    let headers = [
        ("Content-Type", content_type),
        ("Content-Encoding", coding),
        ("Transfer-Encoding", "chunked"),
    ];
    call.head_with(200, &headers)
}

fn eager(ask: Ask) -> Ask {
    ask.header("Accept-Encoding", "gzip, br, zstd")
}

#[test]
fn the_upstream_is_asked_for_no_compression_whatever_the_client_takes() {
    let engine = engine("gzip", stream());
    let gateway = Gateway::before(&engine);
    for ask in [eager(chat()), chat()] {
        gateway.answer(&ask);
        let call = engine.calls().pop().unwrap();
        assert_eq!(call.headers.get("accept-encoding"), Some("identity"));
    }
}

#[test]
fn a_compressed_stream_reaches_the_client_plain_and_is_counted() {
    for coding in ["gzip", "br"] {
        let engine = engine(coding, stream());
        let gateway = Gateway::before(&engine);
        let answer = gateway.answer(&eager(chat()).id("packed"));
        let shown = [delta("北"), delta("b"), done()].concat();
        assert_eq!(answer.text(), String::from_utf8_lossy(&shown), "{coding}");
        assert_eq!(
            answer.headers.count("content-encoding"),
            0,
            "{coding}: {:?}",
            answer.headers
        );
        let record = gateway.ended("packed");
        assert_eq!(record["state"], "COMPLETED", "{coding}: {record}");
        assert_eq!(record["usage_source"], "upstream", "{coding}: {record}");
        assert_eq!(
            (&record["input_units"], &record["generated_units"]),
            (&json!(5), &json!(7)),
            "{coding}: {record}"
        );
        gateway.settled();
    }
}

#[test]
fn each_compressed_event_leaves_when_it_can_be_read() {
    for coding in ["gzip", "br"] {
        let engine = Engine::scripted(move |call| {
            head(call, coding, "text/event-stream")?;
            call.chunk(&compressed(coding, &[delta("a"), delta("b")])[0])?;
            call.hold()
        });
        let gateway = Gateway::before(&engine);
        let mut stream = gateway.chat("early");
        stream.says("a");
        stream.close();
        engine.call(0).closed();
    }
}

#[test]
fn heartbeats_stand_between_the_events_of_a_compressed_stream() {
    let engine = Engine::scripted(|call| {
        head(call, "gzip", "text/event-stream")?;
        for piece in gzip(&[delta("a"), delta("b"), done()]) {
            call.chunk(&piece)?;
            call.pause(ms(400))?;
        }
        call.end()
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("stream = { heartbeat = \"100ms\" }")
        .start();
    let body = gateway.send(&chat()).rest();
    assert!(
        events::count(&body, b": keepalive\n") >= 4,
        "{}",
        String::from_utf8_lossy(&body)
    );
    let plain = String::from_utf8_lossy(&body).replace(": keepalive\n", "");
    assert_eq!(plain.as_bytes(), [delta("a"), delta("b"), done()].concat());
}

#[test]
fn a_compressed_document_is_counted_too() {
    let document = br#"{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#;
    for coding in ["gzip", "br"] {
        let engine = Engine::scripted(move |call| {
            head(call, coding, "application/json")?;
            for piece in compressed(coding, &[document.to_vec()]) {
                call.chunk(&piece)?;
            }
            call.end()
        });
        let gateway = Gateway::before(&engine);
        let answer = gateway.answer(&whole_chat().id("packed"));
        assert_eq!(answer.body, document, "{coding}");
        assert_eq!(answer.headers.count("content-encoding"), 0, "{coding}");
        let record = gateway.ended("packed");
        assert_eq!(
            (&record["input_units"], &record["generated_units"]),
            (&json!(3), &json!(4)),
            "{coding}: {record}"
        );
    }
}

/// Nothing of it could be counted, and no event told from half of one.
#[test]
fn an_answer_in_a_coding_that_cannot_be_read_is_not_taken() {
    for (ask, content_type) in [
        (chat(), "text/event-stream"),
        (whole_chat(), "application/json"),
    ] {
        let engine = Engine::scripted(move |call| {
            head(call, "zstd", content_type)?;
            call.chunk(b"\x28\xb5\x2f\xfd not really zstd")?;
            call.end()
        });
        let gateway = Gateway::before(&engine);
        let answer = gateway.answer(&eager(ask).id("zstd"));
        answer.must_refuse(502, "upstream_broken");
        assert_eq!(gateway.ended("zstd")["state"], "FAILED");
        gateway.settled();
    }
}

#[test]
fn what_is_not_compressed_as_it_says_ends_as_broken() {
    let engine = Engine::scripted(|call| {
        head(call, "gzip", "text/event-stream")?;
        call.chunk(&delta("a"))?;
        call.done()
    });
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&chat().id("lie"));
    assert_eq!(
        events::final_error(&answer.body)["code"],
        "upstream_broken",
        "{}",
        answer.text()
    );
    assert_eq!(gateway.ended("lie")["state"], "FAILED");
    gateway.settled();
}
