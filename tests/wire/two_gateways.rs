//! Two gateways on one ledger, as in an upgrade or on two machines: they share ids and budgets, find each other's
//! crashes, and neither blocks the other.

use crate::support::ask::{chat, whole_chat};
use crate::support::client::Stream;
use crate::support::config::Builder;
use crate::support::database::Database;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::scratch::Scratch;
use crate::support::script::{holding_some, tokens};
use crate::support::wait::{self, ms};
use serde_json::Value;
use std::collections::BTreeSet;

const LIMIT: f64 = 5000.0;
const CLIENTS: usize = 4;
const EACH: usize = 25;

/// Holds who asks to be held, serves the others: eight units each.
fn engine() -> Engine {
    Engine::scripted(holding_some(tokens(3, ms(0))))
}

fn on(url: &str, engine: &Engine) -> Builder {
    Gateway::builder()
        .backend(engine.addr())
        .tenant(&format!(
            "budget = {{ units = {LIMIT}, period = \"total\" }}"
        ))
        .extra(&format!("[ledger]\nurl = \"{url}\""))
}

/// A request that streams until it is left, with 4003 units reserved.
fn hold(gateway: &Gateway, id: &str) -> Stream {
    let ask = chat().id(id).set("user", "hold").set("max_tokens", 4000);
    gateway.send(&ask)
}

#[track_caller]
fn exported(gateway: &Gateway) -> Vec<Value> {
    let ran = gateway.command(&["ledger", "export"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    ran.out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[track_caller]
fn remains(gateway: &Gateway, units: f64) {
    wait::until(format!("{units} units to remain"), || {
        let left = gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]);
        if left == units {
            Ok(())
        } else {
            Err(format!("{left} remain"))
        }
    });
}

fn share_ids_and_budgets_and_find_each_others_crashes(url: &str) {
    let engine = engine();
    let mut first = on(url, &engine).start();
    let second = on(url, &engine).start();
    let mut stream = hold(&first, "one");
    stream.says("t0 ");
    remains(&second, LIMIT - 4003.0);
    assert_eq!(second.record("one")["ended_at"], Value::Null);
    hold(&second, "one")
        .answer()
        .must_refuse(409, "request_running");
    // only the gateway it runs at can stop it
    second.cancel("one").must_refuse(409, "request_running");
    second
        .answer(&whole_chat().id("two").set("max_tokens", 1000))
        .must_refuse_for_good(429, "budget_exhausted");
    first.process.kill();
    wait::until("the crash to be found by the other", || {
        let record = second.record("one");
        if record["ended_by"] == "crash" {
            Ok(())
        } else {
            Err(record.to_string())
        }
    });
    remains(&second, LIMIT - 4003.0);
    assert_eq!(second.metric("streamgate_ledger_unknown", &[]), 1.0);
    assert_eq!(second.metric("streamgate_ledger_open", &[]), 0.0);
    first.restart();
    assert_eq!(first.record("one")["usage_source"], "unknown");
    let after = first.send(&chat().id("three").set("max_tokens", 20)).rest();
    assert!(events::is_done(&after));
    let charged = first.ended("three")["charged_units"].as_f64().unwrap();
    remains(&second, LIMIT - 4003.0 - charged);
    assert_eq!(exported(&second).len(), 2);
}

/// Many requests on both at once: none is refused, and both end with the same books.
fn serve_at_the_same_time(url: &str) {
    let engine = engine();
    let gateways = [on(url, &engine).start(), on(url, &engine).start()];
    std::thread::scope(|scope| {
        for (number, gateway) in gateways.iter().enumerate() {
            for client in 0..CLIENTS {
                scope.spawn(move || {
                    for n in 0..EACH {
                        let ask = whole_chat().id(&format!("g{number}-c{client}-{n}"));
                        let answer = gateway.answer(&ask.set("max_tokens", 4));
                        assert_eq!(answer.status, 200, "{}", answer.text());
                    }
                });
            }
        }
    });
    let all = 2 * CLIENTS * EACH;
    for gateway in &gateways {
        gateway.settled();
        remains(gateway, LIMIT - 8.0 * all as f64);
    }
    let entries = exported(&gateways[0]);
    let ids: BTreeSet<&str> = entries
        .iter()
        .filter_map(|e| e["request_id"].as_str())
        .collect();
    assert_eq!((entries.len(), ids.len()), (all, all));
    assert_eq!(engine.calls().len(), all);
    let unsettled = entries.iter().find(|e| e["state"] != "COMPLETED");
    assert_eq!(unsettled, None);
}

fn on_one_file(test: fn(&str)) {
    let scratch = Scratch::new();
    test(&format!("sqlite:{}", scratch.join("ledger.db").display()));
}

#[test]
fn two_gateways_on_one_file_share_ids_and_budgets_and_find_each_others_crashes() {
    on_one_file(share_ids_and_budgets_and_find_each_others_crashes);
}

#[test]
fn two_gateways_on_one_database_share_ids_and_budgets_and_find_each_others_crashes() {
    share_ids_and_budgets_and_find_each_others_crashes(&Database::new().url());
}

#[test]
fn two_gateways_on_one_file_serve_at_the_same_time_and_lose_nothing() {
    on_one_file(serve_at_the_same_time);
}

#[test]
fn two_gateways_on_one_database_serve_at_the_same_time_and_lose_nothing() {
    serve_at_the_same_time(&Database::new().url());
}
