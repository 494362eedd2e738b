//! What comes before the first output: held while another backend could still take over, and no longer.

use crate::support::ask::chat;
use crate::support::client::Broken;
use crate::support::dialect;
use crate::support::engine::{Call, Engine, Played};
use crate::support::events::{self, delta, done};
use crate::support::pair::Pair;
use crate::support::script::Door;
use crate::support::wait::ms;
use serde_json::json;

const CONSENT: &str = "retry = { accept_duplicate_cost = true }";

/// A role, an empty delta, a comment: nothing of it is output.
fn preamble() -> Vec<u8> {
    let quiet = |delta| events::event(&events::chunk(delta).to_string());
    [
        quiet(json!({"role": "assistant", "content": ""})),
        b": warming up\n\n".to_vec(),
        quiet(json!({})),
    ]
    .concat()
}

/// Sends its head and the preamble.
fn begins(call: &mut Call) -> Played {
    call.head()?;
    call.chunk(&preamble())
}

/// Answers in full, with a text that names the try.
fn answers(number: usize, call: &mut Call) -> Played {
    begins(call)?;
    call.delta(&format!("from {number}"))?;
    call.done()
}

#[test]
fn it_is_held_until_the_first_output_and_then_shown_in_full() {
    dialect::each(|dialect| {
        let door = Door::default();
        let engine = Engine::scripted({
            let door = door.clone();
            move |call| {
                call.head()?;
                call.chunk(&dialect.preamble())?;
                door.pass()?;
                call.chunk(&dialect.say("a"))?;
                call.chunk(&dialect.end())?;
                call.end()
            }
        });
        let gateway = dialect::gateway(&engine, CONSENT);
        let mut stream = gateway.send(&dialect.ask().id("held")).patience(ms(150));
        assert_eq!(
            stream.try_more(),
            Err(Broken::Silent),
            "{dialect:?}: {stream:?}"
        );
        assert_eq!(gateway.record("held")["state"], "RUNNING", "{dialect:?}");
        door.open();
        let mut stream = stream.patience(ms(10_000));
        assert_eq!(stream.status(), 200);
        let body = stream.rest();
        assert_eq!(dialect.texts(&body), ["a"], "{dialect:?}");
        if dialect != dialect::Dialect::Native {
            let sent = [dialect.preamble(), dialect.say("a"), dialect.end()].concat();
            assert_eq!(
                String::from_utf8_lossy(&body),
                String::from_utf8_lossy(&sent)
            );
        }
        assert_eq!(gateway.ended("held")["state"], "COMPLETED", "{dialect:?}");
        gateway.settled();
    });
}

#[test]
fn without_consent_or_without_the_option_it_is_shown_at_once() {
    for lines in [
        "",
        "stream = { hold_preamble = false }\nretry = { accept_duplicate_cost = true }",
    ] {
        let engine = Engine::scripted(|call| {
            begins(call)?;
            call.hold()
        });
        let gateway = dialect::gateway(&engine, lines);
        let mut stream = gateway.chat("at-once");
        assert!(
            stream.event().is_some_and(|e| e.contains("assistant")),
            "{lines}: {stream:?}"
        );
        assert_eq!(
            gateway.record("at-once")["state"],
            "RUNNING",
            "a role is no output: {lines}"
        );
    }
}

#[test]
fn a_backend_that_dies_in_its_preamble_is_replaced() {
    type Fail = fn(&mut Call) -> Played;
    let cases: [(&str, Fail); 6] = [
        ("reset", |call| {
            begins(call)?;
            call.reset()
        }),
        ("reset", |call| {
            begins(call)?;
            call.fin()
        }),
        ("reset", |call| {
            begins(call)?;
            // the proper end of a body, and no end of the protocol
            call.end()
        }),
        ("reset", |call| {
            call.head()?;
            call.raw(b"nonsense\r\n")?;
            call.hold()
        }),
        ("reset", |call| {
            begins(call)?;
            call.chunk(b"data: {\"choices\":[{\"delta\":{\"content\":\"torn")?;
            call.reset()
        }),
        ("timeout", |call| {
            call.head()?;
            call.hold()
        }),
    ];
    for (number, (outcome, fail)) in cases.into_iter().enumerate() {
        let pair =
            Pair::scripted(move |n, call| if n == 0 { fail(call) } else { answers(n, call) });
        let gateway = pair.gateway(&format!("{CONSENT}\ntimeouts = {{ idle = \"300ms\" }}"));
        let body = gateway.chat("replaced").rest();
        let whole = [preamble(), delta("from 1"), done()].concat();
        assert_eq!(
            String::from_utf8_lossy(&body),
            String::from_utf8_lossy(&whole),
            "case {number}: the client sees nothing of the backend that died"
        );
        let record = gateway.ended("replaced");
        assert_eq!(record["state"], "COMPLETED", "case {number}: {record}");
        assert_eq!(
            record["attempts"][0]["outcome"], outcome,
            "case {number}: {record}"
        );
        assert_eq!(
            record["attempts"][1]["outcome"], "ok",
            "case {number}: {record}"
        );
        assert_eq!(record["generated_units"], 1, "case {number}: {record}");
        assert_eq!(pair.calls().len(), 2);
        gateway.settled();
    }
}

#[test]
fn without_a_try_left_the_client_is_told_by_a_status() {
    let pair = Pair::scripted(|_, call| {
        begins(call)?;
        call.reset()
    });
    let gateway = pair.gateway(CONSENT);
    gateway
        .answer(&chat().id("spent"))
        .must_refuse(502, "upstream_broken");
    let record = gateway.ended("spent");
    assert_eq!(
        record["attempts"].as_array().map(Vec::len),
        Some(2),
        "{record}"
    );
    assert_eq!(record["first_output_at"], json!(null), "{record}");
    gateway.settled();
}

#[test]
fn it_waits_at_most_for_one_heartbeat_interval_and_then_the_border_is_passed() {
    let door = Door::default();
    let pair = Pair::scripted({
        let door = door.clone();
        move |_, call| {
            begins(call)?;
            door.pass()?;
            call.reset()
        }
    });
    let gateway = pair.gateway(&format!("{CONSENT}\nstream = {{ heartbeat = \"150ms\" }}"));
    let mut stream = gateway.chat("late");
    assert!(
        stream.event().is_some_and(|e| e.contains("assistant")),
        "{stream:?}"
    );
    door.open();
    let body = stream.rest();
    assert_eq!(events::final_error(&body)["code"], "upstream_broken");
    let record = gateway.ended("late");
    assert_eq!(
        record["attempts"].as_array().map(Vec::len),
        Some(1),
        "{record}"
    );
    assert_eq!(pair.calls().len(), 1, "what was shown is not tried again");
    gateway.settled();
}
