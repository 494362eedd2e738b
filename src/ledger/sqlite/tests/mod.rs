//! The store's rules on a real file: what each write does to the entry and to the sums.

mod bill;
mod crash;
mod file;
mod recount;

use super::*;
use crate::budget::Hour;
use crate::budget::Units;
use crate::clock;
use crate::exchange::{Attempt, EndedBy, Outcome, Record, State, UsageSource};
use crate::ledger::entry::Opening;
use crate::ledger::queue::Abandon;
use crate::ledger::rules::Abandoned;
use crate::ledger::store::{BillLine, Books, Filter, Order, Settlement};
use crate::ledger::sums::{Amounts, Usage};
use crate::ledger::tests::*;
use std::time::Duration;

fn join(config: &config::Ledger) -> (SqliteStore, Standing) {
    let config::LedgerStore::Sqlite(file) = &config.store else {
        panic!("not SQLite");
    };
    let mut store = SqliteStore::start(file, config, owner::fresh_run()).unwrap();
    let standing = store.recover(clock::now()).unwrap();
    (store, standing)
}

fn fresh() -> (Scratch, SqliteStore) {
    let scratch = Scratch::new();
    let (store, standing) = join(&config(&scratch.database()));
    assert_eq!(standing.accounts, []);
    (scratch, store)
}

fn write(store: &mut SqliteStore, write: Write) -> Applied {
    let committed = store.commit(&[write], clock::now()).unwrap();
    committed.applied.into_iter().next().unwrap()
}

fn open_as(store: &mut SqliteStore, number: i64, opening: Opening) -> Opened {
    let applied = write(store, Write::Open(Box::new(opening), number));
    let Applied::Opened(opened) = applied else {
        panic!("{applied:?}");
    };
    opened
}

fn open(store: &mut SqliteStore, id: &str) -> Opened {
    open_as(store, 1, opening(id))
}

fn settle(store: &mut SqliteStore, record: Record, shown: bool) -> Applied {
    write(store, Write::Settle(Box::new(record), shown))
}

fn known(store: &mut SqliteStore, name: &str) -> Known {
    store.find(&acme(), &id(name)).unwrap().unwrap()
}

/// What all accounts of a ledger come to.
fn total(store: &SqliteStore) -> Amounts {
    sums::standing(&store.db, Hour(0)).unwrap().total
}

fn usage(store: &SqliteStore) -> Usage {
    let books = SqliteBooks::to_read(&store.file).unwrap();
    let rows = books.usage(None).unwrap();
    rows.into_iter()
        .fold(Usage::default(), |sum, (_, usage)| sum.plus(usage))
}

#[test]
fn an_entry_is_open_and_reserves_then_settles_and_charges() {
    let (_scratch, mut store) = fresh();
    assert_eq!(open(&mut store, "r"), Opened::New);
    let reserved = Amounts {
        reserved: 100,
        open: 1,
        ..Amounts::NONE
    };
    assert_eq!(total(&store), reserved);
    let record = complete(&running("r"));
    assert!(matches!(
        settle(&mut store, record.clone(), true),
        Applied::Done
    ));
    assert_eq!(
        total(&store),
        Amounts {
            charged: 40,
            ..Amounts::NONE
        }
    );
    let found = known(&mut store, "r");
    assert_eq!((found.record, found.shown), (record, true));
    let usage = usage(&store);
    assert_eq!(
        (usage.requests, usage.completed, usage.charged_units),
        (1, 1, 40)
    );
}

#[test]
fn an_id_that_runs_or_was_shown_conflicts() {
    let (_scratch, mut store) = fresh();
    open(&mut store, "r");
    let Opened::Conflict(known) = open_as(&mut store, 2, opening("r")) else {
        panic!("it runs");
    };
    assert!(!known.record.state.is_terminal());
    settle(&mut store, complete(&running("r")), true);
    let Opened::Conflict(known) = open_as(&mut store, 3, opening("r")) else {
        panic!("it was shown");
    };
    assert!(known.shown && known.record.state == State::Completed);
    assert_eq!(total(&store).charged, 40);
}

#[test]
fn an_id_is_its_tenants_own() {
    let (_scratch, mut store) = fresh();
    open(&mut store, "r");
    let mut theirs = opening("r");
    theirs.record.tenant = TenantName::new("other");
    assert_eq!(open_as(&mut store, 2, theirs), Opened::New);
    assert_eq!(total(&store).open, 2);
}

#[test]
fn an_id_that_ended_with_nothing_shown_reopens_and_its_charges_add_up_in_their_own_hours() {
    let (_scratch, mut store) = fresh();
    open(&mut store, "r");
    let mut first = failed(&running("r"), 7);
    let attempt = |outcome| Attempt {
        backend: "10.0.0.1:80".into(),
        outcome,
        status: None,
    };
    first.attempts = vec![attempt(Outcome::Reset)];
    settle(&mut store, first.clone(), false);

    let mut again = opening("r");
    again.record.admitted_at = ADMITTED.plus(Duration::from_secs(7200));
    let opened = open_as(&mut store, 2, again.clone());
    assert_eq!(opened, Opened::Reopened(Box::new(first.clone())));
    let reopened = known(&mut store, "r").record;
    assert_eq!(
        (reopened.charged_units, reopened.attempts.len()),
        (Units(7), 1)
    );
    assert_eq!(
        total(&store),
        Amounts {
            charged: 7,
            reserved: 100,
            open: 1,
            ..Amounts::NONE
        }
    );

    let mut second = complete(&again.record);
    second.charged_units = Units(7 + 40);
    second.attempts = vec![attempt(Outcome::Reset), attempt(Outcome::Ok)];
    settle(&mut store, second, true);
    let standing = sums::standing(&store.db, Hour(0)).unwrap();
    let charged: Vec<_> = standing
        .accounts
        .iter()
        .map(|p| (p.hour, p.amounts.charged))
        .collect();
    let hour = Hour::of(ADMITTED);
    assert_eq!(charged, [(hour, 7), (Hour(hour.0 + 2), 40)]);
    let usage = usage(&store);
    assert_eq!((usage.requests, usage.charged_units), (1, 47));
}

#[test]
fn an_id_that_ended_with_nothing_shown_does_not_reopen_for_another_payload() {
    let (_scratch, mut store) = fresh();
    open(&mut store, "r");
    settle(&mut store, failed(&running("r"), 0), false);
    let other = Opening {
        fingerprint: print("another"),
        ..opening("r")
    };
    let Opened::Conflict(known) = open_as(&mut store, 2, other) else {
        panic!("another payload");
    };
    assert!(!known.is_of(&print("another")) && known.is_of(&print("payload")));
}

#[test]
fn an_id_that_awaits_its_bill_does_not_reopen() {
    let (_scratch, mut store) = fresh();
    open(&mut store, "r");
    let mut record = failed(&running("r"), 30);
    record.usage_source = UsageSource::Unknown;
    settle(&mut store, record, false);
    assert_eq!(
        total(&store),
        Amounts {
            charged: 30,
            held: 70,
            unknown: 1,
            ..Amounts::NONE
        }
    );
    assert!(matches!(
        open_as(&mut store, 2, opening("r")),
        Opened::Conflict(_)
    ));
}

#[test]
fn a_second_settlement_is_refused_and_charges_nothing() {
    let (_scratch, mut store) = fresh();
    open(&mut store, "r");
    let record = complete(&running("r"));
    settle(&mut store, record.clone(), true);
    let mut more = record.clone();
    more.charged_units = Units(1000);
    assert!(matches!(settle(&mut store, more, true), Applied::Broken(_)));
    assert!(
        matches!(settle(&mut store, record, true), Applied::Done),
        "the same again is a retry"
    );
    assert_eq!(
        total(&store),
        Amounts {
            charged: 40,
            ..Amounts::NONE
        }
    );
}

#[test]
fn a_settlement_that_is_no_end_is_refused() {
    let (_scratch, mut store) = fresh();
    open(&mut store, "r");
    assert!(matches!(
        settle(&mut store, running("r"), true),
        Applied::Broken(_)
    ));
    assert_eq!(total(&store).open, 1);
}

#[test]
fn a_request_that_was_served_without_an_entry_is_settled_all_the_same() {
    let (_scratch, mut store) = fresh();
    settle(&mut store, complete(&running("r")), true);
    assert_eq!(
        total(&store),
        Amounts {
            charged: 40,
            ..Amounts::NONE
        }
    );
    let found = known(&mut store, "r");
    assert!(found.is_of(&print("anything")), "nobody kept its payload");
    let mut later = complete(&running("r"));
    later.admitted_at = ADMITTED.plus(Duration::from_secs(60));
    settle(&mut store, later, true);
    assert_eq!(
        total(&store).charged,
        80,
        "its id was used twice while nobody could look"
    );
    assert_eq!(known(&mut store, "r").record.charged_units, Units(80));
}

#[test]
fn the_same_opening_tried_again_finds_its_own_entry() {
    let (_scratch, mut store) = fresh();
    assert_eq!(open_as(&mut store, 5, opening("r")), Opened::New);
    assert_eq!(open_as(&mut store, 5, opening("r")), Opened::New);
    assert_eq!(total(&store).open, 1);
}

#[test]
fn an_abandoned_opening_ends_and_frees_its_budget_but_a_late_settlement_still_counts() {
    let (_scratch, mut store) = fresh();
    open_as(&mut store, 5, opening("r"));
    let abandon = Abandon {
        tenant: acme(),
        id: id("r"),
        opening: 5,
        why: Abandoned::Late,
    };
    write(&mut store, Write::Abandon(abandon.clone()));
    assert_eq!(total(&store), Amounts::NONE);
    assert_eq!(
        known(&mut store, "r").record.ended_by,
        Some(EndedBy::Gateway)
    );
    settle(&mut store, complete(&running("r")), true);
    assert_eq!(
        total(&store),
        Amounts {
            charged: 40,
            ..Amounts::NONE
        }
    );
    write(&mut store, Write::Abandon(abandon));
    assert_eq!(known(&mut store, "r").record.state, State::Completed);
}

#[test]
fn abandoning_does_not_touch_another_opening_of_the_id() {
    let (_scratch, mut store) = fresh();
    open_as(&mut store, 5, opening("r"));
    let abandon = Abandon {
        tenant: acme(),
        id: id("r"),
        opening: 4,
        why: Abandoned::Left,
    };
    write(&mut store, Write::Abandon(abandon));
    assert_eq!(total(&store).open, 1);
}

#[test]
fn a_bad_entry_is_left_out_of_its_group_and_the_others_are_written() {
    let (_scratch, mut store) = fresh();
    store
        .db
        .execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON entry WHEN new.request_id = 'bad' \
             BEGIN SELECT raise(ABORT, 'no such ids here'); END",
        )
        .unwrap();
    let writes = ["a", "bad", "b"].map(|name| Write::Open(Box::new(opening(name)), 1));
    let committed = store.commit(&writes, clock::now()).unwrap();
    let kinds: Vec<bool> = committed
        .applied
        .iter()
        .map(|a| matches!(a, Applied::Opened(Opened::New)))
        .collect();
    assert_eq!(kinds, [true, false, true]);
    assert!(matches!(&committed.applied[1], Applied::Failed(e) if e.is_of_one_entry()));
    assert_eq!(total(&store).open, 2);
}

#[test]
fn a_full_disk_changes_nothing_and_is_named() {
    let (_scratch, mut store) = fresh();
    open(&mut store, "r");
    let pages: i64 = store
        .db
        .query_row("PRAGMA page_count", (), |r| r.get(0))
        .unwrap();
    let limit =
        |store: &SqliteStore, n: i64| store.db.pragma_update(None, "max_page_count", n).unwrap();
    limit(&store, pages);
    let mut long = complete(&running("r"));
    long.error = Some("x".repeat(100_000));
    let writes = [Write::Settle(Box::new(long), true)];
    let error = store.commit(&writes, clock::now()).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert!(error.to_string().contains("ledger.db") && error.to_string().contains("disk is full"));
    assert_eq!(
        total(&store),
        Amounts {
            reserved: 100,
            open: 1,
            ..Amounts::NONE
        }
    );
    limit(&store, 100_000);
    store.commit(&writes, clock::now()).unwrap();
    assert_eq!(
        total(&store),
        Amounts {
            charged: 40,
            ..Amounts::NONE
        }
    );
}

#[test]
fn a_stored_record_that_cannot_be_read_still_holds_its_id_and_its_sums() {
    let (scratch, mut store) = fresh();
    open(&mut store, "r");
    settle(&mut store, complete(&running("r")), true);
    open_as(&mut store, 2, opening("s"));
    store
        .db
        .execute("UPDATE entry SET record = '{oops'", ())
        .unwrap();
    assert!(matches!(
        open_as(&mut store, 3, opening("r")),
        Opened::Conflict(_)
    ));
    let found = known(&mut store, "r");
    assert_eq!(
        (found.record.charged_units, found.record.state),
        (Units(40), State::Completed)
    );
    drop(store);
    let (_store, standing) = join(&config(&scratch.database()));
    assert_eq!(
        standing.total,
        Amounts {
            charged: 40,
            held: 100,
            unknown: 1,
            ..Amounts::NONE
        }
    );
}

#[test]
fn sums_outlive_the_entries_that_retention_removes() {
    let (scratch, mut store) = fresh();
    for name in ["old", "lost"] {
        open(&mut store, name);
    }
    settle(&mut store, complete(&running("old")), true);
    drop(store);
    let (mut store, _) = join(&config(&scratch.database()));
    let mut now = opening("open");
    now.record.admitted_at = ADMITTED;
    open_as(&mut store, 2, now);
    let mut fresh = complete(&running("fresh"));
    fresh.ended_at = Some(clock::now());
    settle(&mut store, fresh, true);
    let before = total(&store);
    while store
        .forget(ADMITTED.plus(Duration::from_secs(60)))
        .unwrap()
    {}
    let books = SqliteBooks::to_read(&store.file).unwrap();
    let left = books
        .page(&Filter::default(), Order::Oldest(None), 10)
        .unwrap();
    let left: Vec<String> = left
        .into_iter()
        .map(|(_, r)| r.unwrap().request_id.to_string())
        .collect();
    assert_eq!(
        left,
        ["lost", "open", "fresh"],
        "what awaits its bill, runs, or ended lately stays"
    );
    assert_eq!(total(&store), before);
    assert_eq!(usage(&store).charged_units, 80);
    assert_eq!(open_as(&mut store, 9, opening("old")), Opened::New);
}

#[test]
fn forgetting_goes_on_past_a_round_and_past_what_a_wrong_clock_wrote() {
    let (_scratch, mut store) = fresh();
    let record = |n: i64| {
        let mut record = complete(&running(&format!("r{n}")));
        if n < 300 {
            record.ended_at = Some(Timestamp(i64::MAX));
        }
        Write::Settle(Box::new(record), true)
    };
    let writes: Vec<Write> = (0..800).map(record).collect();
    store.commit(&writes, clock::now()).unwrap();
    let mut rounds = 1;
    while store
        .forget(ADMITTED.plus(Duration::from_secs(60)))
        .unwrap()
    {
        rounds += 1;
    }
    assert_eq!(rounds, 3, "500 entries in rounds of 200");
    let left: i64 = store
        .db
        .query_row("SELECT count(*) FROM entry", (), |r| r.get(0))
        .unwrap();
    assert_eq!(left, 300);
}
