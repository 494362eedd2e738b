//! The engine simulator by itself: it answers, counts, keeps time, and breaks as it is told.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::Broken;
use crate::support::sim::Sim;
use crate::support::wait::{self, ms, seconds};
use crate::support::{events, wait::until_true};
use serde_json::json;
use std::time::Instant;

fn eight() -> Ask {
    chat().set("max_tokens", 8).no_key()
}

#[test]
fn it_streams_as_many_tokens_as_max_tokens() {
    let sim = Sim::start();
    let answer = sim.send(&eight()).answer();
    assert_eq!(answer.status, 200);
    assert_eq!(events::contents(&answer.body).len(), 8, "{}", answer.text());
    assert!(events::is_done(&answer.body));
    assert_eq!(
        events::count(&answer.body, b"\"usage\""),
        0,
        "nobody asked for usage: {}",
        answer.text()
    );
    let asked = sim
        .send(&eight().set("stream_options", json!({"include_usage": true})))
        .answer();
    let usage = events::blocks(&asked.body)
        .iter()
        .rev()
        .filter_map(|b| events::data_of(b))
        .next()
        .unwrap();
    assert_eq!(usage["choices"], json!([]), "{usage}");
    assert_eq!(
        usage["usage"],
        json!({"prompt_tokens": 2, "completion_tokens": 8, "total_tokens": 10})
    );
}

#[test]
fn it_answers_whole_with_its_usage() {
    let sim = Sim::start();
    let doc = sim.send(&whole_chat().set("max_tokens", 8)).answer().json();
    assert_eq!(doc["usage"]["completion_tokens"], 8, "{doc}");
    assert_eq!(
        doc["usage"]["prompt_tokens"], 2,
        "the prompt has two words: {doc}"
    );
    assert!(
        doc["choices"][0]["message"]["content"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{doc}"
    );
}

#[test]
fn it_serves_every_route_of_an_engine() {
    let sim = Sim::start();
    assert_eq!(sim.get("/health").status, 200);
    assert_eq!(sim.get("/v1/models").json()["object"], "list");
    let completion = sim.send(
        &Ask::post("/v1/completions")
            .json(json!({"model": "m", "prompt": "a b c", "max_tokens": 4})),
    );
    let doc = completion.answer().json();
    assert_eq!(
        (
            &doc["usage"]["prompt_tokens"],
            &doc["usage"]["completion_tokens"]
        ),
        (&json!(3), &json!(4)),
        "{doc}"
    );
    let messages = json!([{"role": "user", "content": "a b c"}]);
    let ask = Ask::post("/v1/messages")
        .json(json!({"model": "m", "messages": messages, "max_tokens": 4}));
    let doc = sim.send(&ask).answer().json();
    assert_eq!(
        (&doc["type"], &doc["usage"]["output_tokens"]),
        (&json!("message"), &json!(4)),
        "{doc}"
    );
    let body = sim.send(&ask.set("stream", true)).rest();
    let names: Vec<_> = events::blocks(&body)
        .iter()
        .filter_map(|block| events::field(block, "event"))
        .collect();
    assert_eq!(
        names.first().map(String::as_str),
        Some("message_start"),
        "{names:?}"
    );
    assert_eq!(
        names.last().map(String::as_str),
        Some("message_stop"),
        "{names:?}"
    );
    assert_eq!(
        names
            .iter()
            .filter(|name| *name == "content_block_delta")
            .count(),
        4,
        "{names:?}"
    );
    assert_eq!(sim.get("/nothing").status, 404);
}

#[test]
fn its_metrics_count_what_it_did() {
    let sim = Sim::start();
    sim.send(&eight()).rest();
    sim.send(&whole_chat().set("max_tokens", 8)).rest();
    until_true("both to be counted", || {
        sim.metric("vllm:request_success_total") == 2.0
    });
    assert_eq!(sim.made(), 16.0);
    assert_eq!(sim.running(), 0.0);
    assert_eq!(sim.metric("vllm:num_requests_waiting"), 0.0);
}

#[test]
fn it_keeps_its_times() {
    let sim = Sim::with(&[
        "--prefill-ms",
        "40",
        "--prefill-ms-per-token",
        "10",
        "--decode-ms",
        "20",
    ]);
    let start = Instant::now();
    let mut stream = sim.send(&eight());
    stream.content();
    let first = start.elapsed();
    stream.rest();
    let whole = start.elapsed();
    assert!(
        first >= ms(58),
        "40 ms and two tokens of 10 ms: the first came after {first:?}"
    );
    assert!(
        whole - first >= ms(7 * 20 - 10),
        "seven more of 20 ms each came in {:?}",
        whole - first
    );
}

#[test]
fn no_more_run_than_max_running() {
    let sim = Sim::with(&["--max-running", "2", "--decode-ms", "10"]);
    let long = chat().set("max_tokens", 500);
    let mut running: Vec<_> = (0..2).map(|_| sim.send(&long)).collect();
    running
        .iter_mut()
        .for_each(|stream| assert!(stream.content().is_some()));
    let mut third = sim.send(&long);
    until_true("the third to wait", || {
        sim.metric("vllm:num_requests_waiting") == 1.0
    });
    assert_eq!(sim.running(), 2.0);
    running.pop().unwrap().close();
    assert!(third.content().is_some());
}

#[test]
fn at_once_it_stops_when_its_client_leaves() {
    let sim = Sim::with(&["--notice", "at-once", "--prefill-ms", "60000"]);
    let stream = sim.send(&eight());
    until_true("the request to run", || sim.running() == 1.0);
    stream.close();
    wait::within(seconds(1), "the simulator to notice", || {
        match sim.running() {
            0.0 => Ok(()),
            n => Err(format!("{n} running")),
        }
    });
}

#[test]
fn on_write_it_works_on_until_it_writes() {
    let sim = Sim::with(&[
        "--notice",
        "on-write",
        "--prefill-ms",
        "400",
        "--prefill-ms-per-token",
        "0",
    ]);
    let start = Instant::now();
    let stream = sim.send(&eight());
    until_true("the request to run", || sim.running() == 1.0);
    stream.close();
    until_true("the simulator to notice", || sim.running() == 0.0);
    assert!(
        start.elapsed() >= ms(390),
        "noticed after {:?}, before it could have written",
        start.elapsed()
    );
}

#[test]
fn it_breaks_as_told() {
    let sim = Sim::start();
    let send = |fault: &str| sim.send(&eight().fault(fault));
    for (fault, broken) in [
        (
            "reset@5",
            Broken::Failed(std::io::ErrorKind::ConnectionReset),
        ),
        ("fin@5", Broken::Cut),
    ] {
        let mut stream = send(fault);
        assert_eq!(stream.try_rest(), Err(broken), "{fault}");
        assert_eq!(
            events::contents(stream.body()).len(),
            5,
            "{fault}: {stream:?}"
        );
        assert!(stream.body().ends_with(b"\n\n"), "{fault}: {stream:?}");
    }
    let mut torn = send("torn@5");
    assert!(torn.try_rest().is_err(), "torn@5 ended properly: {torn:?}");
    assert!(
        !torn.body().ends_with(b"\n\n"),
        "torn@5 tore nothing: {torn:?}"
    );
    assert_eq!(send("status=503").status(), 503);
    let body = send("no-done").rest();
    assert_eq!(
        (events::contents(&body).len(), events::is_done(&body)),
        (8, false)
    );
    let body = send("error@5").rest();
    assert_eq!(events::contents(&body).len(), 5);
    assert!(
        events::blocks(&body)
            .iter()
            .filter_map(|b| events::data_of(b))
            .any(|doc| doc.get("error").is_some())
    );
}

#[test]
fn it_waits_and_spells_as_told() {
    let sim = Sim::start();
    let send = |fault: &str| sim.send(&eight().fault(fault));
    let start = Instant::now();
    send("stall=300ms@3").rest();
    assert!(start.elapsed() >= ms(300));
    let start = Instant::now();
    assert_eq!(send("header-delay=300ms").status(), 200);
    assert!(start.elapsed() >= ms(300));
    let plain = String::from_utf8(send("split=1").rest()).unwrap();
    assert_eq!(events::contents(plain.as_bytes()).len(), 8);
    let crlf = send("crlf").rest();
    assert!(events::find(&crlf, b"\r\n\r\n").is_some() && events::find(&crlf, b"\n\n").is_none());
    let cr = send("cr").rest();
    assert!(events::find(&cr, b"\r\r").is_some() && events::find(&cr, b"\n").is_none());
    let asked = eight()
        .set("stream_options", json!({"include_usage": true}))
        .fault("no-usage");
    assert_eq!(events::count(&sim.send(&asked).rest(), b"\"usage\""), 0);
    assert!(send("event-bytes=200KiB").rest().len() > 8 * 200 * 1024);
}
