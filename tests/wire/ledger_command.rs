//! `streamgate ledger list` and `show`: the same records, from the file, beside the running process.

use crate::support::ask::chat;
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::process::{run, run_in};
use crate::support::script::{holding, holding_some, tokens};
use crate::support::wait::{self, ms};
use crate::support::{OTHER_KEY, events};
use serde_json::Value;

fn gateway(engine: &Engine) -> Gateway {
    let gateway = Gateway::before(engine);
    for id in ["book-1", "book-2"] {
        assert!(events::is_done(&gateway.chat(id).rest()));
        gateway.ended(id);
    }
    gateway.send(&chat().id("book-2").key(OTHER_KEY)).rest();
    gateway.ended_of(OTHER_KEY, "book-2");
    gateway.settled();
    gateway
}

/// Waits until the command prints what is looked for: a settlement may be a moment under way.
#[track_caller]
fn prints(gateway: &Gateway, args: &[&str], look: impl Fn(&str) -> bool) -> String {
    wait::until(format!("{args:?} to print it"), || {
        let ran = gateway.command(args);
        if ran.code == 0 && look(&ran.out) {
            Ok(ran.out)
        } else {
            Err(ran.all())
        }
    })
}

#[test]
fn list_shows_every_request_with_its_tenant_and_state() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = gateway(&engine);
    let out = prints(&gateway, &["ledger", "list"], |out| out.contains("book-1"));
    for word in ["book-1", "book-2", "acme", "other", "COMPLETED"] {
        assert!(out.contains(word), "{word}: {out}");
    }
}

#[test]
fn list_is_filtered_by_tenant_and_state_and_comes_as_json() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = gateway(&engine);
    let rows = |args: &[&str]| {
        let all: Vec<&str> = ["ledger", "list", "--format", "jsonl"]
            .iter()
            .chain(args)
            .copied()
            .collect();
        let out = prints(&gateway, &all, |_| true);
        out.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect::<Vec<Value>>()
    };
    assert_eq!(rows(&[]).len(), 3);
    assert_eq!(rows(&["--tenant", "other"]).len(), 1);
    assert_eq!(rows(&["--tenant", "acme", "--state", "COMPLETED"]).len(), 2);
    assert_eq!(rows(&["--state", "FAILED"]).len(), 0);
    let row = rows(&["--tenant", "other"]).remove(0);
    assert_eq!(
        (row["request_id"].as_str(), row["tenant"].as_str()),
        (Some("book-2"), Some("other"))
    );
}

#[test]
fn show_prints_the_record() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = gateway(&engine);
    let out = prints(
        &gateway,
        &["ledger", "show", "book-1", "--format", "json"],
        |out| out.contains("COMPLETED"),
    );
    let shown: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}"));
    assert_eq!(shown, gateway.record("book-1"));
    let plain = prints(&gateway, &["ledger", "show", "book-1"], |out| {
        out.contains("COMPLETED")
    });
    assert!(
        plain.contains("book-1") && plain.contains("charged_units"),
        "{plain}"
    );
}

#[test]
fn an_unknown_or_ambiguous_id_is_exit_1() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = gateway(&engine);
    let unknown = gateway.command(&["ledger", "show", "never-was"]);
    assert_eq!(unknown.code, 1, "{}", unknown.all());
    assert!(unknown.all().contains("never-was"), "{}", unknown.all());
    let ambiguous = gateway.command(&["ledger", "show", "book-2"]);
    assert_eq!(ambiguous.code, 1, "{}", ambiguous.all());
    let named = gateway.command(&["ledger", "show", "book-2", "--tenant", "other"]);
    assert_eq!(named.code, 0, "{}", named.all());
}

#[test]
fn the_config_may_be_named_before_or_after_the_command() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = gateway(&engine);
    let file = gateway.written.file();
    for args in [
        ["-c", &file, "ledger", "list"],
        ["ledger", "list", "-c", &file],
    ] {
        let ran = run_in(gateway.written.scratch.path(), &args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.all());
        assert!(ran.out.contains("book-1"), "{}", ran.out);
    }
}

#[test]
fn a_running_request_is_on_the_list_before_its_engine_is_called() {
    let engine = Engine::scripted(holding(0));
    let gateway = Gateway::before(&engine);
    let stream = gateway.chat("open-1");
    engine.held(0);
    let ran = gateway.command(&["ledger", "show", "open-1"]);
    assert_eq!(
        ran.code,
        0,
        "not durable when the engine was called: {}",
        ran.all()
    );
    drop(stream);
}

#[test]
fn help_needs_no_config() {
    for args in [["ledger", "--help"], ["ledger", "help"]] {
        let ran = run(&args);
        assert_eq!(ran.code, 0, "{}", ran.all());
        assert!(
            ran.out.contains("streamgate ledger reconcile"),
            "{}",
            ran.out
        );
    }
}

#[test]
fn a_bill_that_contradicts_itself_settles_the_rest_beside_a_running_gateway() {
    let engine = Engine::scripted(holding_some(tokens(2, ms(0))));
    let budget = "budget = { units = 5000, period = \"total\" }";
    let mut gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant(budget)
        .start();
    let streams = ["lost-1", "lost-2"].map(|id| {
        let mut stream = gateway.send(&chat().id(id).set("user", "hold"));
        stream.says("t0 ");
        stream
    });
    gateway.process.kill();
    drop(streams);
    gateway.restart();
    let text = "request_id,units,tenant\nlost-1,10,acme\nlost-2,20,\nlost-1,11,\nlost-2,20,acme\n";
    gateway.written.scratch.write("bill.csv", text);
    let ran = gateway.command(&["ledger", "reconcile", "bill.csv"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    let words = [
        "bill.csv:2: lost-1 of acme: contradictory: 10 units here, 11 in line 4",
        "bill.csv:3: lost-2: charged 20 units",
        "bill.csv:4: lost-1: contradictory: 11 units here, 10 in line 2",
        "1 reconciled, 1 were before",
    ];
    assert_eq!(ran.out.lines().count(), words.len(), "{}", ran.out);
    for (line, words) in ran.out.lines().zip(words) {
        assert!(line.starts_with(words), "{words}: {}", ran.out);
    }
    let held = gateway.record("lost-1")["reserved_units"].as_f64().unwrap();
    let remaining = || gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]);
    wait::until("the gateway to hear of it", || {
        let now = remaining();
        (now == 5000.0 - 20.0 - held)
            .then_some(())
            .ok_or_else(|| format!("{now} remain"))
    });
}

#[test]
fn secrets_of_the_gateways_environment_are_asked_for_only_where_the_ledger_is_behind_one() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = gateway(&engine);
    let unset = "[[tenant]]\nname = \"third\"\nkeys = [{ env = \"SG_TEST_UNSET_A\" }, { env = \"SG_TEST_UNSET_B\" }]\n\n[[pool]]";
    gateway.written.replace("[[pool]]", unset);
    assert_eq!(gateway.command(&["-t"]).code, 64);
    prints(&gateway, &["ledger", "list"], |out| out.contains("book-1"));
    let url = "[ledger]\nurl = { env = \"SG_TEST_UNSET_URL\" }\n\n[[tenant]]\nname = \"third\"";
    gateway.written.replace("[[tenant]]\nname = \"third\"", url);
    let ran = gateway.command(&["ledger", "list"]);
    assert_eq!(ran.code, 64, "{}", ran.all());
    let of_the_url = ran
        .all()
        .lines()
        .any(|line| line.contains("ledger.url") && line.contains("no such variable"));
    assert!(of_the_url, "{}", ran.all());
}
