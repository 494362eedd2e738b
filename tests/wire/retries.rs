//! Retries within a pool: where that is safe and nothing was shown, each try on the record.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::Stream;
use crate::support::engine::{Call, Played};
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::pair::Pair;
use crate::support::script::{token, tokens};
use crate::support::wait::{self, ms};
use crate::support::{engine, ports};
use serde_json::{Value, json};

const CONSENT: &str = "retry = { accept_duplicate_cost = true }";

/// The first call goes wrong as the script says, every later one is answered in full.
fn first_fails(fail: impl Fn(&mut Call) -> Played + Send + Sync + 'static) -> Pair {
    let well = tokens(2, ms(0));
    Pair::scripted(move |number, call| if number == 0 { fail(call) } else { well(call) })
}

/// Reads the request and closes without a word.
fn closes(call: &mut Call) -> Played {
    call.fin()
}

/// The outcomes of a record's attempts, in order, with the status where there is one.
fn attempts(record: &Value) -> Vec<String> {
    let attempts = record["attempts"].as_array().cloned().unwrap_or_default();
    let told = |a: &Value| match a["status"].as_u64() {
        Some(status) => format!("{} {status}", a["outcome"].as_str().unwrap_or_default()),
        None => a["outcome"].as_str().unwrap_or_default().to_owned(),
    };
    attempts.iter().map(told).collect()
}

#[test]
fn a_status_of_the_list_is_tried_on_another_backend() {
    for status in [429_u16, 502, 503, 504] {
        for (name, ask) in [("stream", chat()), ("whole", whole_chat())] {
            let pair =
                first_fails(move |call| call.answer(status, "application/json", b"{\"busy\":1}"));
            let gateway = pair.gateway("");
            let id = format!("{status}-{name}");
            let answer = gateway.answer(&ask.id(&id));
            assert_eq!(answer.status, 200, "{status}: {}", answer.text());
            let record = gateway.ended(&id);
            assert_eq!(
                attempts(&record),
                [format!("refused {status}"), "ok".to_owned()],
                "{record}"
            );
            assert_ne!(
                record["attempts"][0]["backend"], record["attempts"][1]["backend"],
                "{record}"
            );
            assert_eq!(
                record["backend"], record["attempts"][1]["backend"],
                "{record}"
            );
            assert_eq!(record["state"], "COMPLETED", "{record}");
            let units = |name: &str| record[name].as_u64().unwrap_or_default();
            assert_eq!(
                units("charged_units"),
                units("input_units") + 2,
                "charged once: {record}"
            );
            assert_eq!(
                gateway.metric("streamgate_retries_total", &[("pool", "p")]),
                1.0
            );
            gateway.settled();
        }
    }
}

#[test]
fn any_other_status_is_passed_on_at_once() {
    for status in [400_u16, 401, 404, 422, 500, 529] {
        let pair = first_fails(move |call| call.answer(status, "text/plain", b"no"));
        let gateway = pair.gateway("");
        let answer = gateway.answer(&chat().id("plain-no"));
        assert_eq!((answer.status, answer.text().as_str()), (status, "no"));
        assert_eq!(
            attempts(&gateway.ended("plain-no")),
            [format!("refused {status}")]
        );
        assert_eq!(pair.calls().len(), 1);
    }
}

#[test]
fn the_list_of_statuses_is_the_operators() {
    let pair = first_fails(|call| call.answer(500, "text/plain", b"no"));
    let gateway = pair.gateway("retry = { statuses = [500] }");
    assert_eq!(gateway.answer(&chat().id("listed")).status, 200);
    assert_eq!(attempts(&gateway.ended("listed")), ["refused 500", "ok"]);
}

#[test]
fn attempts_count_all_tries_and_the_last_refusal_passes_unchanged() {
    for (most, tries) in [(1, 1), (2, 2), (3, 3)] {
        let pair = Pair::scripted(|number, call| {
            call.answer(
                503,
                "application/json",
                format!("{{\"try\": {number}}}").as_bytes(),
            )
        });
        let gateway = pair.gateway(&format!("retry = {{ attempts = {most} }}"));
        let answer = gateway.answer(&chat().id("spent"));
        assert_eq!(answer.status, 503);
        assert_eq!(answer.text(), format!("{{\"try\": {}}}", tries - 1));
        assert_eq!(pair.calls().len(), tries);
        let record = gateway.ended("spent");
        assert_eq!(attempts(&record), vec!["refused 503"; tries], "{record}");
        assert_eq!(
            (&record["state"], &record["charged_units"]),
            (&json!("FAILED"), &json!(0)),
            "{record}"
        );
        gateway.settled();
    }
}

#[test]
fn a_backend_that_cannot_be_reached_is_replaced() {
    let engine = engine::Engine::scripted(tokens(2, ms(0)));
    let nobody = ports::free_addr();
    let gateway = Gateway::builder()
        .backend(&nobody)
        .backend(engine.addr())
        .pool("balance = \"round_robin\"")
        .start();
    let mut replaced = 0;
    for n in 0..4 {
        let id = format!("away-{n}");
        assert_eq!(gateway.answer(&chat().id(&id)).status, 200, "{id}");
        let record = gateway.ended(&id);
        assert_eq!(
            attempts(&record).last().map(String::as_str),
            Some("ok"),
            "{record}"
        );
        replaced += usize::from(attempts(&record) == ["connect_failed", "ok"]);
    }
    assert!(
        replaced > 0,
        "the backend that is not there was never tried"
    );
    gateway.settled();
}

#[test]
fn what_was_sent_and_not_answered_is_never_sent_again_without_consent() {
    let hangs = |call: &mut Call| call.hold();
    let pair = first_fails(closes);
    let gateway = pair.gateway("");
    gateway
        .answer(&chat().id("closed"))
        .must_refuse(502, "upstream_broken");
    let record = gateway.ended("closed");
    assert_eq!(attempts(&record), ["reset"], "{record}");
    assert_eq!(
        record["charged_units"], record["input_units"],
        "it may have run: {record}"
    );
    assert_eq!(pair.calls().len(), 1);

    let pair = first_fails(hangs);
    let gateway = pair.gateway("timeouts = { first_byte = \"200ms\" }");
    gateway
        .answer(&whole_chat().id("silent"))
        .must_refuse(504, "upstream_timeout");
    assert_eq!(attempts(&gateway.ended("silent")), ["timeout"]);
    assert_eq!(pair.calls().len(), 1);
}

#[test]
fn with_consent_it_is_sent_again_whole() {
    type Fail = fn(&mut Call) -> Played;
    let cases: [(&str, Fail); 3] = [
        ("reset", closes),
        ("reset", |call| call.reset()),
        ("timeout", |call| call.hold()),
    ];
    for (outcome, fail) in cases {
        let pair = first_fails(fail);
        let gateway = pair.gateway(&format!(
            "{CONSENT}\ntimeouts = {{ first_byte = \"500ms\" }}"
        ));
        let prompt = "word ".repeat(40_000);
        let ask = chat().set("messages", json!([{"role": "user", "content": prompt}]));
        let answer = gateway.answer(&ask.id("again"));
        assert_eq!(answer.status, 200, "{outcome}: {}", answer.text());
        assert_eq!(events::contents(&answer.body), [token(0), token(1)]);
        let record = gateway.ended("again");
        assert_eq!(attempts(&record), [outcome, "ok"], "{record}");
        let calls = pair.calls();
        assert_eq!(calls.len(), 2);
        assert!(
            calls[0].body == calls[1].body,
            "another body was sent the second time"
        );
        gateway.settled();
    }
}

#[test]
fn after_the_first_shown_byte_there_is_no_other_try_whatever_is_allowed() {
    let pair = first_fails(|call| {
        call.head()?;
        call.delta("a")?;
        call.reset()
    });
    let gateway = pair.gateway(CONSENT);
    let body = gateway.chat("shown").rest();
    assert_eq!(events::final_error(&body)["code"], "upstream_broken");
    assert_eq!(events::contents(&body), ["a"]);
    assert_eq!(attempts(&gateway.ended("shown")), ["reset"]);
    assert_eq!(pair.calls().len(), 1);
}

#[test]
fn a_client_that_has_left_is_not_tried_for_again() {
    let pair = Pair::scripted(|_, call| call.hold());
    let gateway = pair.gateway(&format!("{CONSENT}\ntimeouts = {{ first_byte = \"30s\" }}"));
    let stream: Stream = gateway.chat("left");
    let call = wait::until("the call", || {
        pair.calls().pop().ok_or_else(|| "no call".to_owned())
    });
    stream.close();
    call.closed();
    let record = gateway.ended("left");
    assert_eq!(record["ended_by"], "client_closed", "{record}");
    assert_eq!(attempts(&record), ["aborted"], "{record}");
    assert_eq!(pair.calls().len(), 1);
    gateway.settled();
}

#[test]
fn a_pool_in_trouble_is_not_asked_twice_for_everything() {
    const ALWAYS_ALLOWED: usize = 10;
    let pair = Pair::scripted(|_, call| call.answer(503, "text/plain", b"busy"));
    let gateway = pair.gateway("retry = { budget = 0.0 }");
    for n in 0..ALWAYS_ALLOWED + 5 {
        assert_eq!(
            gateway.answer(&chat().id(&format!("trouble-{n}"))).status,
            503
        );
        let tries = attempts(&gateway.ended(&format!("trouble-{n}"))).len();
        assert_eq!(tries, if n < ALWAYS_ALLOWED { 2 } else { 1 }, "request {n}");
    }
}

#[test]
fn a_refused_try_of_each_api_is_replaced() {
    for (path, member, value) in [
        ("/v1/completions", "prompt", json!("hi")),
        ("/v1/embeddings", "input", json!("hi")),
        ("/v1/responses", "input", json!("hi")),
        ("/generations", "input", json!("hi")),
    ] {
        let pair = first_fails(|call| call.answer(503, "text/plain", b"busy"));
        let gateway = pair.gateway("");
        let ask = Ask::post(path)
            .json(json!({"model": "m"}))
            .set(member, value)
            .id("each");
        let answer = gateway.answer(&ask);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(
            attempts(&gateway.ended("each")),
            ["refused 503", "ok"],
            "{path}"
        );
    }
}
