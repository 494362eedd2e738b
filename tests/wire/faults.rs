//! Engines that break in mid-stream: the client gets whole events, an error event, and a proper end of body.

use crate::support::ask::chat;
use crate::support::client::Stream;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::sim::Sim;
use crate::support::wait::ms;
use serde_json::Value;
use std::time::Instant;

/// A gateway before a simulator.
fn ground() -> (Sim, Gateway) {
    let sim = Sim::start();
    let gateway = Gateway::builder().backend(sim.addr()).start();
    (sim, gateway)
}

/// Streams eight tokens with a fault; gives the body and the record.
fn with_fault(gateway: &Gateway, fault: &str) -> (Vec<u8>, Value) {
    let id: String = fault
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let mut stream: Stream = gateway.send(&chat().id(&id).set("max_tokens", 8).fault(fault));
    assert_eq!(stream.status(), 200, "{fault}: {stream:?}");
    let body = stream.rest();
    (body, gateway.ended(&id))
}

#[test]
fn a_stream_that_breaks_ends_with_an_error_event() {
    let (_sim, gateway) = ground();
    for fault in ["torn@5", "reset@5", "fin@5", "no-done"] {
        let (body, record) = with_fault(&gateway, fault);
        assert_eq!(
            events::final_error(&body)["code"],
            "upstream_broken",
            "{fault}"
        );
        let shown = events::contents(&body).len();
        assert_eq!(
            shown,
            if fault == "no-done" { 8 } else { 5 },
            "{fault}: {}",
            String::from_utf8_lossy(&body)
        );
        assert_eq!(record["state"], "FAILED", "{fault}: {record}");
        assert_eq!(record["ended_by"], "upstream", "{fault}: {record}");
        assert_eq!(record["upstream_end"], "error", "{fault}: {record}");
        // without [DONE] the engine has still told its usage
        let source = if fault == "no-done" {
            "upstream"
        } else {
            "counted"
        };
        assert_eq!(record["usage_source"], source, "{fault}: {record}");
        assert_eq!(record["generated_units"], shown, "{fault}: {record}");
        assert!(record["error"].is_string(), "{fault}: {record}");
    }
    gateway.settled();
}

#[test]
fn an_error_object_inside_a_stream_passes_and_the_request_has_failed() {
    let (_sim, gateway) = ground();
    let (body, record) = with_fault(&gateway, "error@5");
    let errors = events::blocks(&body)
        .iter()
        .filter_map(|b| events::data_of(b))
        .filter(|d| d.get("error").is_some())
        .count();
    assert_eq!(errors, 1, "{}", String::from_utf8_lossy(&body));
    assert_eq!(record["state"], "FAILED", "{record}");
    assert_eq!(record["ended_by"], "upstream", "{record}");
    gateway.settled();
}

#[test]
fn a_stall_shorter_than_the_time_out_only_takes_time() {
    let (_sim, gateway) = ground();
    let start = Instant::now();
    let (body, record) = with_fault(&gateway, "stall=400ms@3");
    assert!(start.elapsed() >= ms(400));
    assert!(events::is_done(&body));
    assert_eq!(record["state"], "COMPLETED", "{record}");
}

#[test]
fn a_stall_longer_than_the_idle_time_out_ends_the_stream() {
    let sim = Sim::start();
    let pool = "timeouts = { idle = \"300ms\" }\nstream = { heartbeat = \"100ms\" }";
    let gateway = Gateway::builder().backend(sim.addr()).pool(pool).start();
    let (body, record) = with_fault(&gateway, "stall=30s@3");
    assert_eq!(events::final_error(&body)["code"], "upstream_timeout");
    assert_eq!(events::contents(&body).len(), 3);
    assert_eq!(record["state"], "FAILED", "{record}");
    assert_eq!(record["ended_by"], "timeout", "{record}");
    gateway.settled();
}

#[test]
fn headers_that_do_not_come_are_504() {
    let sim = Sim::start();
    let gateway = Gateway::builder()
        .backend(sim.addr())
        .pool("timeouts = { first_byte = \"300ms\" }")
        .start();
    let answer = gateway.answer(&chat().id("late-head").fault("header-delay=30s"));
    answer.must_refuse(504, "upstream_timeout");
    let record = gateway.ended("late-head");
    assert_eq!(record["ended_by"], "timeout", "{record}");
    assert_eq!(record["attempts"][0]["outcome"], "timeout", "{record}");
    gateway.settled();
}

#[test]
fn odd_spellings_and_splits_pass_byte_for_byte() {
    let (sim, gateway) = ground();
    for fault in ["crlf", "cr", "split=1", "no-usage", "event-bytes=200KiB"] {
        let ask = chat().set("max_tokens", 8).fault(fault);
        let direct = sim.send(&ask).rest();
        let (body, record) = with_fault(&gateway, fault);
        assert_eq!(body.len(), direct.len(), "{fault}");
        assert!(
            steady(&body) == steady(&direct),
            "{fault}: the bytes differ"
        );
        assert_eq!(record["state"], "COMPLETED", "{fault}: {record}");
        assert_eq!(record["generated_units"], 8, "{fault}: {record}");
    }
    gateway.settled();
}

/// The bytes without what differs between two runs: ids and times are of equal length and only digits and letters
/// after their names.
fn steady(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body).into_owned();
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some(at) = ["\"id\":", "\"created\":"]
        .iter()
        .filter_map(|name| rest.find(name).map(|i| i + name.len()))
        .min()
    {
        out.push_str(&rest[..at]);
        let end = rest[at..].find(',').map_or(rest.len(), |i| at + i);
        rest = &rest[end..];
    }
    out.push_str(rest);
    out.into_bytes()
}

#[test]
fn a_fault_of_one_stream_leaves_the_next_alone() {
    let (_sim, gateway) = ground();
    for round in 0..5 {
        let mut broken = gateway.send(&chat().set("max_tokens", 8).fault("reset@5"));
        broken.rest();
        let whole = gateway
            .send(&chat().set("max_tokens", 8).id(&format!("next-{round}")))
            .rest();
        assert!(events::is_done(&whole));
        assert_eq!(events::contents(&whole).len(), 8);
    }
    gateway.settled();
}
