//! `kill -9` two hundred times under load: every request that the engine saw has one entry, settled or unknown, and
//! after each start the budget is what a recount of the ledger leaves.
//!
//! The seed makes the moments; what runs in them is the machine's. Whatever its speed, at each kill one request has come
//! whole and one is held by the engine.

use crate::support::ask::chat;
use crate::support::client::Stream;
use crate::support::config::Builder;
use crate::support::database::Database;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::random::Random;
use crate::support::script::{holding, tokens};
use crate::support::wait::{self, ms, seconds};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const KILLS: usize = 200;
const CLIENTS: usize = 6;
const LIMIT: f64 = 1e9;
/// What a request costs that completes: five units of prompt, three of output.
const COST: f64 = 8.0;
/// Starts after which the budget is recounted.
const RECOUNT_EVERY: usize = 10;

/// The ids that the engine was asked for, in order.
type Log = Arc<Mutex<Vec<String>>>;

fn engine() -> (Engine, Log) {
    let (log, run, hold) = (Log::default(), tokens(3, ms(1)), holding(1));
    let noted = log.clone();
    let engine = Engine::scripted(move |call| {
        let id = call.member("user");
        noted.lock().unwrap().push(id.clone());
        match is_held(&id) {
            true => hold(call),
            false => run(call),
        }
    });
    (engine, log)
}

/// The request that the engine holds until this round's kill.
fn held(round: usize) -> String {
    format!("r{round}-held")
}

fn is_held(id: &str) -> bool {
    id.ends_with("-held")
}

fn builder(engine: &Engine) -> Builder {
    let budget = format!("budget = {{ units = {LIMIT}, period = \"total\" }}");
    Gateway::builder().backend(engine.addr()).tenant(&budget)
}

/// Sends requests until the gateway is gone, and notes the ids of those whose answer came whole.
fn load(addr: &str, name: &str, over: &AtomicBool, whole: &Mutex<Vec<String>>) {
    for number in 0.. {
        let id = format!("{name}-{number}");
        match came_whole(addr, &id, number % 3 == 0) {
            Some(true) => whole.lock().unwrap().push(id),
            Some(false) => {}
            None => break,
        }
        if over.load(Ordering::SeqCst) {
            break;
        }
    }
}

/// Nothing where nobody listens.
fn came_whole(addr: &str, id: &str, as_document: bool) -> Option<bool> {
    // Longer than a round may take: no client leaves before the kill.
    let mut stream = Stream::on(TcpStream::connect(addr).ok()?).patience(seconds(60));
    let ask = chat().id(id).set("user", id).set("stream", !as_document);
    let answer = stream.try_write(&ask.bytes());
    let answer = answer.and_then(|()| stream.try_answer());
    Some(answer.is_ok_and(|a| a.status == 200 && (as_document || events::is_done(&a.body))))
}

/// One round: load, and a kill once the engine has seen a few requests more. The ids whose answer came whole.
fn kill_under_load(
    gateway: &mut Gateway,
    log: &Log,
    round: usize,
    random: &mut Random,
) -> Vec<String> {
    let (over, whole) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let until = log.lock().unwrap().len() + 2 + random.below(12);
    let moment = Duration::from_micros(random.below(4000) as u64);
    let addr = gateway.addr().to_owned();
    std::thread::scope(|scope| {
        let (addr, over, whole) = (&addr, &over, &whole);
        scope.spawn(move || came_whole(addr, &held(round), false));
        for client in 0..CLIENTS {
            scope.spawn(move || load(addr, &format!("r{round}-c{client}"), over, whole));
        }
        wait::within(seconds(20), "the engine to have work", || {
            let seen = log.lock().unwrap();
            let (count, holds) = (seen.len(), seen.contains(&held(round)));
            let came = whole.lock().unwrap().len();
            match holds && count >= until && came > 0 {
                true => Ok(()),
                false => Err(format!(
                    "{count} of {until} seen, one held: {holds}, {came} whole"
                )),
            }
        });
        std::thread::sleep(moment);
        gateway.process.kill();
        over.store(true, Ordering::SeqCst);
    });
    whole.into_inner().unwrap()
}

/// The entries by id; fails where an id has two.
fn entries(gateway: &Gateway) -> BTreeMap<String, Value> {
    let ran = gateway.command(&["ledger", "export"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut all = BTreeMap::new();
    for line in ran.out.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let id = entry["request_id"].as_str().unwrap().to_owned();
        let twice = all.insert(id, entry);
        assert_eq!(twice, None, "an id with two entries");
    }
    all
}

fn is_unknown(entry: &Value) -> bool {
    entry["usage_source"] == "unknown"
}

fn units(entry: &Value, member: &str) -> f64 {
    entry[member].as_f64().unwrap()
}

/// Nothing runs: the metrics must say what the entries do.
#[track_caller]
fn must_equal_a_recount(gateway: &Gateway) -> BTreeMap<String, Value> {
    wait::until("the accounts to equal a recount of the ledger", || {
        let entries = entries(gateway);
        let unknown = entries.values().filter(|e| is_unknown(e)).count() as f64;
        let taken: f64 = entries
            .values()
            .map(|e| match is_unknown(e) {
                true => units(e, "reserved_units"),
                false => units(e, "charged_units"),
            })
            .sum();
        let told = [
            gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]),
            gateway.metric("streamgate_ledger_unknown", &[]),
            gateway.metric("streamgate_ledger_open", &[]),
        ];
        let counted = [LIMIT - taken, unknown, 0.0];
        if told == counted {
            Ok(entries)
        } else {
            Err(format!("told {told:?}, counted {counted:?}"))
        }
    })
}

fn must_have_ended(id: &str, entry: &Value, came_whole: bool) {
    if is_unknown(entry) {
        assert_eq!(entry["ended_by"], "crash", "{entry}");
        assert_eq!(entry["state"], "FAILED", "{entry}");
        assert_eq!(
            units(entry, "charged_units"),
            0.0,
            "held and charged: {entry}"
        );
        assert!(units(entry, "reserved_units") > 0.0, "held: {entry}");
        return;
    }
    assert!(entry["ended_at"].is_string(), "{entry}");
    if entry["state"] == "COMPLETED" {
        assert_eq!(units(entry, "charged_units"), COST, "{entry}");
    }
    assert!(
        !came_whole || entry["state"] == "COMPLETED",
        "{id} came whole: {entry}"
    );
}

#[track_caller]
fn survives(builder: Builder, log: &Log) {
    let mut gateway = builder.start();
    let mut random = Random::new(9);
    let mut whole = BTreeSet::new();
    for round in 1..=KILLS {
        whole.extend(kill_under_load(&mut gateway, log, round, &mut random));
        gateway.restart();
        if round % RECOUNT_EVERY == 0 {
            must_equal_a_recount(&gateway);
        }
    }
    let entries = must_equal_a_recount(&gateway);
    let seen = log.lock().unwrap().clone();
    for id in &seen {
        let entry = entries.get(id);
        let entry = entry.unwrap_or_else(|| panic!("the engine saw {id}, the ledger did not"));
        assert!(
            is_unknown(entry) || units(entry, "charged_units") > 0.0,
            "the engine saw {id}, nobody pays: {entry}"
        );
    }
    let different: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(different.len(), seen.len(), "a request ran twice");
    for (id, entry) in &entries {
        must_have_ended(id, entry, whole.contains(id));
    }
    let unknown = entries.values().filter(|e| is_unknown(e)).count();
    eprintln!(
        "{KILLS} kills: the engine saw {} requests, the ledger {}, {unknown} of them unknown; {} came whole",
        seen.len(),
        entries.len(),
        whole.len()
    );
    for round in 1..=KILLS {
        let (id, entry) = (held(round), entries.get(&held(round)));
        assert!(
            entry.is_some_and(is_unknown),
            "{id} ran when its gateway was killed: {entry:?}"
        );
    }
}

#[test]
fn two_hundred_kills_under_load_lose_nothing_and_book_nothing_twice_in_sqlite() {
    let (engine, log) = engine();
    survives(builder(&engine), &log);
}

#[test]
fn two_hundred_kills_under_load_lose_nothing_and_book_nothing_twice_in_postgresql() {
    let (engine, log) = engine();
    let database = Database::new();
    let ledger = format!("[ledger]\nurl = \"{}\"", database.url());
    survives(builder(&engine).extra(&ledger), &log);
}
