//! Streams of every API made from seeds, through the real binary in odd segments: what the client got is what was sent.

use crate::support::dialect;
use crate::support::engine::{Call, Engine, Played};
use crate::support::gateway::Gateway;
use crate::support::odd::Odd;
use crate::support::random::Random;
use crate::support::sha256;
use crate::support::wait::{ms, seconds};
use serde_json::json;

const STREAMS: u64 = 240;

/// Clients side by side: a byte of one stream in another would be seen.
const CLIENTS: u64 = 6;

/// Sends a stream as its seed says: framed in chunks, by a length, or by the close, and cut anywhere, also within the
/// framing itself.
fn play(call: &mut Call) -> Played {
    let seed: u64 = call.member("user").parse().unwrap();
    let odd = Odd::of(seed);
    let mut random = Random::new(seed ^ 0xbeef);
    let (framing, bytes) = framed(&mut random, &odd.sent);
    let length = odd.sent.len().to_string();
    let header = match framing {
        Framing::Chunks => ("Transfer-Encoding", "chunked"),
        Framing::Length => ("Content-Length", length.as_str()),
        Framing::Close => ("Connection", "close"),
    };
    call.head_with(
        200,
        &[("Content-Type", "text/event-stream; charset=utf-8"), header],
    )?;
    let slow = random.one_in(4);
    for piece in random.pieces(&bytes, 30) {
        call.raw(piece)?;
        if slow {
            call.pause(ms(1))?;
        }
    }
    if framing == Framing::Close {
        call.fin()
    } else {
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Chunks,
    Length,
    Close,
}

fn framed(random: &mut Random, stream: &[u8]) -> (Framing, Vec<u8>) {
    let framing = random.pick(&[
        Framing::Chunks,
        Framing::Chunks,
        Framing::Length,
        Framing::Close,
    ]);
    if framing != Framing::Chunks {
        return (framing, stream.to_vec());
    }
    let mut out = Vec::new();
    for piece in random
        .pieces(stream, 20)
        .into_iter()
        .filter(|piece| !piece.is_empty())
    {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        out.extend_from_slice(piece);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    (framing, out)
}

#[test]
fn two_hundred_and_forty_streams_arrive_byte_for_byte_and_are_counted_right() {
    let engine = Engine::scripted(play);
    let gateway = dialect::builder(&engine, "").threads(2).start();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let gateway = &gateway;
            scope.spawn(move || {
                (0..STREAMS)
                    .filter(|seed| seed % CLIENTS == client)
                    .for_each(|seed| one(gateway, seed));
            });
        }
    });
    assert_eq!(engine.calls().len() as u64, STREAMS);
    let completed = [("state", "COMPLETED"), ("ended_by", "upstream")];
    assert_eq!(
        gateway.metric("streamgate_requests_total", &completed),
        STREAMS as f64
    );
    assert_eq!(
        gateway.metric("streamgate_requests_total", &[]),
        STREAMS as f64
    );
    gateway.settled();
}

fn one(gateway: &Gateway, seed: u64) {
    let odd = Odd::of(seed);
    let id = format!("odd-{seed}");
    let mut ask = odd.dialect.ask().id(&id).set("user", seed.to_string());
    if odd.asks_usage && odd.dialect.pool() == "p" {
        ask = ask.set("stream_options", json!({"include_usage": true}));
    }
    let mut stream = gateway.send(&ask).patience(seconds(30));
    assert_eq!(stream.status(), 200, "seed {seed}: {stream:?}");
    let got = stream.rest();
    if sha256(&got) != sha256(&odd.shown) {
        let apart = got
            .iter()
            .zip(&odd.shown)
            .position(|(a, b)| a != b)
            .unwrap_or(got.len().min(odd.shown.len()));
        let around = |bytes: &[u8]| {
            String::from_utf8_lossy(
                &bytes[apart.saturating_sub(80).min(bytes.len())..bytes.len().min(apart + 80)],
            )
            .into_owned()
        };
        panic!(
            "seed {seed}, {:?}: {} bytes expected, {} came, apart at {apart}: {:?} instead of {:?}",
            odd.dialect,
            odd.shown.len(),
            got.len(),
            around(&got),
            around(&odd.shown)
        );
    }
    let record = gateway.ended(&id);
    assert_eq!(record["state"], "COMPLETED", "seed {seed}: {record}");
    assert_eq!(
        record["generated_units"], odd.generated,
        "seed {seed}: {record}"
    );
    assert_eq!(
        record["delivered_units"], odd.generated,
        "seed {seed}: {record}"
    );
    assert_eq!(record["usage_source"], odd.source, "seed {seed}: {record}");
}

#[test]
fn the_seeds_make_streams_of_every_kind() {
    let all: Vec<Odd> = (0..STREAMS).map(Odd::of).collect();
    let with = |test: &dyn Fn(&Odd) -> bool| all.iter().filter(|odd| test(odd)).count();
    let has = |odd: &Odd, piece: &[u8]| odd.sent.windows(piece.len()).any(|window| window == piece);
    for dialect in dialect::ALL
        .into_iter()
        .filter(|d| *d != dialect::Dialect::Native)
    {
        assert!(with(&|odd| odd.dialect == dialect) >= 30, "{dialect:?}");
    }
    for (what, count) in [
        (
            "a BOM",
            with(&|odd| odd.sent.starts_with("\u{feff}".as_bytes())),
        ),
        ("CRLF", with(&|odd| has(odd, b"\r\n\r\n"))),
        ("bare CR", with(&|odd| has(odd, b"\r\r"))),
        ("no space", with(&|odd| has(odd, b"data:{"))),
        ("comments", with(&|odd| has(odd, b": note"))),
        ("large events", with(&|odd| odd.sent.len() > 64 * 1024)),
        ("hidden usage", with(&|odd| odd.sent != odd.shown)),
        ("usage of their own", with(&|odd| odd.source == "upstream")),
        (
            "a missing blank line",
            with(&|odd| odd.sent.ends_with(b"[DONE]\n")),
        ),
    ] {
        assert!(count >= 5, "only {count} streams with {what}");
    }
}
