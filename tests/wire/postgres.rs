//! The ledger in PostgreSQL, through the real binary: the same promises as with SQLite, and a server that goes away and
//! comes back.

use crate::support::OTHER_KEY;
use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::config::Builder;
use crate::support::database::Database;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::process::run_in;
use crate::support::relay::Relay;
use crate::support::script::{holding, holding_some, tokens};
use crate::support::wait::{self, ms};
use serde_json::Value;
use std::time::Instant;

const BUDGET: &str = "budget = { units = 500, period = \"total\" }";

/// Holds who asks to be held, serves the others.
fn engine() -> Engine {
    Engine::scripted(holding_some(tokens(2, ms(0))))
}

fn on(url: &str, engine: &Engine) -> Builder {
    Gateway::builder()
        .backend(engine.addr())
        .tenant(BUDGET)
        .extra(&format!("[ledger]\nurl = \"{url}\""))
}

/// A request that streams until it is left, with 403 units reserved.
fn held(id: &str) -> Ask {
    chat().id(id).set("user", "hold").set("max_tokens", 400)
}

fn exported(gateway: &Gateway) -> Vec<Value> {
    let ran = gateway.command(&["ledger", "export"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    ran.out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn remaining(gateway: &Gateway) -> f64 {
    gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")])
}

#[track_caller]
fn remains(gateway: &Gateway, units: f64) {
    wait::until(format!("{units} units to remain"), || {
        let left = remaining(gateway);
        if left == units {
            Ok(())
        } else {
            Err(format!("{left} remain"))
        }
    });
}

#[test]
fn an_entry_is_there_before_the_engine_is_called_and_survives_a_restart() {
    let (database, engine) = (Database::new(), Engine::scripted(tokens(2, ms(0))));
    let mut gateway = on(&database.url(), &engine).start();
    gateway.chat("done-1").rest();
    gateway.send(&chat().id("done-1").key(OTHER_KEY)).rest();
    let record = gateway.ended("done-1");
    gateway.settled();
    let shown = gateway.command(&["ledger", "show", "done-1", "--tenant", "acme"]);
    assert_eq!(serde_json::from_str::<Value>(&shown.out).unwrap(), record);
    gateway.process.kill();
    gateway.restart();
    assert_eq!(gateway.record("done-1"), record);
    gateway
        .answer(&chat().id("done-1"))
        .must_refuse(409, "request_already_shown");
    assert_eq!(
        remaining(&gateway),
        500.0 - record["charged_units"].as_f64().unwrap()
    );
    let report = gateway.command(&["ledger", "report", "--format", "csv"]);
    for row in ["acme,m,1,1,0,0,0", "other,m,1,1,0,0,0"] {
        assert!(report.out.contains(row), "{}", report.out);
    }
    assert_eq!(exported(&gateway).len(), 2);
}

#[test]
fn a_running_request_is_on_the_list_when_its_engine_is_called() {
    let (database, engine) = (Database::new(), Engine::scripted(holding(0)));
    let gateway = on(&database.url(), &engine).start();
    let stream = gateway.chat("open-1");
    engine.held(0);
    let ran = gateway.command(&["ledger", "list", "--state", "open"]);
    assert!(ran.out.contains("open-1"), "{}", ran.all());
    drop(stream);
}

#[test]
fn what_a_kill_leaves_is_unknown_until_its_bill_which_a_running_gateway_hears_of() {
    let (database, engine) = (Database::new(), engine());
    let mut gateway = on(&database.url(), &engine).start();
    gateway.send(&held("lost-1")).says("t0 ");
    gateway.process.kill();
    gateway.restart();
    remains(&gateway, 97.0);
    let record = gateway.record("lost-1");
    assert_eq!(record["state"], "FAILED", "{record}");
    assert_eq!(record["ended_by"], "crash", "{record}");
    assert_eq!(record["usage_source"], "unknown", "{record}");
    assert_eq!(gateway.metric("streamgate_ledger_unknown", &[]), 1.0);
    gateway
        .answer(&held("lost-1"))
        .must_refuse(409, "request_already_shown");
    let bill = gateway
        .written
        .scratch
        .write("bill.csv", "request_id,units\nlost-1,37\nstranger,5\n");
    let bill = bill.display().to_string();
    let dry = gateway.command(&["ledger", "reconcile", "--dry-run", &bill]);
    assert!(
        dry.out.contains("lost-1: would be charged 37"),
        "{}",
        dry.all()
    );
    assert_eq!(remaining(&gateway), 97.0);
    let ran = gateway.command(&["ledger", "reconcile", &bill]);
    assert!(
        ran.code == 1 && ran.out.contains("stranger"),
        "{}",
        ran.all()
    );
    remains(&gateway, 463.0);
    assert_eq!(gateway.record("lost-1")["usage_source"], "reconciled");
    wait::until_true("nothing to await its bill", || {
        gateway.metric("streamgate_ledger_unknown", &[]) == 0.0
    });
}

#[test]
fn while_the_database_hangs_no_id_runs_twice_and_nobody_waits_for_long() {
    let (database, engine) = (Database::new(), engine());
    let url = format!("{}\"\non_error = \"serve", database.url());
    let gateway = on(&url, &engine).start();
    gateway.chat("before").rest();
    gateway.settled();
    let session = database.session();
    session.rows("BEGIN; LOCK TABLE streamgate.entry");
    let once = || gateway.answer(&whole_chat().id("served"));
    assert_eq!(once().status, 200);
    let from = Instant::now();
    for _ in 0..5 {
        once().must_refuse(409, "request_already_shown");
    }
    let other = whole_chat().id("served").set("user", "another");
    gateway
        .answer(&other)
        .must_refuse(422, "request_id_mismatch");
    assert!(from.elapsed() < ms(5000), "{:?}", from.elapsed());
    assert_eq!(gateway.metric("streamgate_ledger_up", &[]), 0.0);
    assert_eq!(engine.calls().len(), 2, "a request ran twice");
    drop(session);
    waits_for_the_ledger(&gateway, 1.0);
    gateway.settled();
    assert_eq!(exported(&gateway).len(), 2);
}

/// A gateway whose wire to its database can be cut.
fn behind_a_relay(on_error: &str, engine: &Engine) -> (Database, Relay, Gateway) {
    let database = Database::new();
    let url = database.url();
    let server = url.split(['@', '/']).nth(3).unwrap_or_default();
    let relay = Relay::to(server);
    let url = url.replace(server, relay.addr());
    let gateway = on(&format!("{url}\"\non_error = \"{on_error}"), engine).start();
    (database, relay, gateway)
}

#[track_caller]
fn waits_for_the_ledger(gateway: &Gateway, up: f64) {
    wait::until(format!("streamgate_ledger_up to be {up}"), || {
        let now = gateway.metric("streamgate_ledger_up", &[]);
        if now == up {
            Ok(())
        } else {
            Err(format!("it is {now}"))
        }
    });
}

#[test]
fn while_the_database_is_away_requests_are_refused_and_what_runs_is_settled_later() {
    let engine = engine();
    let (_database, relay, gateway) = behind_a_relay("refuse", &engine);
    let mut stream = gateway.send(&held("running"));
    stream.says("t0 ");
    relay.cut();
    waits_for_the_ledger(&gateway, 0.0);
    for n in 0..3 {
        gateway
            .answer(&whole_chat().id(&format!("refused-{n}")))
            .must_refuse(503, "ledger_unavailable");
    }
    stream.close();
    assert_eq!(gateway.ended("running")["state"], "CANCELLED");
    assert_eq!(engine.calls().len(), 1, "a refused request ran");
    relay.mend();
    waits_for_the_ledger(&gateway, 1.0);
    gateway.settled();
    assert!(events::is_done(&gateway.chat("after").rest()));
    gateway.settled();
    let states: Vec<(Value, Value)> = exported(&gateway)
        .into_iter()
        .map(|e| (e["request_id"].clone(), e["state"].clone()))
        .collect();
    let want = [("running", "CANCELLED"), ("after", "COMPLETED")];
    assert_eq!(states, want.map(|(id, state)| (id.into(), state.into())));
}

#[test]
fn while_the_database_is_away_requests_are_served_where_the_config_says_so_and_booked_later() {
    let engine = engine();
    let (_database, relay, gateway) = behind_a_relay("serve", &engine);
    gateway.chat("before").rest();
    relay.cut();
    for n in 0..3 {
        let answer = gateway.answer(&whole_chat().id(&format!("served-{n}")));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    waits_for_the_ledger(&gateway, 0.0);
    relay.mend();
    waits_for_the_ledger(&gateway, 1.0);
    gateway.settled();
    let entries = wait::until("all to be in the ledger", || {
        let entries = exported(&gateway);
        let ended = entries.iter().filter(|e| e["state"] == "COMPLETED").count();
        if ended == 4 {
            Ok(entries)
        } else {
            Err(format!("{entries:?}"))
        }
    });
    let charged: f64 = entries
        .iter()
        .map(|e| e["charged_units"].as_f64().unwrap())
        .sum();
    remains(&gateway, 500.0 - charged);
}

#[test]
fn a_database_that_cannot_be_used_stops_the_start_with_one_clear_line() {
    let engine = engine();
    for (url, code, words) in [
        (
            "postgres://u:hunter2@127.0.0.1:1/l",
            1,
            "127.0.0.1:1/l: cannot connect",
        ),
        (
            "postgres://u:hunter2@127.0.0.1:port/l",
            64,
            "ledger.url: its port is not valid",
        ),
    ] {
        let written = on(url, &engine).write();
        let ran = run_in(written.scratch.path(), &["-c", &written.file()]);
        assert_eq!(ran.code, code, "{}", ran.all());
        let lines: Vec<&str> = ran.err.lines().filter(|l| l.contains(words)).collect();
        assert_eq!(lines.len(), 1, "{}", ran.all());
        assert!(!ran.all().contains("hunter2"), "{}", ran.all());
        let list = run_in(
            written.scratch.path(),
            &["-c", &written.file(), "ledger", "list"],
        );
        assert!(
            list.code == code && !list.all().contains("hunter2"),
            "{}",
            list.all()
        );
    }
}
