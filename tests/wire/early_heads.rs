//! `early_headers`: heartbeats before the upstream has answered, and what may still happen after one.

use crate::support::ask::{chat, whole_chat};
use crate::support::dialect::{self, Dialect};
use crate::support::engine::{Call, Engine, Played};
use crate::support::events;
use crate::support::pair::Pair;
use crate::support::script::{token, tokens};
use crate::support::wait::ms;
use serde_json::json;

const EARLY: &str = "stream = { heartbeat = \"100ms\", early_headers = true }";
const BEAT: &[u8] = b": keepalive\n";

/// Says nothing for several heartbeats, then what the script says.
fn late(script: impl Fn(&mut Call) -> Played + Send + Sync + 'static) -> Engine {
    Engine::scripted(move |call| {
        call.pause(ms(450))?;
        script(call)
    })
}

#[test]
fn the_client_has_a_head_and_heartbeats_while_the_upstream_says_nothing() {
    dialect::each(|dialect| {
        let engine = Engine::scripted(|call| call.hold());
        let gateway = dialect::gateway(&engine, EARLY);
        let mut stream = gateway.send(&dialect.ask().id("early"));
        assert_eq!(stream.status(), 200, "{dialect:?}");
        let beat: &[u8] = if dialect == Dialect::Messages {
            b"event: ping\n"
        } else {
            BEAT
        };
        while events::count(stream.body(), beat) < 2 {
            assert!(stream.try_more().is_ok(), "{dialect:?}: {stream:?}");
        }
        assert_eq!(
            gateway.record("early")["state"],
            "RUNNING",
            "a heartbeat is no output"
        );
        stream.close();
        engine.call(0).closed();
        assert_eq!(
            gateway.ended("early")["ended_by"],
            "client_closed",
            "{dialect:?}"
        );
        gateway.settled();
    });
}

#[test]
fn the_head_is_that_of_an_event_stream() {
    let engine = late(tokens(1, ms(0)));
    let gateway = dialect::gateway(&engine, EARLY);
    let answer = gateway.answer(&chat().id("early"));
    assert_eq!(answer.status, 200);
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
        ("x-request-id", "early"),
        ("transfer-encoding", "chunked"),
    ] {
        assert_eq!(answer.headers.get(name), Some(value), "{name}");
        assert_eq!(answer.headers.count(name), 1, "{name}");
    }
}

#[test]
fn the_stream_that_follows_is_whole_and_its_bom_is_not_left_in_its_middle() {
    let plain = [events::delta("a"), events::done()].concat();
    let sent = plain.clone();
    let engine = late(move |call| {
        call.head()?;
        call.chunk("\u{feff}".as_bytes())?;
        call.chunk(&sent)?;
        call.end()
    });
    let gateway = dialect::gateway(&engine, EARLY);
    let body = gateway.chat("early").rest();
    assert!(
        body.starts_with(&BEAT.repeat(2)),
        "{}",
        String::from_utf8_lossy(&body)
    );
    let without = String::from_utf8_lossy(&body).replace(": keepalive\n", "");
    assert_eq!(without, String::from_utf8_lossy(&plain));
    assert_eq!(gateway.ended("early")["state"], "COMPLETED");
}

#[test]
fn what_fails_late_is_told_by_an_error_event_and_not_by_a_status() {
    type Fail = fn(&mut Call) -> Played;
    let cases: [(&str, &str, Fail); 4] = [
        ("refused", "upstream_broken", |call| {
            call.answer(
                500,
                "application/json",
                b"{\"error\":{\"message\":\"late\"}}",
            )
        }),
        ("reset", "upstream_broken", |call| call.reset()),
        ("reset", "upstream_broken", |call| {
            call.answer(200, "application/json", b"{\"choices\":[]}")
        }),
        ("timeout", "upstream_timeout", |call| call.hold()),
    ];
    dialect::each(|dialect| {
        for (number, (outcome, code, fail)) in cases.into_iter().enumerate() {
            let engine = late(fail);
            let lines = format!(
                "{EARLY}\ntimeouts = {{ first_byte = \"900ms\" }}\nretry = {{ attempts = 1 }}"
            );
            let gateway = dialect::gateway(&engine, &lines);
            let body = gateway.send(&dialect.ask().id("late")).rest();
            assert_eq!(
                dialect.final_error(&body),
                code,
                "{dialect:?}, case {number}"
            );
            let record = gateway.ended("late");
            assert_eq!(
                record["state"], "FAILED",
                "{dialect:?}, case {number}: {record}"
            );
            assert_eq!(
                record["attempts"][0]["outcome"], outcome,
                "{dialect:?}, case {number}: {record}"
            );
            assert_eq!(record["first_output_at"], json!(null), "{record}");
            gateway.settled();
        }
    });
}

#[test]
fn an_upstream_that_refused_after_heartbeats_is_still_replaced() {
    let well = tokens(2, ms(0));
    let pair = Pair::scripted(move |number, call| {
        call.pause(ms(350))?;
        if number == 0 {
            call.answer(503, "text/plain", b"busy")
        } else {
            well(call)
        }
    });
    let gateway = pair.gateway(EARLY);
    let body = gateway.chat("replaced").rest();
    assert_eq!(
        events::contents(&body),
        [token(0), token(1)],
        "{}",
        String::from_utf8_lossy(&body)
    );
    assert!(events::is_done(&body));
    let record = gateway.ended("replaced");
    assert_eq!(
        record["attempts"].as_array().map(Vec::len),
        Some(2),
        "{record}"
    );
    assert_eq!(record["state"], "COMPLETED", "{record}");
}

#[test]
fn what_is_not_streamed_waits_for_its_status() {
    let engine = late(|call| call.answer(404, "text/plain", b"no"));
    let gateway = dialect::gateway(&engine, EARLY);
    let answer = gateway.answer(&whole_chat());
    assert_eq!((answer.status, answer.text().as_str()), (404, "no"));
}

#[test]
fn without_the_option_nothing_comes_before_the_upstreams_head() {
    let engine = late(|call| call.answer(500, "text/plain", b"late"));
    let gateway = dialect::gateway(&engine, "stream = { heartbeat = \"100ms\" }");
    let answer = gateway.answer(&chat());
    assert_eq!((answer.status, answer.text().as_str()), (500, "late"));
}
