//! `ledger reconcile`: what a bill settles, what of it does not match, and when nothing of it is taken.

use super::*;

/// A bill in a file of its own.
pub struct Bill(Scratch);

impl Bill {
    pub fn of(text: &str) -> Bill {
        let bill = Bill(Scratch::new());
        std::fs::write(bill.path(), text).unwrap();
        bill
    }

    pub fn path(&self) -> String {
        self.0.join("bill.csv").display().to_string()
    }

    pub fn reconcile(&self, ground: &Ground, options: &str) -> Printed {
        ledger(ground, &format!("reconcile {} {options}", self.path()))
    }
}

/// What is said of a line of a bill.
fn said(printed: &Printed, line: usize) -> &str {
    let place = format!("bill.csv:{line}: ");
    let lines: Vec<&str> = printed.lines();
    let found = lines.iter().find_map(|text| text.split_once(&place));
    found.map_or("", |(_, words)| words)
}

#[test]
fn a_bill_that_contradicts_itself_settles_nothing_of_that_id() {
    on_each(|ground| {
        known(ground);
        let bill = Bill::of(
            "request_id,units,tenant\nlost,37,\ndone,40,\nlost,38,\nlost,37,acme\ndone,40,acme\n",
        );
        let before = ledger(ground, "export").out;
        let first = bill.reconcile(ground, "");
        assert_eq!((first.code, first.lines().len()), (1, 4), "{}", first.out);
        for (line, words) in [
            (2, "lost: contradictory: 37 units here, 38 in line 4"),
            (4, "lost: contradictory: 38 units here, 37 in line 2"),
            (
                5,
                "lost of acme: contradictory: 37 units here, 38 in line 4",
            ),
        ] {
            assert!(said(&first, line).starts_with(words), "{}", first.out);
        }
        assert!(
            first.out.contains("0 reconciled, 0 were before, 2 known")
                && first.out.contains("3 contradicted, 0 not matched"),
            "{}",
            first.out
        );
        assert_eq!(ledger(ground, "export").out, before);
        assert_eq!(bill.reconcile(ground, "").out, first.out);
        let dry = bill.reconcile(ground, "--dry-run");
        assert_eq!(dry.code, 1);
        assert_eq!(dry.lines()[..3], first.lines()[..3]);
    });
}

#[test]
fn the_other_ids_of_a_bill_that_contradicts_itself_are_settled() {
    on_each(|ground| {
        known(ground);
        let mut theirs = Record {
            usage_source: UsageSource::Unknown,
            ..failed(&running("lost"), 0)
        };
        theirs.tenant = TenantName::new("other");
        write(ground, vec![settle(theirs)]).close();
        let bill = Bill::of(
            "request_id,units,tenant\nlost,1,acme\nlost,2,other\nlost,2,other\nlost,3,acme\n",
        );
        let first = bill.reconcile(ground, "");
        assert_eq!(first.code, 1);
        assert!(said(&first, 3).contains("charged 2 units"), "{}", first.out);
        assert!(
            first.out.contains("1 reconciled, 1 were before")
                && first.out.contains("2 contradicted"),
            "{}",
            first.out
        );
        let source = |tenant: &str| {
            let shown = ledger(ground, &format!("show lost --tenant {tenant}"));
            shown.json()["usage_source"].clone()
        };
        assert_eq!(
            (source("acme"), source("other")),
            ("unknown".into(), "reconciled".into())
        );
        let again = Bill::of("request_id,units,tenant\nlost,1,acme\nlost,2,other\nlost,1,acme\n");
        let settled = again.reconcile(ground, "");
        assert_eq!(settled.code, 0, "{}", settled.out);
        assert!(
            settled.out.contains("1 reconciled, 2 were before"),
            "{}",
            settled.out
        );
        let same = again.reconcile(ground, "");
        assert_eq!((same.code, same.lines().len()), (0, 1), "{}", same.out);
        assert!(
            same.out.contains("0 reconciled, 3 were before"),
            "{}",
            same.out
        );
    });
}

#[test]
fn a_bill_names_a_column_or_a_member_once() {
    on_each(|ground| {
        known(ground);
        for (text, place) in [
            (
                "request_id,units, Units\nlost,37,38\n",
                "bill.csv:1: the column units",
            ),
            (
                "{\"request_id\":\"lost\",\"units\":37}\n{\"request_id\":\"done\",\"units\":1,\"units\":1}\n",
                "bill.csv:2: the member units",
            ),
        ] {
            for options in ["", "--dry-run"] {
                let printed = Bill::of(text).reconcile(ground, options);
                assert_eq!((printed.code, printed.out.as_str()), (1, ""));
                assert!(printed.err.contains(place), "{}", printed.err);
                assert!(
                    printed.err.contains("nothing was reconciled"),
                    "{}",
                    printed.err
                );
            }
        }
        assert_eq!(
            ledger(ground, "show lost").json()["usage_source"],
            "unknown"
        );
    });
}

#[test]
fn lines_of_a_bill_that_settle_nothing_wait_for_no_lock() {
    on_each(|ground| {
        known(ground);
        let lock = ground.lock();
        let bill = Bill::of("request_id,units\ndone,40\nbad,3\nstranger,1\n");
        for options in ["", "--dry-run"] {
            let printed = bill.reconcile(ground, options);
            assert!(
                printed.out.contains("2 known") && printed.out.contains("1 not matched"),
                "{}{}",
                printed.out,
                printed.err
            );
        }
        drop(lock);
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
            "bill.csv:2: lost: charged 37",
            "bill.csv:4: bad: charged 3 units",
            "bill.csv:5: stranger: no entry",
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
