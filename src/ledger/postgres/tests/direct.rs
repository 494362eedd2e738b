//! Writes that are made without reading first: what they do, and when they are made by reading all the same.

use super::*;
use crate::budget::Units;
use crate::ledger::entry::Known;
use crate::ledger::postgres::single;
use crate::ledger::queue::Abandon;
use crate::ledger::rules::Abandoned;
use crate::ledger::store::{BillLine, Books as _};
use crate::record::{EndedBy, State, UsageSource};
use std::time::Duration;

/// How often a run has read entries by their ids.
fn reads(store: &mut PostgresStore) -> i64 {
    let sql = "SELECT coalesce(sum(generic_plans + custom_plans), 0)::text FROM pg_prepared_statements \
               WHERE statement LIKE '%FROM entry WHERE request_id = ANY($1)'";
    ask(store, sql).parse().unwrap()
}

fn open_as(store: &mut PostgresStore, number: i64, opening: crate::ledger::Opening) -> Opened {
    let applied = write(store, Write::Open(Box::new(opening), number)).unwrap();
    let Applied::Opened(opened) = applied else {
        panic!("{applied:?}");
    };
    opened
}

fn streaming(id: &str) -> Record {
    Record {
        state: State::Streaming,
        generated_units: Units(9),
        ..running(id)
    }
}

fn known(store: &mut PostgresStore, name: &str) -> Known {
    store.find(&acme(), &id(name)).unwrap().unwrap()
}

/// Takes a run for dead that lives, as another one does that does not see its lock.
fn take_for_dead(store: &mut PostgresStore, database: &Database) -> PostgresStore {
    ask(store, "SELECT pg_advisory_unlock_all()::text");
    join(database)
}

fn charged(units: i64) -> Amounts {
    Amounts {
        charged: units,
        ..Amounts::NONE
    }
}

#[test]
fn what_a_run_writes_of_its_own_is_not_read_before() {
    let (database, mut store) = fresh();
    let mut other = join(&database);
    open(&mut store, "r");
    assert_eq!(store.own.len(), 1);
    write(&mut store, Write::Checkpoint(Box::new(streaming("r")))).unwrap();
    let settled = complete(&running("r"));
    assert!(matches!(
        settle(&mut store, settled.clone()),
        Ok(Applied::Done)
    ));
    assert_eq!((reads(&mut store), store.own.len()), (0, 0));
    let found = known(&mut store, "r");
    let whole = (found.record, found.shown, found.fingerprint);
    assert_eq!(whole, (settled, true, print("payload")));
    let sums = "SELECT charged, held, reserved, open, unknown FROM account";
    assert_eq!(database.rows(sums), [["40", "0", "0", "0", "0"]]);
    let usage = "SELECT requests, completed, generated_units, charged_units FROM usage";
    assert_eq!(database.rows(usage), [["1", "1", "12", "40"]]);
    let told = other.follow(clock::now()).unwrap();
    assert_eq!((told.len(), sum(&told)), (2, charged(40)), "open and end");
    assert_eq!(
        (store.total(), other.total()),
        (Ok(charged(40)), Ok(charged(40)))
    );
}

#[test]
fn an_opening_that_nobody_waited_for_is_ended_without_reading() {
    let (_database, mut store) = fresh();
    open(&mut store, "r");
    let abandon = |opening| {
        Write::Abandon(Abandon {
            tenant: acme(),
            id: id("r"),
            opening,
            why: Abandoned::Left,
        })
    };
    write(&mut store, abandon(1)).unwrap();
    assert_eq!((reads(&mut store), store.own.len()), (0, 0));
    assert_eq!(known(&mut store, "r").record.state, State::Cancelled);
    assert_eq!(store.total(), Ok(Amounts::NONE));
    open(&mut store, "s");
    write(&mut store, abandon(2)).unwrap();
    assert_eq!(store.own.len(), 1, "another opening's");
}

#[test]
fn an_id_that_is_there_already_is_read_and_answered_as_ever() {
    let (database, mut store) = fresh();
    let mut other = join(&database);
    open(&mut store, "r");
    let opened = open_as(&mut other, 1, opening("r"));
    assert!(matches!(opened, Opened::Conflict(known) if known.record == running("r")));
    assert!(matches!(open_as(&mut store, 1, opening("r")), Opened::New));
    assert!(matches!(
        open_as(&mut store, 2, opening("r")),
        Opened::Conflict(_)
    ));
    assert_eq!(other.own.len(), 0);
    let unshown = settlement(failed(&running("r"), 7), false);
    write(&mut store, unshown).unwrap();
    let reads_before = reads(&mut other);
    let opened = open_as(&mut other, 2, opening("r"));
    assert!(matches!(opened, Opened::Reopened(before) if before.charged_units == Units(7)));
    settle(&mut other, complete(&running("r"))).unwrap();
    assert_eq!(
        reads(&mut other),
        reads_before + 1,
        "to reopen, not to settle"
    );
    let sums = database.rows("SELECT charged, open, reserved FROM account");
    assert_eq!(sums, [["47", "0", "0"]]);
    let usage = database.rows("SELECT requests, failed, charged_units FROM usage");
    assert_eq!(usage, [["1", "0", "47"]]);
}

#[test]
fn the_same_id_of_another_tenant_is_another_entry() {
    let (_database, mut store) = fresh();
    open(&mut store, "r");
    let mut theirs = opening("r");
    theirs.record.tenant = crate::tenant::TenantName::new("other");
    assert_eq!(open_as(&mut store, 2, theirs.clone()), Opened::New);
    settle(&mut store, complete(&theirs.record)).unwrap();
    assert_eq!((reads(&mut store), store.own.len()), (0, 1));
    assert_eq!(known(&mut store, "r").record, running("r"));
    let total = store.total().unwrap();
    assert_eq!((total.open, total.charged), (1, 40));
}

#[test]
fn an_entry_that_was_taken_for_crashed_meanwhile_is_read_before_it_is_settled() {
    let (database, mut store) = fresh();
    open(&mut store, "r");
    let mut other = take_for_dead(&mut store, &database);
    assert_eq!(other.total().unwrap().unknown, 1);
    write(&mut store, Write::Checkpoint(Box::new(streaming("r")))).unwrap();
    let crashed = known(&mut store, "r").record;
    assert_eq!(
        crashed.ended_by,
        Some(EndedBy::Crash),
        "a checkpoint is late"
    );
    assert!(matches!(
        settle(&mut store, complete(&running("r"))),
        Ok(Applied::Done)
    ));
    assert_eq!(known(&mut store, "r").record, complete(&running("r")));
    let sums = "SELECT charged, held, reserved, open, unknown FROM account";
    assert_eq!(database.rows(sums), [["40", "0", "0", "0", "0"]]);
    other.follow(clock::now()).unwrap();
    assert_eq!(other.total(), Ok(charged(40)));
}

#[test]
fn an_entry_that_a_bill_settled_meanwhile_stays_as_billed() {
    let (database, mut store) = fresh();
    open(&mut store, "r");
    let mut other = take_for_dead(&mut store, &database);
    let line = BillLine {
        line: 1,
        tenant: None,
        id: id("r"),
        units: Units(7),
    };
    let mut books = PostgresBooks::to_reconcile(&Secret::new(database.url())).unwrap();
    books.reconcile(&[line], false).unwrap();
    let applied = settle(&mut store, complete(&running("r"))).unwrap();
    assert!(matches!(applied, Applied::Broken(_)), "{applied:?}");
    let found = known(&mut store, "r").record;
    assert_eq!(found.usage_source, UsageSource::Reconciled);
    other.follow(clock::now()).unwrap();
    store.follow(clock::now()).unwrap();
    assert_eq!(
        (store.total(), other.total()),
        (Ok(charged(7)), Ok(charged(7)))
    );
}

#[test]
fn an_entry_that_the_server_does_not_take_fails_alone() {
    let (database, mut store) = fresh();
    open(&mut store, "r");
    database.forbid("r", "P0001");
    let applied = settle(&mut store, complete(&running("r"))).unwrap();
    assert!(matches!(applied, Applied::Failed(e) if e.is_of_one_entry()));
    assert!(matches!(open_as(&mut store, 2, opening("s")), Opened::New));
    assert_eq!(store.total().unwrap().open, 2);
    database.rows("DROP TRIGGER no ON entry");
    assert!(matches!(
        settle(&mut store, complete(&running("r"))),
        Ok(Applied::Done)
    ));
}

#[test]
fn a_lock_that_is_held_is_waited_for_once() {
    let (database, mut store) = fresh();
    open(&mut store, "r");
    let busy = database.session();
    busy.rows("BEGIN; SELECT pg_advisory_xact_lock(1936157799)");
    let error = settle(&mut store, complete(&running("r"))).unwrap_err();
    assert!(error.is_locked(), "{error}");
    busy.rows("COMMIT");
    assert_eq!((reads(&mut store), store.own.len()), (0, 0));
    settle(&mut store, complete(&running("r"))).unwrap();
    assert_eq!((reads(&mut store), store.total()), (1, Ok(charged(40))));
}

#[test]
fn what_is_known_ends_with_the_connection_and_when_a_run_comes_back() {
    let (database, mut store) = fresh();
    open(&mut store, "r");
    cut(&database);
    settle(&mut store, complete(&running("r"))).unwrap_err();
    assert_eq!(store.own.len(), 0);
    store.reopen().unwrap();
    open(&mut store, "s");
    assert_eq!(store.own.len(), 1);
    database.rows("DELETE FROM owner");
    store.follow(clock::now()).unwrap();
    assert_eq!(store.own.len(), 0);
}

#[test]
fn what_a_group_opens_is_known_too() {
    let (_database, mut store) = fresh();
    let group: Vec<Write> = (1..=3)
        .map(|n| Write::Open(Box::new(opening(&format!("r{n}"))), n))
        .chain([settlement(complete(&running("r2")), true)])
        .collect();
    store.commit(&group, clock::now()).unwrap();
    assert_eq!((reads(&mut store), store.own.len()), (1, 2));
    settle(&mut store, complete(&running("r1"))).unwrap();
    settle(&mut store, complete(&running("r3"))).unwrap();
    assert_eq!((reads(&mut store), store.own.len()), (1, 0));
    assert_eq!(store.total(), Ok(charged(120)));
}

#[test]
fn a_record_of_another_hour_than_its_opening_moves_both_hours() {
    let (database, mut store) = fresh();
    open(&mut store, "r");
    let mut record = complete(&running("r"));
    record.admitted_at = ADMITTED.plus(Duration::from_secs(3600));
    assert!(matches!(settle(&mut store, record), Ok(Applied::Done)));
    let sums = database.rows("SELECT charged, open, reserved FROM account ORDER BY hour");
    assert_eq!(sums, [["0", "0", "0"], ["40", "0", "0"]]);
}

#[test]
fn an_own_entry_is_found_by_its_id_however_many_the_run_has_open() {
    let (database, mut store) = fresh();
    open(&mut store, "r");
    database.rows(
        "INSERT INTO entry OVERRIDING SYSTEM VALUE SELECT 1000 + n, 'acme', 'n' || n, fingerprint, shown, owner, opening, open, state, \
         ended_by, usage_source, api, model, pool, admitted_at, ended_at, reserved_units, input_units, \
         generated_units, delivered_units, charged_units, earlier_units, held_units, record \
         FROM entry, generate_series(1, 5000) AS n",
    );
    for statistics in ["SELECT 1", "ANALYZE"] {
        database.rows(statistics);
        let plan = store
            .link
            .run(async |session| {
                let name = format!("m{}", statistics.len());
                session
                    .batch(&format!("PREPARE {name} AS {}", single::MOVE.as_str()))
                    .await?;
                let nulls = vec!["NULL"; 43].join(", ");
                let sql = format!("EXPLAIN EXECUTE {name}({nulls})");
                let rows = session.client.query(&sql, &[]).await?;
                let lines: Result<Vec<String>, _> = rows.iter().map(|row| row.try_get(0)).collect();
                Ok(lines?.join("; "))
            })
            .unwrap();
        assert!(
            plan.contains("Index Scan using entry_id on entry"),
            "{plan}"
        );
    }
}

#[test]
fn texts_that_cannot_be_stored_are_found_again() {
    let (_database, mut store) = fresh();
    let mut opening = opening("r");
    opening.record.model = "a\0b".into();
    opening.record.tenant = crate::tenant::TenantName::new("t\0");
    open_as(&mut store, 1, opening.clone());
    let settled = settle(&mut store, complete(&opening.record));
    assert!(matches!(settled, Ok(Applied::Done)));
    assert_eq!(reads(&mut store), 0);
    assert_eq!(store.total(), Ok(charged(40)));
}
