//! A SQLite ledger that another process holds locked, or whose disk is full: requests are refused or served as the config
//! says, nothing that runs is lost, and it goes on by itself. The same with PostgreSQL is in `postgres`.

use crate::support::ask::{chat, whole_chat};
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::process::Signal;
use crate::support::scratch::Scratch;
use crate::support::script::{holding_some, tokens};
use crate::support::wait::{self, ms};
use rusqlite::Connection;
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

const BUDGET: &str = "budget = { units = 5000, period = \"total\" }";

fn engine() -> Engine {
    Engine::scripted(holding_some(tokens(2, ms(0))))
}

fn gateway(ledger: &str, engine: &Engine) -> Gateway {
    Gateway::builder()
        .backend(engine.addr())
        .tenant(BUDGET)
        .extra(&format!("[ledger]\n{ledger}"))
        .start()
}

/// The lock that a writer holds, until it is dropped.
fn lock(gateway: &Gateway) -> Connection {
    let file = gateway.written.scratch.join("data/ledger.db");
    let db = Connection::open(file).unwrap();
    db.busy_timeout(ms(5000)).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    db
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

/// Every entry, once as many as are expected have ended; what they cost is what the budget lacks.
#[track_caller]
fn books(gateway: &Gateway, count: usize) -> Vec<Value> {
    gateway.settled();
    let entries = wait::until(format!("{count} entries to have ended"), || {
        let ran = gateway.command(&["ledger", "export"]);
        let entries: Vec<Value> = ran
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let ended = entries.iter().filter(|e| e["ended_at"].is_string()).count();
        if ended == count && entries.len() == count {
            Ok(entries)
        } else {
            Err(ran.all())
        }
    });
    let charged: f64 = entries
        .iter()
        .map(|e| e["charged_units"].as_f64().unwrap())
        .sum();
    let remaining = gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]);
    assert_eq!(remaining, 5000.0 - charged);
    entries
}

/// One line of the log now and then, not one for each try.
fn says_what_is_wrong(gateway: &Gateway, words: &str, advice: &str) {
    let log = gateway.process.output();
    let lines: Vec<&str> = log.lines().filter(|l| l.contains(words)).collect();
    assert!((1..=2).contains(&lines.len()), "{words}: {log}");
    for words in ["ledger.db", advice, "writes wait"] {
        assert!(lines[0].contains(words), "{}", lines[0]);
    }
}

/// With `on_error = "refuse"`: nothing is begun while the fault is there, and what was begun is settled after.
fn refuses_during<Fault>(
    fault: impl FnOnce(&Gateway) -> Fault,
    (gateway, engine): (&Gateway, &Engine),
    (words, advice): (&str, &str),
) {
    let mut stream = gateway.send(&chat().id("running").set("user", "hold"));
    stream.says("t0 ");
    let fault = fault(gateway);
    for n in 0..3 {
        gateway
            .answer(&whole_chat().id(&format!("refused-{n}")))
            .must_refuse(503, "ledger_unavailable");
    }
    waits_for_the_ledger(gateway, 0.0);
    stream.close();
    assert_eq!(gateway.ended("running")["state"], "CANCELLED");
    assert_eq!(engine.calls().len(), 1, "a refused request ran");
    says_what_is_wrong(gateway, words, advice);
    drop(fault);
    waits_for_the_ledger(gateway, 1.0);
    assert!(events::is_done(&gateway.chat("after").rest()));
    let states: Vec<Value> = books(gateway, 2)
        .into_iter()
        .map(|e| e["state"].clone())
        .collect();
    assert_eq!(states, ["CANCELLED", "COMPLETED"]);
}

const LOCKED: (&str, &str) = ("locked", "end the process that holds its lock");

#[test]
fn while_the_ledger_is_locked_requests_are_refused_and_what_runs_is_settled_later() {
    let engine = engine();
    let gateway = gateway("on_error = \"refuse\"", &engine);
    refuses_during(lock, (&gateway, &engine), LOCKED);
}

#[test]
fn while_the_ledger_is_locked_requests_are_served_where_the_config_says_so_and_booked_later() {
    let engine = engine();
    let gateway = gateway("on_error = \"serve\"", &engine);
    gateway.chat("before").rest();
    gateway.settled();
    let lock = lock(&gateway);
    for n in 0..3 {
        let answer = gateway.answer(&whole_chat().id(&format!("served-{n}")));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    waits_for_the_ledger(&gateway, 0.0);
    says_what_is_wrong(&gateway, LOCKED.0, LOCKED.1);
    drop(lock);
    waits_for_the_ledger(&gateway, 1.0);
    for entry in books(&gateway, 4) {
        assert_eq!(entry["state"], "COMPLETED", "{entry}");
    }
}

#[test]
fn what_cannot_be_written_before_the_end_is_told_and_brought_in_by_the_next_start() {
    let engine = engine();
    let mut gateway = gateway("on_error = \"refuse\"", &engine);
    let mut stream = gateway.send(&chat().id("running").set("user", "hold"));
    stream.says("t0 ");
    let lock = lock(&gateway);
    gateway.signal(Signal::Int);
    // it tries for ten seconds
    assert_eq!(gateway.process.wait(wait::seconds(60)), 1);
    let log = gateway.process.output();
    assert!(log.contains("brings them in"), "{log}");
    drop(lock);
    gateway.restart();
    let record = gateway.record("running");
    assert_eq!(record["ended_by"], "drain", "{record}");
    assert_eq!(gateway.metric("streamgate_ledger_unknown", &[]), 0.0);
    books(&gateway, 1);
}

#[test]
fn a_ledger_that_was_removed_in_use_is_missed_until_it_is_put_back() {
    let engine = engine();
    let gateway = gateway("on_error = \"refuse\"", &engine);
    gateway.chat("before").rest();
    gateway.settled();
    let file = gateway.written.scratch.join("data/ledger.db");
    let moved = gateway.written.scratch.join("moved.db");
    std::fs::rename(&file, &moved).unwrap();
    waits_for_the_ledger(&gateway, 0.0);
    gateway
        .answer(&whole_chat().id("refused"))
        .must_refuse(503, "ledger_unavailable");
    assert!(!file.exists(), "another ledger was begun");
    let log = gateway.process.output();
    assert!(log.contains("removed while in use"), "{log}");
    std::fs::rename(&moved, &file).unwrap();
    waits_for_the_ledger(&gateway, 1.0);
    gateway.chat("after").rest();
    books(&gateway, 2);
    gateway
        .answer(&chat().id("before"))
        .must_refuse(409, "request_already_shown");
}

/// A small disk in memory.
struct Disk(Scratch);

impl Disk {
    /// Nothing where whoever runs the test may not mount; why is printed.
    fn mount() -> Option<Disk> {
        let disk = Disk(Scratch::new());
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
            .arg(disk.0.path())
            .output()
            .expect("mount runs");
        eprint!("{}", String::from_utf8_lossy(&mounted.stderr));
        mounted.status.success().then_some(disk)
    }

    /// Takes all the room there is, until it is dropped.
    fn fill(&self) -> Ballast {
        let ballast = Ballast(self.0.join("ballast"));
        let mut file = File::create(&ballast.0).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        ballast
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0.path()).output();
        unmounted.ok();
    }
}

struct Ballast(PathBuf);

impl Drop for Ballast {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).ok();
    }
}

const FULL_DISK: &str =
    "ledger_faults::while_the_disk_is_full_requests_are_refused_and_what_runs_is_settled_later";

/// Tells a test that it runs where it is root in a namespace of its own.
const IN_NAMESPACE: &str = "STREAMGATE_TEST_IN_NAMESPACE";

#[test]
fn while_the_disk_is_full_requests_are_refused_and_what_runs_is_settled_later() {
    let Some(disk) = Disk::mount() else {
        return again_in_a_namespace(FULL_DISK);
    };
    let engine = engine();
    let file = disk.0.join("ledger.db");
    let gateway = gateway(&format!("url = \"sqlite:{}\"", file.display()), &engine);
    let full = ("the disk is full", "free space on its disk");
    refuses_during(|_| disk.fill(), (&gateway, &engine), full);
}

/// Runs a test once more where whoever runs it may mount, which takes no privilege but that of making namespaces.
fn again_in_a_namespace(test: &str) {
    assert!(
        std::env::var_os(IN_NAMESPACE).is_none(),
        "no disk can be mounted in a namespace either"
    );
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--"])
        .arg(std::env::current_exe().expect("the tests' own program"))
        .args(["--exact", test, "--nocapture"])
        .env(IN_NAMESPACE, "1")
        .output()
        .expect("unshare runs");
    let told = [ran.stdout, ran.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(
        ran.status.success() && told.contains("1 passed"),
        "no small disk can be mounted here; run this test as a root who may mount. In a namespace: {told}"
    );
}
