//! `kill -9` in mid-stream: what was begun is found again, refused again, and its budget stays held.

use crate::support::ask::chat;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::process::Signal;
use crate::support::script::{holding_some, tokens};
use crate::support::wait::{self, ms};

fn engine() -> Engine {
    Engine::scripted(holding_some(tokens(2, ms(0))))
}

#[test]
fn a_killed_request_is_unknown_its_id_refused_and_its_budget_held() {
    let engine = engine();
    let budget = "budget = { units = 500, period = \"total\" }";
    let mut gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant(budget)
        .start();
    let mut stream = gateway.send(
        &chat()
            .id("crash-1")
            .set("user", "hold")
            .set("max_tokens", 400),
    );
    stream.says("t0 ");
    let before = gateway.reaches("crash-1", "STREAMING");
    assert_eq!(before["reserved_units"], 403, "{before}");
    gateway.process.kill();
    gateway.restart();

    let record = gateway.record("crash-1");
    assert_eq!(record["state"], "FAILED", "{record}");
    assert_eq!(record["ended_by"], "crash", "{record}");
    assert_eq!(record["usage_source"], "unknown", "{record}");
    assert_eq!(record["reserved_units"], 403, "{record}");
    assert_eq!(gateway.metric("streamgate_ledger_unknown", &[]), 1.0);
    assert_eq!(
        gateway.metric("streamgate_units_held", &[("tenant", "acme")]),
        403.0
    );
    assert_eq!(
        gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]),
        97.0
    );

    let same = chat().set("user", "hold").set("max_tokens", 400);
    gateway
        .answer(&same.id("crash-1"))
        .must_refuse(409, "request_already_shown");
    gateway
        .answer(&chat().id("crash-1").set("user", "another"))
        .must_refuse(422, "request_id_mismatch");
    let over = gateway.answer(&chat().id("after-1").set("max_tokens", 200));
    over.must_refuse_for_good(429, "budget_exhausted");
    let fits = gateway.answer(&chat().id("after-2").set("max_tokens", 20));
    assert!(
        fits.status == 200 && events::is_done(&fits.body),
        "{}",
        fits.text()
    );
    assert_eq!(engine.calls().len(), 2, "a refused request ran");
}

#[test]
fn what_is_known_of_a_killed_request_is_on_its_record() {
    let engine = Engine::scripted(|call| {
        if call.seen.number == 0 {
            return call.answer(503, "text/plain", b"busy");
        }
        let head = [
            ("Content-Type", "text/event-stream"),
            ("X-Request-Id", "vendor-7"),
            ("Transfer-Encoding", "chunked"),
        ];
        call.head_with(200, &head)?;
        call.hold()
    });
    let mut gateway = Gateway::before(&engine);
    let _stream = gateway.send(&chat().id("crash-2"));
    wait::until_true("its checkpoint to be in the ledger", || {
        let shown = gateway.command(&["ledger", "show", "crash-2"]);
        shown.out.contains("vendor-7")
    });
    gateway.process.kill();
    gateway.restart();
    let record = gateway.record("crash-2");
    assert_eq!(record["ended_by"], "crash", "{record}");
    assert_eq!(record["upstream_end"], "error", "it was called: {record}");
    assert_eq!(record["upstream_request_id"], "vendor-7", "{record}");
    assert!(record["started_at"].is_string(), "{record}");
    let outcomes: Vec<_> = record["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| (a["backend"] == engine.addr(), a["outcome"].clone()))
        .collect();
    assert_eq!(
        outcomes,
        [(true, "refused".into()), (true, "error".into())],
        "{record}"
    );
}

#[test]
fn what_had_ended_before_the_kill_is_settled_once_and_stays_so() {
    let engine = engine();
    let mut gateway = Gateway::before(&engine);
    for n in 0..5 {
        gateway.chat(&format!("done-{n}")).rest();
    }
    let before: Vec<_> = (0..5)
        .map(|n| gateway.ended(&format!("done-{n}")))
        .collect();
    gateway.settled();
    gateway.process.kill();
    gateway.restart();
    for (n, record) in before.iter().enumerate() {
        assert_eq!(&gateway.record(&format!("done-{n}")), record);
        gateway
            .answer(&chat().id(&format!("done-{n}")))
            .must_refuse(409, "request_already_shown");
    }
    assert_eq!(gateway.metric("streamgate_ledger_unknown", &[]), 0.0);
}

#[test]
fn a_clean_stop_leaves_nothing_unknown() {
    let engine = engine();
    let mut gateway = Gateway::before(&engine);
    let mut stream = gateway.send(&chat().id("stopped-1").set("user", "hold"));
    stream.says("t0 ");
    gateway.signal(Signal::Int);
    assert_eq!(gateway.exit(), 0);
    gateway.restart();
    let record = gateway.record("stopped-1");
    assert_ne!(record["ended_by"], "crash", "{record}");
    assert!(record["ended_at"].is_string(), "{record}");
    assert_eq!(gateway.metric("streamgate_ledger_unknown", &[]), 0.0);
}
