//! Budgets: nobody is admitted over what is left, every request is settled once, and nothing forgets what was spent.

use crate::support::ask::{Ask, chat};
use crate::support::config::Builder;
use crate::support::cost::{self, INPUT, reserving};
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::metrics;
use crate::support::process::Signal;
use crate::support::script::{holding, tokens};
use crate::support::turns::{ONE_SLOT, Turns, lines_up};
use crate::support::wait::{self, ms};
use crate::support::{KEY, OTHER_KEY};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

fn total(units: u64) -> String {
    format!("budget = {{ units = {units}, period = \"total\" }}")
}

fn with(engine: &Engine, budget: &str) -> Builder {
    Gateway::builder().backend(engine.addr()).tenant(budget)
}

fn remaining(gateway: &Gateway) -> f64 {
    gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")])
}

/// What is left once everything has ended.
#[track_caller]
fn settled(gateway: &Gateway) -> f64 {
    gateway.settled();
    remaining(gateway)
}

/// The tenant's row of `/api/tenants`.
#[track_caller]
fn row(gateway: &Gateway) -> Value {
    let doc = gateway.admin(&Ask::get("/api/tenants").no_key()).json();
    let rows = doc["tenants"].as_array().cloned().unwrap_or_default();
    let row = rows.into_iter().find(|row| row["tenant"] == "acme");
    row.unwrap_or_else(|| panic!("no acme: {doc}"))
}

#[test]
fn of_a_thousand_at_once_exactly_a_hundred_are_served_of_a_budget_for_a_hundred() {
    const ALL: usize = 1000;
    const CLIENTS: usize = 100;
    const COST: u64 = 50;
    // what is reserved is what it costs: nothing comes back for one more
    let engine = cost::engine(INPUT, COST - INPUT);
    let gateway = with(&engine, &total(100 * COST)).threads(0).start();
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (served, lowest) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut lowest: f64 = f64::MAX;
            while !over.load(Ordering::Relaxed) {
                let row = row(&gateway);
                let units = |member: &str| row[member].as_f64().unwrap();
                let taken = units("charged_units") + units("reserved_units") + units("held_units");
                lowest = lowest
                    .min((100 * COST) as f64 - taken)
                    .min(remaining(&gateway));
            }
            lowest
        });
        let client = || {
            let mut served = 0;
            while next.fetch_add(1, Ordering::Relaxed) < ALL {
                let answer = gateway.answer(&reserving(COST));
                match answer.status {
                    200 => served += 1,
                    _ => answer.must_refuse_for_good(429, "budget_exhausted"),
                }
            }
            served
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        let served: usize = clients.into_iter().map(|c| c.join().unwrap()).sum();
        over.store(true, Ordering::Relaxed);
        (served, watcher.join().unwrap())
    });
    assert_eq!(served, 100);
    assert_eq!(engine.calls().len(), 100);
    assert!(lowest >= 0.0, "{lowest} units were left");
    assert_eq!(settled(&gateway), 0.0);
    let row = row(&gateway);
    assert_eq!(row["charged_units"], 100 * COST, "{row}");
    let refused = [("code", "budget_exhausted"), ("tenant", "acme")];
    assert_eq!(gateway.metric("streamgate_rejected_total", &refused), 900.0);
}

#[test]
fn reservations_alone_hold_a_budget_while_all_run() {
    let engine = Engine::scripted(holding(1));
    // seven fit, and the eighth by one unit not
    let gateway = with(&engine, &total(799)).threads(0).start();
    let mut streams: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..50)
            .map(|_| scope.spawn(|| gateway.send(&reserving(100))))
            .collect();
        clients.into_iter().map(|c| c.join().unwrap()).collect()
    });
    let running = streams
        .iter_mut()
        .filter_map(|s| (s.status() == 200).then_some(()));
    assert_eq!(running.count(), 7);
    assert_eq!(
        gateway.metric("streamgate_units_reserved", &[("tenant", "acme")]),
        700.0
    );
    assert_eq!(remaining(&gateway), 99.0);
    streams.into_iter().for_each(|stream| stream.close());
    let left = settled(&gateway);
    let charged = gateway.metric("streamgate_units_total", &[("kind", "charged")]);
    assert_eq!(left, 799.0 - charged);
    assert!(
        (7.0 * (INPUT as f64)..=7.0 * 100.0).contains(&charged),
        "{charged}"
    );
}

#[test]
fn what_was_not_used_comes_back_at_each_end() {
    let engine = cost::engine(4, 6);
    let gateway = with(&engine, &total(200)).start();
    for n in 1..=6 {
        // each reserves all that is left but for a bit
        let ask = reserving(140).id(&format!("small-{n}"));
        assert_eq!(gateway.answer(&ask).status, 200);
        assert_eq!(settled(&gateway), 200.0 - 10.0 * f64::from(n));
    }
    let record = gateway.ended("small-1");
    assert_eq!(record["reserved_units"], 140, "{record}");
    assert_eq!(record["charged_units"], 10, "{record}");
    assert_eq!(record["usage_source"], "upstream", "{record}");
}

#[test]
fn what_an_answer_costs_over_its_reservation_is_charged_and_counted() {
    let engine = cost::engine(3, 500);
    let gateway = with(&engine, &total(300)).start();
    assert_eq!(gateway.answer(&chat().id("over")).status, 200);
    assert_eq!(
        settled(&gateway),
        0.0,
        "what is left is never less than nothing"
    );
    let record = gateway.ended("over");
    assert_eq!(record["charged_units"], 503, "{record}");
    let overrun = [("tenant", "acme"), ("kind", "overrun")];
    assert_eq!(gateway.metric("streamgate_units_total", &overrun), 400.0);
    gateway
        .answer(&reserving(INPUT + 1))
        .must_refuse_for_good(429, "budget_exhausted");
    // a larger budget has to make up for it first
    gateway.written.replace("units = 300", "units = 510");
    let reloaded = gateway.admin(&Ask::post("/api/reload").no_key());
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    assert_eq!(remaining(&gateway), 7.0);
    assert_eq!(engine.calls().len(), 1);
}

#[test]
fn a_request_that_waits_holds_its_units_and_no_more_are_given_out() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, &total(250)).pool(ONE_SLOT).start();
    let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), "hold");
    let mut waiting: Vec<_> = (0..2)
        .map(|n| lines_up(&gateway, &chat(), &format!("w{n}")))
        .collect();
    assert_eq!(remaining(&gateway), 250.0 - 2.0 * 103.0);
    gateway
        .answer(&chat())
        .must_refuse_for_good(429, "budget_exhausted");
    turns.let_go();
    hold.rest();
    waiting.iter_mut().for_each(|stream| drop(stream.rest()));
    assert_eq!(settled(&gateway), 250.0 - 2.0 * (INPUT as f64 + 1.0));
}

#[test]
fn what_waits_when_the_process_is_killed_holds_its_budget_as_what_runs_does() {
    let turns = Turns::default();
    let engine = turns.engine();
    let mut gateway = with(&engine, &total(1000)).pool(ONE_SLOT).start();
    let _hold = turns.holds(&gateway, &chat(), "runs");
    let _waiting = lines_up(&gateway, &chat(), "waits");
    gateway.process.kill();
    gateway.restart();
    for id in ["runs", "waits"] {
        let record = gateway.record(id);
        assert_eq!(record["ended_by"], "crash", "{record}");
        assert_eq!(record["usage_source"], "unknown", "{record}");
    }
    assert_eq!(row(&gateway)["held_units"], 206);
    assert_eq!(remaining(&gateway), 1000.0 - 206.0);
    // the slot and the line are those of a new process
    assert_eq!(gateway.answer(&chat()).status, 200);
    gateway.settled();
}

#[test]
fn a_budget_is_not_refilled_by_a_restart_a_reload_or_a_kill() {
    let engine = cost::engine(INPUT, 97);
    let mut gateway = with(&engine, &total(450)).start();
    let spends = |gateway: &Gateway, left: f64| {
        assert_eq!(gateway.answer(&reserving(100)).status, 200);
        assert_eq!(settled(gateway), left);
    };
    spends(&gateway, 350.0);
    let reloaded = gateway.admin(&Ask::post("/api/reload").no_key());
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    assert_eq!(remaining(&gateway), 350.0);
    spends(&gateway, 250.0);
    gateway.signal(Signal::Term);
    assert_eq!(gateway.exit(), 0);
    gateway.restart();
    assert_eq!(remaining(&gateway), 250.0);
    spends(&gateway, 150.0);
    gateway.process.kill();
    gateway.restart();
    assert_eq!(remaining(&gateway), 150.0);
    spends(&gateway, 50.0);
    gateway
        .answer(&reserving(100))
        .must_refuse_for_good(429, "budget_exhausted");
    // another period sums the same hours
    gateway
        .written
        .replace("period = \"total\"", "period = \"month\"");
    gateway.signal(Signal::Hup);
    wait::until_true("the other period", || {
        row(&gateway)["budget"]["period"] == "month"
    });
    assert_eq!(remaining(&gateway), 50.0);
}

#[test]
fn a_tenant_that_leaves_the_config_and_comes_back_has_spent_what_it_had() {
    let engine = cost::engine(INPUT, 97);
    let gateway = with(&engine, &total(450)).start();
    assert_eq!(gateway.answer(&reserving(100)).status, 200);
    assert_eq!(settled(&gateway), 350.0);
    let reload = || {
        let reloaded = gateway.admin(&Ask::post("/api/reload").no_key());
        assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    };
    gateway
        .written
        .replace("name = \"acme\"", "name = \"renamed\"");
    reload();
    assert_eq!(gateway.answer(&reserving(100)).status, 200);
    let renamed = [("tenant", "renamed")];
    gateway.settled();
    assert_eq!(
        gateway.metric("streamgate_budget_remaining_units", &renamed),
        350.0
    );
    gateway
        .written
        .replace("name = \"renamed\"", "name = \"acme\"");
    reload();
    assert_eq!(remaining(&gateway), 350.0);
}

#[test]
fn an_hours_budget_tells_when_the_next_hour_begins() {
    let engine = cost::engine(3, 1);
    let gateway = with(&engine, "budget = { units = 50, period = \"hour\" }").start();
    let to_the_hour = || {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs();
        3600 - now % 3600
    };
    let before = to_the_hour();
    let refused = gateway.answer(&chat());
    let after = to_the_hour();
    refused.must_refuse(429, "budget_exhausted");
    assert_eq!(
        refused.error()["type"],
        "insufficient_quota",
        "{}",
        refused.text()
    );
    assert_eq!(refused.headers.get("x-should-retry"), Some("false"));
    let told: u64 = refused.headers.get("retry-after").unwrap().parse().unwrap();
    // the hour may have turned between the two looks at the clock
    let is_between = (after..=before).contains(&told) || after > before;
    assert!(
        is_between,
        "{told} s told; {before} s before, {after} s after"
    );
    let fits = gateway.answer(&reserving(40));
    assert_eq!(fits.status, 200, "{}", fits.text());
}

#[test]
fn budgets_of_two_tenants_are_two() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant(&total(103))
        .other(&total(1000))
        .start();
    assert_eq!(gateway.answer(&chat().id("one")).status, 200);
    gateway.settled();
    gateway
        .answer(&chat())
        .must_refuse_for_good(429, "budget_exhausted");
    assert_eq!(gateway.answer(&chat().id("one").key(OTHER_KEY)).status, 200);
    gateway.settled();
    let text = gateway.scrape();
    let left: Vec<(String, f64)> = metrics::parse(&text)
        .filter(|s| s.name == "streamgate_budget_remaining_units")
        .map(|s| (s.labels[0].1.to_owned(), s.value))
        .collect();
    let charged = |key| {
        gateway.ended_of(key, "one")["charged_units"]
            .as_f64()
            .unwrap()
    };
    let expected = [
        ("acme".to_owned(), 103.0 - charged(KEY)),
        ("other".to_owned(), 1000.0 - charged(OTHER_KEY)),
    ];
    assert_eq!(left, expected);
}
