//! Clients that read nothing while the upstream sends and sends: they cost little memory, keep the upstream waiting, and
//! are ended; what befalls them meanwhile is noticed.

use crate::support::ask::chat;
use crate::support::client::Stream;
use crate::support::engine::{Call, Engine, Played, Seen};
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::http2::Http2;
use crate::support::machine;
use crate::support::script::tokens;
use crate::support::wait::{self, ms, seconds};
use serde_json::Value;
use std::time::{Duration, Instant};

/// What the engine would send.
const FLOOD: usize = 100 << 20;

/// Bytes of text in one event.
const EVENT: usize = 32 << 10;

/// What may wait of one stream in both kernels' buffers of both connections, and in the process, as configured below:
/// the kernel doubles what is asked for, and the engine's own buffer is its default.
const ON_THE_WAY: usize = 8 << 20;

/// What one unread stream may add to the process.
const GROWTH: u64 = 2 << 20;

fn flood(call: &mut Call) -> Played {
    call.head()?;
    let event = events::delta(&"w".repeat(EVENT));
    for _ in 0..FLOOD / EVENT {
        call.chunk(&event)?;
        call.count_made();
    }
    call.done()
}

fn engine() -> Engine {
    let run = tokens(2, ms(0));
    Engine::scripted(move |call| match call.member("user").as_str() {
        "flood" => flood(call),
        _ => run(call),
    })
}

fn gateway(engine: &Engine, write_timeout: &str) -> Gateway {
    let lines = format!("max_streams = 1\nstream = {{ write_timeout = \"{write_timeout}\" }}");
    Gateway::builder()
        .backend(engine.addr())
        .server("socket_buffer = \"64KiB\"")
        .pool(&lines)
        .start()
}

/// A client that asks for the flood and reads nothing.
fn unread(gateway: &Gateway, id: &str) -> Stream {
    gateway.send(&chat().id(id).set("user", "flood").set("max_tokens", 4000))
}

/// Waits until nothing moves any more; what the engine could send.
#[track_caller]
fn stands_still(call: &Seen) -> usize {
    let mut last = (0, Instant::now());
    wait::within(seconds(5), "the upstream not to be read any more", || {
        let made = call.fate().made;
        if made != last.0 || made == 0 {
            last = (made, Instant::now());
        }
        // so long a pause is no chance
        match last.1.elapsed() > ms(300) && made > 0 {
            true => Ok(made * EVENT),
            false => Err(format!("{made} events sent")),
        }
    })
}

fn must_end(gateway: &Gateway, id: &str, by: &str) -> Value {
    let record = gateway.ended(id);
    assert_eq!(record["state"], "CANCELLED", "{record}");
    assert_eq!(record["ended_by"], by, "{record}");
    assert_eq!(record["upstream_end"], "aborted", "{record}");
    gateway.settled();
    // the slot is free
    assert!(events::is_done(&gateway.send(&chat()).rest()));
    record
}

#[test]
fn they_cost_little_memory_and_are_ended_by_the_write_time_out() {
    let engine = engine();
    let gateway = gateway(&engine, "1500ms");
    assert!(events::is_done(&gateway.send(&chat()).rest()));
    let before = machine::resident(gateway.process.pid());
    let stream = unread(&gateway, "slow");
    let sent = stands_still(&engine.call(1));
    assert!(
        sent < ON_THE_WAY,
        "{} KiB were taken for a client that reads nothing",
        sent >> 10
    );
    let grown = machine::resident(gateway.process.pid()).saturating_sub(before);
    assert!(
        grown < GROWTH,
        "one unread stream takes {} KiB",
        grown >> 10
    );
    assert_eq!(gateway.record("slow")["state"], "STREAMING");
    engine.call(1).closed_within(seconds(5));
    let record = must_end(&gateway, "slow", "slow_reader");
    let units = |member: &str| usize::try_from(record[member].as_u64().unwrap()).unwrap();
    let made = engine.call(1).fate().made;
    assert!(
        units("delivered_units") <= units("generated_units"),
        "{record}"
    );
    assert!(
        (1..=made).contains(&units("generated_units")),
        "{made} were made: {record}"
    );
    assert_eq!(gateway.access_line("slow")["ended_by"], "slow_reader");
    drop(stream);
}

#[test]
fn many_of_them_cost_no_more_each() {
    const MANY: u64 = 40;
    // what a stream costs at all, and what may wait of it on its way
    const EACH: u64 = 256 << 10;
    let engine = engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .server("socket_buffer = \"64KiB\"")
        .start();
    assert!(events::is_done(&gateway.send(&chat()).rest()));
    let before = machine::resident(gateway.process.pid());
    let streams: Vec<Stream> = (0..MANY)
        .map(|n| unread(&gateway, &format!("many-{n}")))
        .collect();
    for n in 0..streams.len() {
        stands_still(&engine.call(n + 1));
    }
    let grown = machine::resident(gateway.process.pid()).saturating_sub(before);
    assert!(grown < MANY * EACH, "{} KiB each", grown / MANY / 1024);
    streams.into_iter().for_each(Stream::reset);
    gateway.settled();
}

#[test]
fn a_stream_of_many_on_one_connection_is_not_held_up_by_one_that_is_not_read() {
    let engine = engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .pool("stream = { write_timeout = \"1500ms\" }")
        .start();
    let connection = Http2::connect(gateway.addr());
    let ask = |id: &str, user: &str| chat().id(id).set("user", user).set("max_tokens", 4000);
    let mut left = connection.send(&ask("left", "flood"));
    let mut unread = connection.send(&ask("unread", "flood"));
    for stream in [&mut left, &mut unread] {
        stream.until(|_| true);
    }
    stands_still(&engine.call(0));
    stands_still(&engine.call(1));
    let mut read = connection.send(&ask("read", "run"));
    assert!(events::is_done(&read.rest()));
    left.reset();
    engine.call(0).closed();
    assert_eq!(gateway.ended("left")["ended_by"], "client_closed");
    engine.call(1).closed_within(seconds(5));
    assert_eq!(gateway.ended("unread")["ended_by"], "slow_reader");
    let mut again = connection.send(&ask("again", "run"));
    assert!(events::is_done(&again.rest()));
    gateway.settled();
}

#[test]
fn a_cancel_and_a_disconnect_are_noticed_while_the_write_is_blocked() {
    let engine = engine();
    let gateway = gateway(&engine, "60s");
    let mut number = 0;
    for how in ["cancel", "reset", "close"] {
        let id = format!("blocked-{how}");
        let stream = unread(&gateway, &id);
        let call = engine.call(number);
        stands_still(&call);
        let start = Instant::now();
        let (kept, by): (Option<Stream>, _) = match how {
            "cancel" => {
                assert_eq!(gateway.cancel(&id).status, 202);
                (Some(stream), "cancel_api")
            }
            "reset" => {
                stream.reset();
                (None, "client_closed")
            }
            _ => {
                // a close with bytes unread is a reset
                stream.close();
                (None, "client_closed")
            }
        };
        let took = call.closed().saturating_duration_since(start);
        assert!(
            took < Duration::from_millis(500),
            "{how}: let go after {took:?}"
        );
        must_end(&gateway, &id, by);
        drop(kept);
        // the flood, and the request that showed that the slot is free
        number += 2;
    }
}
