//! The ledger command, from its words to its output and exit code.

mod bills;
mod reports;

use super::*;
use crate::budget::Units;
use crate::clock;
use crate::ledger::command::run_on;
use crate::ledger::store::Write;
use crate::record::{Attempt, EndedBy, Outcome, Record, State, UsageSource};
use crate::tenant::TenantName;
use bills::Bill;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// What a command printed, and its exit code.
struct Printed {
    code: u8,
    out: String,
    err: String,
}

impl Printed {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}: {}", self.out))
    }

    fn lines(&self) -> Vec<&str> {
        self.out.lines().collect()
    }
}

/// Runs a command, with the config's tenant `acme`.
fn ledger(ground: &Ground, line: &str) -> Printed {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run_on(&args, &ground.config(), &[&acme()], &mut out, &mut err);
    Printed {
        code,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

fn write(ground: &Ground, writes: Vec<Write>) -> Held {
    let (mut store, _) = ground.join();
    store.commit(&writes, clock::now()).unwrap();
    store
}

fn settle(record: Record) -> Write {
    Write::Settle(Arc::new(ended(record)))
}

/// Two of acme's that ended, one of other's, and one of acme's that a crash left.
fn known(ground: &Ground) {
    let mut theirs = complete(&running("theirs"));
    theirs.tenant = TenantName::new("other");
    theirs.model = "big, \"one\"".into();
    let mut done = complete(&running("done"));
    done.attempts = vec![Attempt {
        backend: "10.0.0.1:80".into(),
        outcome: Outcome::Ok,
        status: Some(200),
    }];
    let lost = Write::Open(Box::new(opening("lost")), 1);
    ground.kill(write(
        ground,
        vec![
            settle(done),
            settle(failed(&running("bad"), 3)),
            settle(theirs),
            lost,
        ],
    ));
    write(ground, vec![]).close();
}

#[test]
fn list_names_the_newest_first_and_filters() {
    on_each(|ground| {
        known(ground);
        let all = ledger(ground, "list");
        assert_eq!((all.code, all.err.as_str()), (0, ""));
        let ids: Vec<_> = all.lines()[1..]
            .iter()
            .map(|l| l.split_whitespace().nth(2).unwrap())
            .collect();
        assert_eq!(ids, ["lost", "theirs", "bad", "done"]);
        assert!(all.lines()[4].contains("COMPLETED") && all.lines()[4].contains("acme"));
        let ids = |line: &str| -> Vec<String> {
            let printed = ledger(ground, line);
            let rows = printed.json();
            let rows = rows.as_array().unwrap();
            rows.iter()
                .map(|r| r["request_id"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(ids("list --format json --tenant other"), ["theirs"]);
        assert_eq!(ids("list --format json --state failed"), ["lost", "bad"]);
        assert_eq!(ids("list --format json --state unknown"), ["lost"]);
        assert_eq!(ids("list --format json --state open"), [""; 0]);
        assert_eq!(ids("list --format json --limit 2"), ["lost", "theirs"]);
        let cut = ledger(ground, "list --limit 3");
        assert_eq!((cut.code, cut.lines().len()), (0, 4));
        assert!(cut.err.contains("newest 3"), "{}", cut.err);
        assert_eq!(ledger(ground, "list --limit 4").err, "");
        assert_eq!(
            ids("list --format json --tenant acme --state COMPLETED"),
            ["done"]
        );
    });
}

#[test]
fn a_long_list_is_read_in_pages_up_to_its_limit() {
    on_each(|ground| {
        let records = (0..1200).map(|n| settle(complete(&running(&format!("r{n}")))));
        write(ground, records.collect()).close();
        let newest = |n: usize| ledger(ground, &format!("list --format jsonl --limit {n}"));
        assert_eq!(newest(700).lines().len(), 700);
        assert!(newest(700).lines()[699].contains("\"r500\""));
        assert_eq!(newest(5000).lines().len(), 1200);
        assert_eq!(ledger(ground, "list").lines().len(), 51);
        assert_eq!(ledger(ground, "export").lines().len(), 1200);
    });
}

#[test]
fn show_prints_the_whole_record() {
    on_each(|ground| {
        known(ground);
        let shown = ledger(ground, "show done");
        assert_eq!(shown.code, 0);
        let record: Record = serde_json::from_value(shown.json()).unwrap();
        assert_eq!(
            (record.charged_units, record.attempts.len()),
            (Units(40), 1)
        );
        let lost = ledger(ground, "show lost").json();
        assert_eq!(
            (&lost["ended_by"], &lost["usage_source"]),
            (&"crash".into(), &"unknown".into())
        );
    });
}

#[test]
fn an_id_nobody_has_exits_1_and_is_named() {
    on_each(|ground| {
        known(ground);
        for line in ["show never-was", "show done --tenant other", "show a/b"] {
            let printed = ledger(ground, line);
            let id = line.split_whitespace().nth(1).unwrap();
            assert_eq!(printed.code, 1, "{line}");
            assert!(
                printed.out.is_empty() && printed.err.contains(id),
                "{line}: {}",
                printed.err
            );
        }
    });
}

#[test]
fn an_id_of_two_tenants_needs_its_tenant() {
    on_each(|ground| {
        known(ground);
        let mut theirs = complete(&running("done"));
        theirs.tenant = TenantName::new("other");
        theirs.charged_units = Units(99);
        write(ground, vec![settle(theirs)]).close();
        let printed = ledger(ground, "show done");
        assert_eq!(printed.code, 1);
        assert!(
            printed.err.contains("acme") && printed.err.contains("--tenant"),
            "{}",
            printed.err
        );
        assert_eq!(
            ledger(ground, "show done --tenant other").json()["charged_units"],
            99
        );
    });
}

#[test]
fn an_export_in_either_format_holds_every_member_of_every_record() {
    on_each(|ground| {
        known(ground);
        let jsonl = ledger(ground, "export");
        let records: Vec<Value> = jsonl
            .lines()
            .iter()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        let csv = ledger(ground, "export --format csv");
        let header: Vec<&str> = csv.lines()[0].split(',').collect();
        for record in &records {
            for member in record.as_object().unwrap().keys() {
                assert!(header.contains(&member.as_str()), "{member} is no column");
            }
        }
        assert!(csv.out.contains("\"big, \"\"one\"\"\""), "{}", csv.out);
        assert!(
            csv.out.contains("\"[{\"\"backend\"\":\"\"10.0.0.1:80\"\""),
            "{}",
            csv.out
        );
        assert_eq!(csv.lines().len(), 1 + records.len());
    });
}

#[test]
fn reading_works_beside_a_gateway_and_sees_what_runs() {
    on_each(|ground| {
        let _store = write(ground, vec![Write::Open(Box::new(opening("r")), 1)]);
        assert_eq!(ledger(ground, "show r").json()["state"], "QUEUED");
        assert_eq!(ledger(ground, "list --state open").lines().len(), 2);
        assert_eq!(
            ledger(ground, "report --format json").json(),
            Value::Array(vec![])
        );
    });
}

#[test]
fn a_record_that_cannot_be_read_is_named_and_the_others_are_shown() {
    on_each(|ground| {
        known(ground);
        ground.rows("UPDATE entry SET record = '{' WHERE request_id = 'bad'");
        let list = ledger(ground, "list");
        assert_eq!((list.code, list.lines().len()), (0, 4));
        assert!(list.err.contains("cannot be read"), "{}", list.err);
        for line in ["show bad", "show bad --tenant acme"] {
            let shown = ledger(ground, line);
            assert!(
                shown.code == 1 && shown.err.contains("cannot be read"),
                "{}",
                shown.err
            );
        }
        let others = ledger(ground, "show bad --tenant other");
        assert!(
            others.err.contains("no entry of tenant \"other\""),
            "{}",
            others.err
        );
        let export = ledger(ground, "export");
        assert_eq!(
            (export.code, export.lines().len()),
            (1, 3),
            "an export with a hole does not exit 0"
        );
    });
}

#[test]
fn no_ledger_yet_is_one_clear_line_and_makes_no_file() {
    on_each(|ground| {
        let scratch = Scratch::new();
        let bill = scratch.join("bill.csv");
        std::fs::write(&bill, "request_id,units\nr,1\n").unwrap();
        let reconcile = format!("reconcile {}", bill.display());
        for line in ["list", "show r", "report", "export", &reconcile] {
            let printed = ledger(ground, line);
            assert_eq!(
                (printed.code, printed.err.lines().count()),
                (1, 1),
                "{line}: {}",
                printed.err
            );
        }
        assert!(ground.is_empty(), "reading made a ledger");
    });
}

#[test]
fn a_tenant_that_nobody_has_is_no_empty_answer() {
    on_each(|ground| {
        let bill = Bill::of("request_id,units\nlost,37\n");
        let lines = |name: &str| {
            let reconcile = format!("reconcile {} --dry-run --tenant {name}", bill.path());
            let show = format!("show done --tenant {name}");
            let others = ["list", "report", "export"].map(|w| format!("{w} --tenant {name}"));
            others
                .into_iter()
                .chain([show, reconcile])
                .collect::<Vec<_>>()
        };
        write(ground, vec![]).close();
        for line in &lines("acme")[..3] {
            let printed = ledger(ground, line);
            assert_eq!((printed.code, printed.err.as_str()), (0, ""), "{line}");
        }
        known(ground);
        for line in lines("acmee") {
            let printed = ledger(ground, &line);
            assert_eq!((printed.code, printed.out.as_str()), (1, ""), "{line}");
            assert!(
                printed.err.contains("\"acmee\"") && printed.err.contains("the config has acme"),
                "{line}: {}",
                printed.err
            );
        }
        for line in &lines("other")[..3] {
            assert_eq!(ledger(ground, line).code, 0, "the ledger knows it: {line}");
        }
        ground.rows("DELETE FROM entry");
        assert_eq!(
            ledger(ground, "list --tenant other").code,
            0,
            "its sums are kept"
        );
    });
}

#[test]
fn words_that_make_no_command_exit_64_with_the_usage() {
    on_each(|ground| {
        known(ground);
        for line in ["", "lists", "show", "list --format xml"] {
            let printed = ledger(ground, line);
            assert_eq!(printed.code, 64, "{line}");
            assert!(
                printed.err.contains("usage: streamgate ledger list"),
                "{line}: {}",
                printed.err
            );
        }
        let help = ledger(ground, "--help");
        assert!(help.code == 0 && help.out.contains("usage:"));
    });
}

/// A reader that stops reading, as `head` does.
struct Closed;

impl io::Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    on_each(|ground| {
        known(ground);
        for word in ["list", "export", "report"] {
            let mut err = Vec::new();
            let code = run_on(&[word.into()], &ground.config(), &[], &mut Closed, &mut err);
            assert_eq!((code, err.len()), (0, 0), "{word}");
        }
        let bill = Bill::of("request_id,units\nlost,37\nstranger,1\n");
        let args = ["reconcile".to_owned(), bill.path()];
        let mut err = Vec::new();
        let code = run_on(&args, &ground.config(), &[], &mut Closed, &mut err);
        assert_eq!((code, err.len()), (1, 0), "what did not match is told");
        assert_eq!(ledger(ground, "show lost").json()["charged_units"], 37);
    });
}

#[test]
fn every_member_of_a_record_is_a_column() {
    on_each(|ground| {
        let mut full = complete(&running("r"));
        full.input_cached_units = Some(Units(1));
        full.input_cache_write_units = Some(Units(1));
        full.usage_source = UsageSource::Reconciled;
        let record = serde_json::to_value(&full).unwrap();
        write(ground, vec![settle(full)]).close();
        let csv = ledger(ground, "export --format csv");
        let columns: Vec<&str> = csv.lines()[0].split(',').collect();
        let mut members: Vec<&String> = record.as_object().unwrap().keys().collect();
        members.retain(|m| !columns.contains(&m.as_str()));
        assert!(members.is_empty(), "no columns for {members:?}");
    });
}
