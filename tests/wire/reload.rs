//! Reloading by SIGHUP: the whole file or nothing; what runs and what waits goes on by the rules it came by, and is counted.

use crate::support::ask::{Ask, chat};
use crate::support::client::Stream;
use crate::support::config::Builder;
use crate::support::dialect::Dialect;
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::process::{Process, Signal};
use crate::support::turns::{ONE_SLOT, Turns, lines_up, lines_up_as, must_be_served, named};
use crate::support::wait;
use crate::support::{KEY, OTHER_KEY, events, sha256};

const NEW_KEY: &str = "sk-test-acme-new-0004";

/// How often the log says so.
fn told(gateway: &Gateway, what: &str) -> usize {
    gateway.process.output().matches(what).count()
}

/// Signals, and waits until the outcome is told.
#[track_caller]
fn hup(gateway: &Gateway, outcome: &str) {
    let before = told(gateway, outcome);
    gateway.signal(Signal::Hup);
    wait::until(format!("the log to say: {outcome}"), || {
        match told(gateway, outcome) > before {
            true => Ok(()),
            false => Err(gateway.process.output()),
        }
    });
}

/// Changes the file and puts it in force.
#[track_caller]
fn change(gateway: &Gateway, from: &str, to: &str) {
    gateway.written.replace(from, to);
    hup(gateway, "the config was reloaded");
}

fn with(engine: &Engine, pool: &str) -> Builder {
    Gateway::builder().backend(engine.addr()).pool(pool)
}

#[test]
fn keys_rotate_and_a_running_stream_does_not_notice() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, "").start();
    let status = |key: &str| gateway.answer(&chat().key(key)).status;
    let mut running = turns.holds(&gateway, &chat(), "runs");
    assert_eq!((status(KEY), status(NEW_KEY)), (200, 401));
    let (old, new) = (sha256(KEY), sha256(NEW_KEY));
    let both = format!("{{ sha256 = \"{old}\" }}, {{ sha256 = \"{new}\" }}");
    change(&gateway, &format!("{{ sha256 = \"{old}\" }}"), &both);
    assert_eq!((status(KEY), status(NEW_KEY)), (200, 200), "side by side");
    change(&gateway, &both, &format!("{{ sha256 = \"{new}\" }}"));
    assert_eq!(
        (status(KEY), status(NEW_KEY)),
        (401, 200),
        "the new one alone"
    );
    turns.let_go();
    must_be_served(&mut running, Dialect::Chat);
    let record = gateway.ended_of(NEW_KEY, "runs");
    assert_eq!(record["state"], "COMPLETED", "{record}");
    gateway.settled();
}

#[test]
fn a_bad_file_changes_nothing_and_each_finding_is_logged_at_its_place() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, "").start();
    let good = gateway.written.text();
    let hash = sha256(KEY);
    let bad = good.replace(&hash, &sha256(NEW_KEY)).replace(
        "models = [\"m\"]",
        "models = [\"m2\"]\nmodles = 1\nbalance = \"fastest\"",
    );
    gateway.written.scratch.write("streamgate.toml", &bad);
    hup(&gateway, "the old one stays in force");
    let log = wait::until("the findings", || {
        let log = gateway.process.output();
        match log.contains("fastest") {
            true => Ok(log),
            false => Err(log),
        }
    });
    let first = bad.lines().position(|l| l == "modles = 1").unwrap() + 1;
    for place in [
        format!("{}:{first}:1:", gateway.written.file()),
        format!("{}:{}:", gateway.written.file(), first + 1),
    ] {
        assert!(log.contains(&place), "no {place} in {log}");
    }
    assert_eq!(gateway.answer(&chat()).status, 200);
    assert_eq!(gateway.answer(&chat().key(NEW_KEY)).status, 401);
    gateway
        .answer(&chat().set("model", "m2"))
        .must_refuse(404, "model_not_found");
    // a file that is not there, one that is no text, one that was not written yet
    for content in [None, Some(b"\xff\xfe".as_slice()), Some(b"")] {
        match content {
            Some(bytes) => drop(gateway.written.scratch.write("streamgate.toml", bytes)),
            None => std::fs::remove_file(gateway.written.file()).unwrap(),
        }
        hup(&gateway, "the old one stays in force");
        assert_eq!(gateway.answer(&chat()).status, 200);
    }
    gateway.written.scratch.write("streamgate.toml", &good);
    hup(&gateway, "the config was reloaded");
    assert_eq!(gateway.answer(&chat()).status, 200);
}

#[test]
fn a_running_stream_keeps_the_rules_it_was_admitted_by() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, "stream = { heartbeat = \"100ms\" }")
        .tenant("charge_cancelled = \"generated\"")
        .start();
    let mut running = turns.holds(&gateway, &chat(), "runs");
    running.says("t0 ");
    change(&gateway, "heartbeat = \"100ms\"", "heartbeat = \"1h\"");
    running.read_until(|body| events::count(body, b": keepalive\n") >= 3);
    // its pool, its backend and its tenant are taken away
    let text = gateway.written.text();
    let without = text
        .replace("name = \"acme\"", "name = \"someone\"")
        .replace(&sha256(KEY), &sha256(NEW_KEY))
        .replace(
            "name = \"p\"\nmodels = [\"m\"]",
            "name = \"q\"\nmodels = [\"m2\"]",
        )
        .replace(engine.addr(), "127.0.0.1:1");
    gateway.written.scratch.write("streamgate.toml", &without);
    hup(&gateway, "the config was reloaded");
    assert_eq!(gateway.answer(&chat()).status, 401);
    turns.let_go();
    must_be_served(&mut running, Dialect::Chat);
    gateway.settled();
    let line = gateway.access_line("runs");
    assert_eq!(line["tenant"], "acme", "{line}");
    assert_eq!(line["pool"], "p", "{line}");
    assert_eq!(line["state"], "COMPLETED", "{line}");
}

#[test]
fn slots_in_use_are_counted_under_the_new_bounds() {
    for (whose, code) in [("pool", "pool_slots_full"), ("tenant", "tenant_slots_full")] {
        let turns = Turns::default();
        let engine = turns.engine();
        let builder = Gateway::builder().backend(engine.addr());
        let gateway = match whose {
            "pool" => builder.pool("max_streams = 3"),
            _ => builder.tenant("max_streams = 3"),
        }
        .start();
        let mut running: Vec<Stream> = (0..3)
            .map(|n| turns.holds(&gateway, &chat(), &format!("runs-{n}")))
            .collect();
        change(&gateway, "max_streams = 3", "max_streams = 2");
        gateway.answer(&chat()).must_refuse(429, code);
        turns.let_go();
        wait::until_true("one to end", || {
            gateway.metric("streamgate_slots", &[("pool", "p")]) == 2.0
        });
        gateway.answer(&chat()).must_refuse(429, code);
        change(&gateway, "max_streams = 2", "max_streams = 4");
        let more: Vec<Stream> = (3..5)
            .map(|n| turns.holds(&gateway, &chat(), &format!("runs-{n}")))
            .collect();
        gateway.answer(&chat()).must_refuse(429, code);
        (0..4).for_each(|_| turns.let_go());
        running.extend(more);
        for stream in &mut running {
            must_be_served(stream, Dialect::Chat);
        }
        gateway.settled();
    }
}

#[test]
fn a_pool_that_leaves_and_comes_back_still_counts_what_runs_in_it() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, "max_streams = 1").start();
    let mut running = turns.holds(&gateway, &chat(), "runs");
    change(
        &gateway,
        "name = \"p\"\nmodels = [\"m\"]",
        "name = \"q\"\nmodels = [\"m2\"]",
    );
    // a reload between the two forgets nothing
    hup(&gateway, "the config was reloaded");
    change(
        &gateway,
        "name = \"q\"\nmodels = [\"m2\"]",
        "name = \"p\"\nmodels = [\"m\"]",
    );
    gateway.answer(&chat()).must_refuse(429, "pool_slots_full");
    turns.let_go();
    must_be_served(&mut running, Dialect::Chat);
    gateway.settled();
    assert_eq!(gateway.answer(&chat()).status, 200);
}

#[test]
fn a_backend_that_leaves_and_comes_back_still_counts_what_runs_on_it() {
    let turns = Turns::default();
    let (engine, other) = (turns.engine(), turns.engine());
    let bounded = |addr: &str| format!("backends = [{{ addr = \"{addr}\", max_streams = 1 }}]");
    let pool = format!(
        "[[pool]]\nname = \"b\"\nmodels = [\"b\"]\n{}\n",
        bounded(engine.addr())
    );
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .extra(&pool)
        .start();
    let ask = chat().set("model", "b");
    let mut running = turns.holds(&gateway, &ask, "runs");
    change(&gateway, &bounded(engine.addr()), &bounded(other.addr()));
    must_be_served(&mut gateway.send(&ask), Dialect::Chat);
    assert_eq!(other.calls().len(), 1);
    change(&gateway, &bounded(other.addr()), &bounded(engine.addr()));
    gateway.answer(&ask).must_refuse(429, "pool_slots_full");
    turns.let_go();
    must_be_served(&mut running, Dialect::Chat);
    gateway.settled();
    must_be_served(&mut gateway.send(&ask), Dialect::Chat);
}

#[test]
fn those_in_line_keep_their_places_and_a_raised_bound_lets_them_go_on_at_once() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, ONE_SLOT).start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let mut waiting: Vec<Stream> = (0..3)
        .map(|n| lines_up(&gateway, &chat(), &format!("w{n}")))
        .collect();
    change(&gateway, "max_len = 64", "max_len = 3");
    gateway.answer(&chat()).must_refuse(429, "queue_full");
    assert_eq!(gateway.metric("streamgate_queue_length", &[]), 3.0);
    // nobody ends: it is the second slot that brings their turns
    change(&gateway, "max_streams = 1", "max_streams = 2");
    for stream in &mut waiting {
        must_be_served(stream, Dialect::Chat);
    }
    assert_eq!(turns.order(), ["hold", "w0", "w1", "w2"]);
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    gateway.settled();
}

#[test]
fn a_tenants_raised_bound_brings_its_turns_too() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, "queue = { max_wait = \"20s\", max_len = 64 }")
        .tenant("max_streams = 1")
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let mut waiting = lines_up(&gateway, &chat(), "waits");
    change(&gateway, "max_streams = 1", "max_streams = 2");
    must_be_served(&mut waiting, Dialect::Chat);
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    gateway.settled();
}

#[test]
fn those_in_line_are_served_though_their_queue_pool_or_tenant_is_taken_away() {
    let cases = [
        ("queue = { max_wait = \"20s\", max_len = 64 }", ""),
        (
            "name = \"p\"\nmodels = [\"m\"]",
            "name = \"q\"\nmodels = [\"m2\"]",
        ),
        ("name = \"acme\"", "name = \"renamed\""),
        ("max_streams = 1", ""),
    ];
    for (from, to) in cases {
        let turns = Turns::default();
        let engine = turns.engine();
        let gateway = with(&engine, ONE_SLOT)
            .tenant("budget = { units = 100000, period = \"total\" }")
            .start();
        let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), "hold");
        let mut waiting: Vec<Stream> = (0..2)
            .map(|n| lines_up(&gateway, &chat(), &format!("w{n}")))
            .collect();
        waiting.push(lines_up_as(OTHER_KEY, &gateway, &chat(), "w2"));
        change(&gateway, from, to);
        turns.let_go();
        must_be_served(&mut hold, Dialect::Chat);
        for stream in &mut waiting {
            must_be_served(stream, Dialect::Chat);
        }
        gateway.settled();
        assert_eq!(turns.order().len(), 4, "{from}");
    }
}

#[test]
fn a_client_may_leave_its_place_after_its_pool_was_taken_away() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, ONE_SLOT).start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let waiting = lines_up(&gateway, &chat(), "waits");
    change(
        &gateway,
        "name = \"p\"\nmodels = [\"m\"]",
        "name = \"q\"\nmodels = [\"m2\"]",
    );
    waiting.reset();
    let record = gateway.ended("waits");
    assert_eq!(record["ended_by"], "client_closed", "{record}");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    gateway.settled();
    assert_eq!(turns.order(), ["hold"]);
}

#[test]
fn what_a_running_process_cannot_change_is_named_and_the_rest_is_in_force() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, "").server("drain_timeout = \"1m\"").start();
    let folder = gateway.written.scratch.path().display().to_string();
    gateway.written.replace("threads = 1", "threads = 2");
    gateway.written.replace(
        &format!("data_dir = \"{folder}/data\""),
        &format!("data_dir = \"{folder}/data2\""),
    );
    gateway.written.replace(
        &format!("addr = \"{}\"", gateway.written.public),
        "addr = \"127.0.0.1:1\"",
    );
    gateway
        .written
        .replace("drain_timeout = \"1m\"", "drain_timeout = \"2m\"");
    change(&gateway, "models = [\"m\"]", "models = [\"m2\"]");
    let log = gateway.process.output();
    for key in [
        "server.threads",
        "server.data_dir",
        "listen",
        "server.drain_timeout",
    ] {
        let named = log
            .lines()
            .any(|l| l.contains(key) && l.contains("needs an upgrade"));
        assert!(named, "{key} is not named: {log}");
    }
    for key in ["server.pid_file", "admin.addr", "log.access"] {
        let named = log
            .lines()
            .any(|l| l.contains(key) && l.contains("needs an upgrade"));
        assert!(!named, "{key} is named: {log}");
    }
    assert_eq!(gateway.answer(&chat().set("model", "m2")).status, 200);
    gateway.answer(&chat()).must_refuse(404, "model_not_found");
}

#[test]
fn many_reloads_while_many_run_lose_nobody() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(
        &engine,
        "max_streams = 3\nqueue = { max_wait = \"20s\", max_len = 64 }",
    )
    .threads(0)
    .start();
    std::thread::scope(|scope| {
        for client in 0..6 {
            let gateway = &gateway;
            scope.spawn(move || {
                for n in 0..30 {
                    let name = format!("many-{client}-{n}");
                    must_be_served(&mut gateway.send(&named(&chat(), &name)), Dialect::Chat);
                }
            });
        }
        scope.spawn(|| {
            for n in 0..20 {
                let (from, to) = match n % 2 {
                    0 => ("max_streams = 3", "max_streams = 1"),
                    _ => ("max_streams = 1", "max_streams = 3"),
                };
                gateway.written.replace(from, to);
                let reloaded = gateway.admin(&Ask::post("/api/reload").no_key());
                assert_eq!(reloaded.status, 200, "{}", reloaded.text());
            }
        });
    });
    gateway.settled();
    assert_eq!(turns.order().len(), 180);
}

#[test]
fn a_pools_key_is_read_anew_and_goes_upstream_from_then_on() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, "api_key = { file = \"key\" }")
        .file("key", "sk-upstream-one\n")
        .start();
    let shown = |number: usize| {
        assert_eq!(gateway.answer(&chat()).status, 200);
        let headers = engine.call(number).headers;
        headers.get("authorization").unwrap_or_default().to_owned()
    };
    assert_eq!(shown(0), "Bearer sk-upstream-one");
    gateway.written.scratch.write("key", "sk-upstream-two\n");
    assert_eq!(shown(1), "Bearer sk-upstream-one", "before the reload");
    hup(&gateway, "the config was reloaded");
    assert_eq!(shown(2), "Bearer sk-upstream-two");
    assert!(
        !gateway.process.output().contains("sk-upstream"),
        "a key is in the log"
    );
}

#[test]
fn many_reloads_at_once_are_done_one_after_the_other() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = with(&engine, ONE_SLOT).start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let mut waiting = lines_up(&gateway, &chat(), "waits");
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let reloaded = gateway.admin(&Ask::post("/api/reload").no_key());
                assert_eq!(reloaded.status, 200, "{}", reloaded.text());
                gateway.signal(Signal::Hup);
            });
        }
    });
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    must_be_served(&mut waiting, Dialect::Chat);
    gateway.settled();
}

/// A start with a large ledger takes a while, and whoever rotates logs or keys does not look for it.
#[test]
fn a_hang_up_during_the_start_does_not_end_it() {
    for _ in 0..10 {
        let written = Gateway::builder().backend("127.0.0.1:1").write();
        let folder = written.scratch.path();
        let mut process = Process::start(&["-c", &written.file()], folder, "stderr.log");
        let access_log = written.scratch.join("access.log");
        wait::until_true("the start to begin", || access_log.exists());
        wait::until("it to serve", || {
            process.must_run();
            process.signal(Signal::Hup);
            let output = process.output();
            if output.contains("serves on") {
                Ok(())
            } else {
                Err(output)
            }
        });
        process.must_run();
    }
}
