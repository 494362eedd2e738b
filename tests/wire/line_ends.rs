//! `line_ends = "lf"`: whatever ends an engine's lines, its client reads LF.

use crate::support::ask::chat;
use crate::support::dialect::{self, Dialect};
use crate::support::engine::Engine;
use crate::support::events::{delta, done};
use crate::support::gateway::Gateway;

const LF: &str = "stream = { line_ends = \"lf\" }";

fn with_ends(bytes: &[u8], end: &str) -> Vec<u8> {
    String::from_utf8_lossy(bytes)
        .replace('\n', end)
        .into_bytes()
}

/// Sends the stream in pieces of a size; gives what came of it.
fn through(gateway: &Gateway, ask: &crate::support::ask::Ask, size: usize) -> Vec<u8> {
    gateway
        .answer(&ask.clone().set("user", size.to_string()))
        .body
}

fn engine(stream: Vec<u8>) -> Engine {
    Engine::scripted(move |call| {
        call.head()?;
        let size: usize = call.member("user").parse().unwrap();
        stream
            .chunks(size)
            .try_for_each(|piece| call.chunk(piece))?;
        call.end()
    })
}

#[test]
fn every_line_end_comes_out_as_lf_wherever_it_is_cut() {
    for dialect in [
        Dialect::Chat,
        Dialect::Completions,
        Dialect::Responses,
        Dialect::Messages,
    ] {
        let lf = [dialect.preamble(), dialect.say("北 é"), dialect.end()].concat();
        for end in ["\n", "\r\n", "\r"] {
            let engine = engine(with_ends(&lf, end));
            let gateway = dialect::gateway(&engine, LF);
            for size in [1, 7, 100_000] {
                let got = through(&gateway, &dialect.ask(), size);
                assert_eq!(
                    String::from_utf8_lossy(&got),
                    String::from_utf8_lossy(&lf),
                    "{dialect:?}, {end:?}, {size} bytes a piece"
                );
            }
        }
    }
}

#[test]
fn mixed_line_ends_come_out_as_lf_and_each_event_is_still_one() {
    let lf = [delta("a"), delta("b"), delta("c"), done()].concat();
    let mixed = [
        with_ends(&delta("a"), "\r\n"),
        with_ends(&delta("b"), "\r"),
        delta("c"),
        with_ends(&done(), "\r\n"),
    ]
    .concat();
    let engine = engine(mixed);
    let gateway = dialect::gateway(&engine, LF);
    for size in [1, 3, 100_000] {
        let got = through(&gateway, &chat(), size);
        assert_eq!(
            String::from_utf8_lossy(&got),
            String::from_utf8_lossy(&lf),
            "{size} bytes a piece"
        );
    }
}

#[test]
fn a_carriage_return_inside_of_json_is_no_line_end_and_stays() {
    let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\\r\\nb\"}}]}\n\n".to_vec();
    let stream = [event, done()].concat();
    let engine = engine(stream.clone());
    let gateway = dialect::gateway(&engine, LF);
    assert_eq!(
        String::from_utf8_lossy(&through(&gateway, &chat(), 1)),
        String::from_utf8_lossy(&stream)
    );
}

#[test]
fn a_body_that_is_no_event_stream_keeps_its_bytes() {
    let body = b"{\"choices\":\r\n[{\"message\":{\"content\":\"a\"}}]}\r";
    let engine = Engine::scripted(|call| call.answer(200, "application/json", body));
    let gateway = dialect::gateway(&engine, LF);
    assert_eq!(gateway.answer(&chat().without("stream")).body, body);
}
