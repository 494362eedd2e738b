//! The ledger command, from its words to its output and exit code.

use super::*;
use crate::budget::Units;
use crate::clock;
use crate::ledger::command::run_on;
use crate::ledger::store::Write;
use crate::record::{Attempt, Outcome, Record, UsageSource};
use crate::tenant::TenantName;
use serde_json::Value;
use std::io;
use std::sync::Arc;

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

fn ledger(ground: &Ground, line: &str) -> Printed {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run_on(&args, &ground.config(), &mut out, &mut err);
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
fn a_report_sums_by_day_tenant_and_model() {
    on_each(|ground| {
        known(ground);
        let report = ledger(ground, "report");
        let rows: Vec<Vec<&str>> = report
            .lines()
            .iter()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(rows[1][..3], ["2023-11-14", "acme", "fast"]);
        assert_eq!(
            rows[1][3..8],
            ["3", "1", "0", "2", "1"],
            "requests by state, and unknown"
        );
        assert_eq!(
            (rows[1].last(), rows.last().unwrap().last()),
            (Some(&"43"), Some(&"83"))
        );
        assert_eq!(rows.last().unwrap()[0], "total");
        let json = ledger(ground, "report --format json --tenant other").json();
        assert_eq!(json.as_array().unwrap().len(), 1);
        assert_eq!(
            (&json[0]["model"], &json[0]["charged_units"]),
            (&"big, \"one\"".into(), &40.into())
        );
        let csv = ledger(ground, "report --format csv");
        assert!(
            csv.lines()[1].starts_with("2023-11-14,acme,fast,3,"),
            "{}",
            csv.out
        );
    });
}

#[test]
fn reconcile_says_what_it_did_and_what_did_not_match() {
    on_each(|ground| {
        known(ground);
        let scratch = Scratch::new();
        let bill = scratch.join("bill.csv");
        std::fs::write(
            &bill,
            "request_id,units\nlost,37\ndone,40\nbad,9999\nstranger,5\n",
        )
        .unwrap();
        let line = format!("reconcile {}", bill.display());
        let before = ledger(ground, "export").out;
        let dry = ledger(ground, &format!("{line} --dry-run"));
        assert_eq!(dry.code, 1);
        assert!(
            dry.out.contains("lost: would be charged 37 units"),
            "{}",
            dry.out
        );
        assert_eq!(
            ledger(ground, "export").out,
            before,
            "a dry run changed something"
        );
        let first = ledger(ground, &line);
        for words in [
            "line 2: lost: charged 37",
            "line 4: bad: charged 3 units",
            "line 5: stranger: no entry",
        ] {
            assert!(first.out.contains(words), "{}", first.out);
        }
        assert!(
            !first.out.contains("done"),
            "what agrees needs no words: {}",
            first.out
        );
        let second = ledger(ground, &line);
        assert!(
            second.out.contains("0 reconciled, 1 were before, 2 known"),
            "{}",
            second.out
        );
        let lost = ledger(ground, "show lost").json();
        assert_eq!(
            (&lost["charged_units"], &lost["usage_source"]),
            (&37.into(), &"reconciled".into())
        );
        assert_eq!(ledger(ground, "show bad").json()["charged_units"], 3);
    });
}

#[test]
fn a_bill_whose_lines_all_match_exits_0() {
    on_each(|ground| {
        known(ground);
        let scratch = Scratch::new();
        let bill = scratch.join("bill.jsonl");
        std::fs::write(
            &bill,
            "{\"request_id\":\"lost\",\"tenant\":\"acme\",\"units\":700}\n",
        )
        .unwrap();
        let printed = ledger(ground, &format!("reconcile {}", bill.display()));
        assert_eq!(printed.code, 0, "{}", printed.out);
        assert_eq!(ledger(ground, "show lost").json()["charged_units"], 700);
    });
}

#[test]
fn a_bill_that_cannot_be_read_changes_nothing() {
    on_each(|ground| {
        known(ground);
        let scratch = Scratch::new();
        let bill = scratch.join("bill.csv");
        std::fs::write(&bill, "request_id,units\nlost,37\nlost,-1\n").unwrap();
        let printed = ledger(ground, &format!("reconcile {}", bill.display()));
        assert_eq!(printed.code, 1);
        assert!(
            printed.err.contains("bill.csv:3: units is \"-1\""),
            "{}",
            printed.err
        );
        assert_eq!(
            ledger(ground, "show lost").json()["usage_source"],
            "unknown"
        );
        let missing = ledger(ground, "reconcile /nowhere/bill.csv");
        assert!(
            missing.code == 1 && missing.err.contains("/nowhere/bill.csv"),
            "{}",
            missing.err
        );
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
        assert_eq!(ledger(ground, "show bad").code, 1);
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
            let code = run_on(&[word.into()], &ground.config(), &mut Closed, &mut err);
            assert_eq!((code, err.len()), (0, 0), "{word}");
        }
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
