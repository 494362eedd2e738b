//! How streams end: well, whatever the last bytes look like, or in every way that an upstream can fail.

use crate::support::ask::whole_chat;
use crate::support::client::{Broken, Stream};
use crate::support::dialect::{self, Dialect};
use crate::support::engine::{Call, Engine, Played};
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::wait::ms;
use serde_json::{Value, json};
use std::time::Duration;

/// Half an event: its text must never be seen.
fn half(dialect: Dialect) -> Vec<u8> {
    let event = dialect.say("TORN");
    let place = events::find(&event, b"TORN").unwrap() + 4;
    event[..place].to_vec()
}

struct Failure {
    what: &'static str,
    code: &'static str,
    ended_by: &'static str,
    upstream_end: &'static str,
    outcome: &'static str,
    play: fn(Dialect, &mut Call) -> Played,
}

impl Failure {
    const fn broken(what: &'static str, play: fn(Dialect, &mut Call) -> Played) -> Failure {
        Failure {
            what,
            code: "upstream_broken",
            ended_by: "upstream",
            upstream_end: "error",
            outcome: "reset",
            play,
        }
    }
}

/// Each begins when two whole events have been sent.
fn failures() -> Vec<Failure> {
    vec![
        Failure::broken("a reset", |_, call| call.reset()),
        Failure::broken("a reset in mid-event", |dialect, call| {
            call.chunk(&half(dialect))?;
            // the half is with the gateway before the reset takes it away
            call.pause(ms(50))?;
            call.reset()
        }),
        Failure::broken("a FIN between two events", |_, call| call.fin()),
        Failure::broken("a FIN in mid-event", |dialect, call| {
            call.chunk(&half(dialect))?;
            call.fin()
        }),
        Failure::broken("a FIN in mid-chunk", |dialect, call| {
            call.raw(b"ffff\r\n")?;
            call.raw(&half(dialect))?;
            call.fin()
        }),
        Failure::broken("a FIN in the size of a chunk", |_, call| {
            call.raw(b"4\r")?;
            call.fin()
        }),
        Failure::broken("what is not framed", |_, call| {
            call.raw(b"no chunk at all\r\n")?;
            call.hold()
        }),
        Failure::broken("a clean end without the protocol's own", |_, call| {
            call.end()
        }),
        Failure::broken("a clean end in mid-event", |dialect, call| {
            call.chunk(&half(dialect))?;
            call.end()
        }),
        Failure {
            code: "upstream_timeout",
            ended_by: "timeout",
            upstream_end: "aborted",
            outcome: "timeout",
            ..Failure::broken("silence", |_, call| call.hold())
        },
        Failure {
            code: "upstream_timeout",
            ended_by: "timeout",
            upstream_end: "aborted",
            outcome: "timeout",
            ..Failure::broken("silence in mid-event", |dialect, call| {
                call.chunk(&half(dialect))?;
                call.hold()
            })
        },
    ]
}

const LINES: &str = "timeouts = { idle = \"300ms\" }";

fn two_events(dialect: Dialect, call: &mut Call) -> Played {
    call.chunk(&dialect.preamble())?;
    call.chunk(&dialect.say("a"))?;
    call.chunk(&dialect.say("b"))
}

#[test]
fn a_stream_that_fails_shows_whole_events_its_protocols_error_and_a_proper_end() {
    dialect::each(|dialect| {
        for failure in failures() {
            let engine = Engine::scripted(move |call| {
                call.head()?;
                two_events(dialect, call)?;
                (failure.play)(dialect, call)
            });
            let gateway = dialect::gateway(&engine, LINES);
            // a body that did not end properly would fail here
            let body = gateway.send(&dialect.ask().id("failed")).rest();
            must_have_failed(dialect, &failure, &body, &gateway.ended("failed"));
            gateway.settled();
        }
    });
}

#[track_caller]
fn must_have_failed(dialect: Dialect, failure: &Failure, body: &[u8], record: &Value) {
    let what = format!("{dialect:?}, {}: {record}", failure.what);
    assert_eq!(dialect.final_error(body), failure.code, "{what}");
    assert_eq!(dialect.texts(body), ["a", "b"], "{what}");
    assert_eq!(
        events::count(body, b"TORN"),
        0,
        "half an event was shown: {what}"
    );
    assert_eq!(record["api"], dialect.api(), "{what}");
    assert_eq!(record["state"], "FAILED", "{what}");
    assert_eq!(record["ended_by"], failure.ended_by, "{what}");
    assert_eq!(record["upstream_end"], failure.upstream_end, "{what}");
    assert_eq!(record["attempts"][0]["outcome"], failure.outcome, "{what}");
    assert!(
        record["error"].as_str().is_some_and(|e| !e.is_empty()),
        "{what}"
    );
    let units = |name: &str| record[name].as_u64().unwrap_or_default();
    assert_eq!(
        (units("generated_units"), units("delivered_units")),
        (2, 2),
        "{what}"
    );
    assert_eq!(units("charged_units"), units("input_units") + 2, "{what}");
    assert_eq!(record["usage_source"], "counted", "{what}");
}

#[test]
fn without_a_length_or_with_a_false_one_a_cut_is_still_told() {
    for (what, headers) in [
        ("the close ends the body", vec![("Connection", "close")]),
        (
            "the length is longer than the body",
            vec![("Content-Length", "100000")],
        ),
    ] {
        for dialect in dialect::ALL {
            let headers = headers.clone();
            let engine = Engine::scripted(move |call| {
                let all = [vec![("Content-Type", "text/event-stream")], headers.clone()].concat();
                call.head_with(200, &all)?;
                call.raw(&dialect.say("a"))?;
                call.raw(&half(dialect))?;
                call.fin()
            });
            let gateway = dialect::gateway(&engine, LINES);
            let body = gateway.send(&dialect.ask().id("cut")).rest();
            assert_eq!(
                dialect.final_error(&body),
                "upstream_broken",
                "{dialect:?}, {what}"
            );
            assert_eq!(dialect.texts(&body), ["a"], "{dialect:?}, {what}");
            assert_eq!(
                gateway.ended("cut")["state"],
                "FAILED",
                "{dialect:?}, {what}"
            );
        }
    }
}

#[test]
fn an_engines_own_error_inside_its_stream_passes_and_the_request_has_failed() {
    dialect::each(|dialect| {
        for protocols_end in [false, true] {
            let engine = Engine::scripted(move |call| {
                call.head()?;
                two_events(dialect, call)?;
                call.chunk(&dialect.error())?;
                if protocols_end && dialect != Dialect::Responses {
                    call.chunk(&dialect.end())?;
                }
                call.end()
            });
            let gateway = dialect::gateway(&engine, LINES);
            let body = gateway.send(&dialect.ask().id("own")).rest();
            let text = String::from_utf8_lossy(&body).into_owned();
            assert_eq!(dialect.texts(&body), ["a", "b"], "{dialect:?}: {text}");
            if dialect == Dialect::Native {
                assert_eq!(dialect.final_error(&body), "upstream_broken", "{text}");
            } else {
                let error = dialect.error();
                assert_eq!(
                    events::count(&body, &error),
                    1,
                    "{dialect:?}: the engine's own words: {text}"
                );
                assert_eq!(
                    events::count(&body, b"upstream_broken"),
                    0,
                    "{dialect:?}: told twice: {text}"
                );
            }
            let record = gateway.ended("own");
            assert_eq!(
                (&record["state"], &record["ended_by"]),
                (&json!("FAILED"), &json!("upstream")),
                "{dialect:?}: {record}"
            );
            assert_eq!(
                record["attempts"][0]["outcome"], "error",
                "{dialect:?}: {record}"
            );
            assert!(
                record["error"]
                    .as_str()
                    .is_some_and(|e| e.contains("engine on fire")),
                "{dialect:?}: {record}"
            );
            gateway.settled();
        }
    });
}

#[test]
fn an_error_that_is_no_json_is_an_error_by_its_name() {
    let engine = Engine::scripted(|call| {
        call.head()?;
        call.chunk(&Dialect::Messages.say("a"))?;
        call.chunk(b"event: error\ndata: upstream exploded\n\n")?;
        call.end()
    });
    let gateway = dialect::gateway(&engine, LINES);
    let body = gateway.send(&Dialect::Messages.ask().id("named")).rest();
    assert_eq!(
        events::count(&body, b"event: error\ndata: upstream exploded\n\n"),
        1
    );
    assert_eq!(gateway.ended("named")["state"], "FAILED");
}

#[test]
fn the_whole_time_is_bounded_where_the_operator_says_so() {
    dialect::each(|dialect| {
        let engine = Engine::scripted(move |call| {
            call.head()?;
            loop {
                call.chunk(&dialect.say("a"))?;
                call.pause(ms(50))?;
            }
        });
        let gateway = dialect::gateway(&engine, "timeouts = { total = \"400ms\" }");
        let body = gateway.send(&dialect.ask().id("total")).rest();
        assert_eq!(
            dialect.final_error(&body),
            "upstream_timeout",
            "{dialect:?}"
        );
        let record = gateway.ended("total");
        assert_eq!(
            (&record["state"], &record["ended_by"]),
            (&json!("FAILED"), &json!("timeout")),
            "{dialect:?}: {record}"
        );
        engine.call(0).closed();
        gateway.settled();
    });
}

#[test]
fn the_protocols_end_counts_however_its_last_bytes_look() {
    type End = fn(&mut Call) -> Played;
    let framings: [(&str, End); 3] = [
        ("a last chunk", |call| call.end()),
        ("a FIN", |call| call.fin()),
        ("a reset after a while", |call| {
            call.pause(ms(50))?;
            call.reset()
        }),
    ];
    dialect::each(|dialect| {
        for (how, end) in framings {
            for lacking in 0..=2 {
                // what a reset cuts off may have been the rest of an event
                if how.starts_with("a reset") && lacking == 2 {
                    continue;
                }
                let sent = [dialect.preamble(), dialect.say("a"), dialect.end()].concat();
                let sent = sent[..sent.len() - lacking].to_vec();
                let script = sent.clone();
                let engine = Engine::scripted(move |call| {
                    call.head()?;
                    call.chunk(&script)?;
                    end(call)
                });
                let gateway = dialect::gateway(&engine, LINES);
                let body = gateway.send(&dialect.ask().id("well")).rest();
                let what = format!("{dialect:?}, {how}, {lacking} line ends lacking");
                if dialect != Dialect::Native {
                    assert_eq!(
                        String::from_utf8_lossy(&body),
                        String::from_utf8_lossy(&sent),
                        "{what}"
                    );
                }
                let record = gateway.ended("well");
                assert_eq!(record["state"], "COMPLETED", "{what}: {record}");
                assert_eq!(record["upstream_end"], "complete", "{what}: {record}");
                gateway.settled();
            }
        }
    });
}

#[test]
fn bytes_after_the_end_still_pass() {
    for dialect in [
        Dialect::Chat,
        Dialect::Completions,
        Dialect::Responses,
        Dialect::Messages,
    ] {
        let after = b": goodbye\n\ndata: {\"x\":1}\n\n";
        let sent = [dialect.say("a"), dialect.end(), after.to_vec()].concat();
        let script = sent.clone();
        let engine = Engine::scripted(move |call| {
            call.head()?;
            call.chunk(&script)?;
            call.end()
        });
        let gateway = dialect::gateway(&engine, LINES);
        let body = gateway.send(&dialect.ask().id("after")).rest();
        assert_eq!(
            String::from_utf8_lossy(&body),
            String::from_utf8_lossy(&sent),
            "{dialect:?}"
        );
        assert_eq!(gateway.ended("after")["generated_units"], 1, "{dialect:?}");
    }
}

#[test]
fn an_upstream_that_stays_after_the_end_is_not_waited_for_long() {
    dialect::each(|dialect| {
        let engine = Engine::scripted(move |call| {
            call.head()?;
            call.chunk(&dialect.say("a"))?;
            call.chunk(&dialect.end())?;
            call.hold()
        });
        let gateway = dialect::gateway(&engine, "");
        gateway
            .send(&dialect.ask().id("stays"))
            .patience(Duration::from_secs(3))
            .rest();
        engine.call(0).closed();
        assert_eq!(gateway.ended("stays")["state"], "COMPLETED", "{dialect:?}");
        gateway.settled();
    });
}

/// An event over 64 KiB passes as its bytes come: what was shown of it cannot be taken back, only closed.
#[test]
fn a_large_event_that_is_torn_is_closed_by_a_blank_line() {
    for dialect in [
        Dialect::Chat,
        Dialect::Completions,
        Dialect::Responses,
        Dialect::Messages,
    ] {
        let large = dialect.say(&"x".repeat(200_000));
        let torn = large[..large.len() - 100].to_vec();
        let sent = torn.clone();
        let engine = Engine::scripted(move |call| {
            call.head()?;
            call.chunk(&dialect.say("a"))?;
            sent.chunks(10_000)
                .try_for_each(|piece| call.chunk(piece))?;
            call.fin()
        });
        let gateway = dialect::gateway(&engine, LINES);
        let body = gateway.send(&dialect.ask().id("large")).rest();
        let shown = [dialect.say("a"), torn, b"\n\n".to_vec()].concat();
        assert!(
            body.starts_with(&shown),
            "{dialect:?}: {} bytes, {} expected first",
            body.len(),
            shown.len()
        );
        assert_eq!(dialect.final_error(&body), "upstream_broken", "{dialect:?}");
        let record = gateway.ended("large");
        assert_eq!(record["state"], "FAILED", "{dialect:?}: {record}");
        gateway.settled();
    }
}

#[test]
fn a_document_that_breaks_off_is_a_broken_transfer_and_not_a_whole_one() {
    type Head = fn(&mut Call) -> Played;
    let heads: [(&str, Head); 2] = [
        ("with a length", |call| {
            call.head_with(
                200,
                &[
                    ("Content-Type", "application/json"),
                    ("Content-Length", "1000"),
                ],
            )
        }),
        ("in chunks", |call| {
            call.head_with(
                200,
                &[
                    ("Content-Type", "application/json"),
                    ("Transfer-Encoding", "chunked"),
                ],
            )
        }),
    ];
    for (what, head) in heads {
        let engine = Engine::scripted(move |call| {
            head(call)?;
            let piece = b"{\"choices\":[{\"message\":{\"content\":\"abcd";
            if what == "in chunks" {
                call.chunk(piece)?
            } else {
                call.raw(piece)?
            }
            call.fin()
        });
        let gateway = Gateway::before(&engine);
        let mut stream: Stream = gateway.send(&whole_chat().id("cut"));
        assert!(
            matches!(stream.try_rest(), Err(Broken::Cut | Broken::Failed(_))),
            "{what}: {stream:?}"
        );
        let record = gateway.ended("cut");
        assert_eq!(
            (&record["state"], &record["ended_by"]),
            (&json!("FAILED"), &json!("upstream")),
            "{what}: {record}"
        );
        gateway.settled();
    }
}

#[test]
fn a_head_and_then_nothing_is_answered_by_a_status() {
    type Head = fn(&mut Call) -> Played;
    let heads: [Head; 2] = [
        |call| {
            call.head_with(
                200,
                &[
                    ("Content-Type", "application/json"),
                    ("Content-Length", "1000"),
                ],
            )
        },
        |call| {
            call.head_with(
                200,
                &[
                    ("Content-Type", "application/json"),
                    ("Transfer-Encoding", "chunked"),
                ],
            )
        },
    ];
    for head in heads {
        let engine = Engine::scripted(move |call| {
            head(call)?;
            call.fin()
        });
        let gateway = Gateway::before(&engine);
        gateway
            .answer(&whole_chat().id("nothing"))
            .must_refuse(502, "upstream_broken");
        assert_eq!(gateway.ended("nothing")["state"], "FAILED");
    }
}

#[test]
fn a_document_with_an_error_in_it_has_failed_and_passes_unchanged() {
    let document = br#"{"error": {"message": "engine on fire", "code": 500}}"#;
    let engine = Engine::scripted(|call| call.answer(200, "application/json", document));
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&whole_chat().id("own"));
    assert_eq!(
        (answer.status, answer.body.as_slice()),
        (200, document.as_slice())
    );
    let record = gateway.ended("own");
    assert_eq!(record["state"], "FAILED", "{record}");
    assert!(
        record["error"]
            .as_str()
            .is_some_and(|e| e.contains("engine on fire")),
        "{record}"
    );
}
