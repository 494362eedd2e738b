//! What any streaming proxy must do: pass each event at once, unchanged, and a whole answer whole.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::ports;
use crate::support::script::{Door, token, tokens};
use crate::support::wait::ms;

/// Takes the breaker and the retries out of a test about a backend's errors.
const PATIENT: &str = "retry = { attempts = 1 }";

#[test]
fn each_event_reaches_the_client_before_the_upstream_sends_the_next() {
    let door = Door::default();
    let engine = Engine::scripted({
        let door = door.clone();
        move |call| {
            call.head()?;
            for n in 0..8 {
                door.pass()?;
                call.delta(&token(n))?;
            }
            door.pass()?;
            call.done()
        }
    });
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.send(&chat());
    for n in 0..8 {
        door.open();
        stream.says(&token(n));
    }
    door.open();
    assert!(events::is_done(&stream.rest()), "{stream:?}");
    gateway.settled();
}

#[test]
fn an_event_stream_has_the_heads_of_one() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&chat());
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.headers.get("content-type"),
        Some("text/event-stream")
    );
    assert_eq!(answer.headers.get("x-accel-buffering"), Some("no"));
    assert_eq!(
        answer.headers.get("cache-control"),
        Some("no-cache, no-transform")
    );
    assert_eq!(answer.headers.get("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.headers.count("content-length"), 0);
    assert_eq!(answer.headers.count("content-encoding"), 0);
}

#[test]
fn the_bytes_of_a_stream_pass_unchanged() {
    // no space after the colon, comments, unknown fields, odd members, a second choice, CRLF
    let sent = [
        &b"data:{\"choices\":[{\"delta\":{\"content\":\"a\"}}], \"x\" : 1.0}\n\n"[..],
        b": a comment of the engine\nretry: 3000\nid: 7\nfoo: bar\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\u00e9\"}}]}\n\n",
        "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"北🦀\"}}]}\r\n\r\n".as_bytes(),
        b"data: [DONE]\n\n",
    ]
    .concat();
    let script = sent.clone();
    let engine = Engine::scripted(move |call| {
        call.head()?;
        match call.member("user").as_str() {
            "whole" => call.chunk(&script)?,
            _ => script.iter().try_for_each(|byte| call.chunk(&[*byte]))?,
        }
        call.end()
    });
    let gateway = Gateway::before(&engine);
    for cut in ["whole", "byte by byte"] {
        let got = gateway.send(&chat().set("user", cut)).rest();
        assert_eq!(
            String::from_utf8_lossy(&got),
            String::from_utf8_lossy(&sent),
            "{cut}"
        );
    }
}

#[test]
fn an_upstreams_error_status_and_body_pass_unchanged() {
    let cases: [(u16, &str, &[u8]); 5] = [
        (
            400,
            "application/json",
            "{\"error\": {\"message\": \"too long é\", \"code\":400}}".as_bytes(),
        ),
        (
            404,
            "application/json",
            b"{\"object\":\"error\",\"message\":\"no such model\"}",
        ),
        (500, "text/plain; charset=utf-8", b"engine died\n"),
        (503, "text/html", b"<html>busy</html>"),
        (
            429,
            "application/json",
            b"{\"error\":{\"message\":\"vendor limit\",\"code\":\"vendor\"}}",
        ),
    ];
    let engine = Engine::scripted(move |call| {
        let number: usize = call.member("user").parse().unwrap();
        let (status, content_type, body) = cases[number];
        call.answer(status, content_type, body)
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(PATIENT)
        .start();
    for (number, (status, content_type, body)) in cases.iter().enumerate() {
        for ask in [chat(), whole_chat()] {
            let id = format!("error-{number}-{}", ask.document()["stream"]);
            let answer = gateway.answer(&ask.id(&id).set("user", number.to_string()));
            assert_eq!(answer.status, *status, "{}", answer.text());
            assert_eq!(answer.body, *body);
            assert_eq!(answer.headers.get("content-type"), Some(*content_type));
            assert_eq!(answer.headers.get("x-request-id"), Some(id.as_str()));
            let record = gateway.ended(&id);
            assert_eq!(record["state"], "FAILED", "{record}");
            assert_eq!(
                record["charged_units"], 0,
                "what was refused by status is charged nothing: {record}"
            );
        }
    }
    gateway.settled();
}

#[test]
fn a_non_stream_answer_arrives_whole_with_the_upstreams_content_type() {
    let text = "é".repeat(150_000);
    let body = format!(
        "{{\"id\": \"c1\", \"x_unknown\": 1.0,\n \"choices\": [{{\"message\": {{\"content\": \"{text}\"}}}}],\n \
         \"usage\": {{\"prompt_tokens\": 7, \"completion_tokens\": 42, \"total_tokens\": 49}}}}\n"
    )
    .into_bytes();
    let sent = body.clone();
    let content_type = "application/json; odd=1";
    let engine = Engine::scripted(move |call| {
        let half = sent.len() / 2 + 1;
        if call.member("user") == "sized" {
            return call.answer(200, content_type, &sent);
        }
        call.head_with(
            200,
            &[
                ("Content-Type", content_type),
                ("Transfer-Encoding", "chunked"),
            ],
        )?;
        call.chunk(&sent[..half])?;
        call.chunk(&sent[half..])?;
        call.end()
    });
    let gateway = Gateway::before(&engine);
    for framing in ["sized", "chunked"] {
        let answer = gateway.answer(&whole_chat().id(framing).set("user", framing));
        assert_eq!(
            (answer.status, answer.body.len()),
            (200, body.len()),
            "{framing}"
        );
        assert!(answer.body == body, "{framing}: the bytes differ");
        assert_eq!(answer.headers.get("content-type"), Some(content_type));
        let record = gateway.ended(framing);
        assert_eq!(record["state"], "COMPLETED", "{record}");
        assert_eq!(record["ended_by"], "upstream", "{record}");
        assert_eq!(record["generated_units"], 42, "{record}");
        assert_eq!(record["usage_source"], "upstream", "{record}");
    }
    gateway.settled();
}

#[test]
fn a_non_stream_answer_passes_as_it_is_read_and_not_only_at_its_end() {
    let engine = Engine::scripted(|call| {
        let headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", "1000"),
        ];
        call.head_with(200, &headers)?;
        call.raw(b"{\"half\": ")?;
        call.hold()
    });
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.send(&whole_chat());
    assert_eq!(stream.status(), 200);
    assert!(stream.try_more().is_ok(), "{stream:?}");
    assert_eq!(stream.body(), b"{\"half\": ");
}

#[test]
fn an_upstream_that_cannot_be_reached_is_502_in_the_contracts_json() {
    let nobody = ports::free_addr();
    let gateway = Gateway::builder().backend(&nobody).start();
    for ask in [chat().id("away-stream"), whole_chat().id("away-whole")] {
        let answer = gateway.answer(&ask);
        answer.must_refuse(502, "upstream_unreachable");
        assert_eq!(answer.error()["type"], "api_error");
    }
    for id in ["away-stream", "away-whole"] {
        let record = gateway.ended(id);
        assert_eq!(record["state"], "FAILED", "{record}");
        assert_eq!(record["charged_units"], 0, "{record}");
        assert_eq!(
            record["attempts"][0]["outcome"], "connect_failed",
            "{record}"
        );
    }
    gateway.settled();
}

#[test]
fn one_connection_carries_many_requests_on_both_sides() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.send(&chat());
    for ask in [whole_chat(), chat(), whole_chat()] {
        assert_eq!(stream.next_answer().status, 200);
        stream.write(&ask.bytes());
    }
    assert_eq!(stream.next_answer().status, 200);
    assert_eq!(engine.calls().len(), 4);
    gateway.settled();
}

#[test]
fn a_head_in_pieces_and_a_body_in_pieces_are_one_request() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let bytes = chat().id("pieces-1").bytes();
    let mut stream = crate::support::client::Stream::connect(gateway.addr());
    bytes.iter().for_each(|byte| stream.write(&[*byte]));
    assert_eq!(stream.status(), 200);
    assert!(events::is_done(&stream.rest()));
}

#[test]
fn a_client_that_expects_a_100_is_told_to_go_on() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::before(&engine);
    let body = chat().document().to_string();
    let ask = Ask::post("/v1/chat/completions").header("Expect", "100-continue");
    let mut stream = crate::support::client::Stream::connect(gateway.addr());
    stream.write(ask.head_for(body.len()).as_bytes());
    assert!(stream.interim().starts_with("HTTP/1.1 100"), "{stream:?}");
    stream.write(body.as_bytes());
    assert_eq!(stream.status(), 200);
    assert!(
        engine.call(0).headers.get("expect").is_none(),
        "Expect went upstream"
    );
}
