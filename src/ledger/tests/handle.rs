//! The handle and its thread, on a real file.

use super::*;
use crate::budget::Units;
use crate::exchange::{EndedBy, State};
use crate::ledger::sqlite::SqliteBooks;
use crate::ledger::store::{BillLine, Books};
use crate::ledger::{Amounts, Ledger, LedgerError, Opened, Recovered};
use std::time::Duration;

#[tokio::test]
async fn an_entry_is_opened_settled_and_found() {
    let scratch = Scratch::new();
    let (ledger, recovered, ears) = start(&config(&scratch.database()));
    assert_eq!(recovered, Recovered::default());
    assert_eq!(ledger.open(opening("r")).await, Ok(Opened::New));
    until("the open entry to be told", || ears.state() == Some((1, 0))).await;
    let record = complete(&running("r"));
    ledger.settle(record.clone(), true);
    let found = ledger.find(&acme(), &id("r")).await.unwrap().unwrap();
    assert_eq!(
        (found.record, found.shown),
        (record, true),
        "a look-up sees what was settled before it"
    );
    assert_eq!(ledger.find(&acme(), &id("x")).await, Ok(None));
    assert_eq!(ears.state(), Some((0, 0)));
    ledger.close();
}

#[tokio::test]
async fn what_waits_at_the_close_is_written_and_summed_up_at_the_next_start() {
    let scratch = Scratch::new();
    let config = config(&scratch.database());
    let (ledger, _, _) = start(&config);
    for n in 0..300 {
        ledger.settle(complete(&running(&format!("r{n}"))), true);
    }
    ledger.close();
    let (ledger, recovered, _) = start(&config);
    let charged: Vec<_> = recovered
        .accounts
        .iter()
        .map(|p| (p.tenant.clone(), p.amounts))
        .collect();
    assert_eq!(
        charged,
        [(
            acme(),
            Amounts {
                charged: 300 * 40,
                ..Amounts::NONE
            }
        )]
    );
    assert_eq!((recovered.open, recovered.unknown), (0, 0));
    ledger.close();
}

#[tokio::test]
async fn an_opening_whose_client_left_is_undone() {
    let scratch = Scratch::new();
    let (ledger, _, ears) = start(&config(&scratch.database()));
    for n in 0..50 {
        let name = format!("r{n}");
        let mut opening = Box::pin(ledger.open(opening(&name)));
        // Polled once, the opening is on its way; dropped, nobody waits for it.
        let polled = polled(opening.as_mut());
        drop(opening);
        if polled.is_ready() {
            ledger.settle(complete(&running(&name)), true); // the answer was there at once
        } else if let Some(known) = ledger.find(&acme(), &id(&name)).await.unwrap() {
            assert_eq!(known.record.ended_by, Some(EndedBy::ClientClosed));
        }
    }
    until("no entry to be open", || {
        matches!(ears.state(), Some((0, 0)))
    })
    .await;
    ledger.close();
}

#[tokio::test]
async fn while_the_file_is_locked_openings_fail_in_time_and_settlements_wait() {
    let scratch = Scratch::new();
    let (ledger, _, ears) = start(&config(&scratch.database()));
    assert_eq!(ledger.open(opening("r")).await, Ok(Opened::New));
    let lock = Lock::of(&scratch);
    let error = ledger.open(opening("s")).await.unwrap_err();
    assert!(error.to_string().contains("ledger.db"), "{error}");
    ledger.settle(complete(&running("r")), true);
    until("the trouble to last", || ears.failures() > 4).await;
    let error = ledger.open(opening("t")).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("holds the database locked"),
        "once it lasts, openings fail at once with it: {text}"
    );
    let found = ledger.find(&acme(), &id("r")).await.unwrap().unwrap();
    assert_eq!(
        found.record.state,
        State::Completed,
        "a look-up sees what waits to be written"
    );
    drop(lock);
    until("the ledger to be written again", || {
        ears.heard().contains(&Heard::RecoveredWrites)
    })
    .await;
    until("the settlement to be written", || {
        ears.state() == Some((0, 0))
    })
    .await;
    assert_eq!(
        ledger.find(&acme(), &id("s")).await,
        Ok(None),
        "what was refused left no entry"
    );
    assert_eq!(ledger.open(opening("s")).await, Ok(Opened::New));
    ledger.close();
}

#[tokio::test]
async fn a_running_gateway_hears_of_a_bill_within_seconds() {
    let scratch = Scratch::new();
    let config = config(&scratch.database());
    leave_open(&config, "lost").await;
    let (ledger, recovered, ears) = start(&config);
    assert_eq!((recovered.open, recovered.unknown), (0, 1));
    until("the counts to be told", || ears.state() == Some((0, 1))).await;
    let line = BillLine {
        line: 1,
        tenant: None,
        id: id("lost"),
        units: Units(37),
    };
    let mut books = SqliteBooks::to_reconcile(&scratch.database()).unwrap();
    books.reconcile(&[line], false).unwrap();
    until("the bill to be heard of", || !ears.adjustments().is_empty()).await;
    let want = Amounts {
        charged: 37,
        held: -100,
        unknown: -1,
        ..Amounts::NONE
    };
    assert_eq!(ears.adjustments()[0].amounts, want);
    until("no entry to await its bill", || {
        ears.state() == Some((0, 0))
    })
    .await;
    ledger.close();
}

#[tokio::test]
async fn two_gateways_on_one_file_do_not_block_each_other_and_lose_nothing() {
    let scratch = Scratch::new();
    let config = config(&scratch.database());
    let (first, _, _) = start(&config);
    let (second, _, ears) = start(&config);
    let work = |ledger: Ledger, who: &'static str| async move {
        for n in 0..100 {
            let name = format!("{who}-{n}");
            assert_eq!(ledger.open(opening(&name)).await, Ok(Opened::New));
            ledger.settle(complete(&running(&name)), true);
        }
    };
    tokio::join!(work(first.clone(), "first"), work(second.clone(), "second"));
    first.close();
    until("the second to hear what the first charged", || {
        ears.adjustments()
            .iter()
            .map(|p| p.amounts.charged)
            .sum::<i64>()
            == 100 * 40
    })
    .await;
    second.close();
    let (third, recovered, _) = start(&config);
    assert_eq!(
        recovered.accounts[0].amounts,
        Amounts {
            charged: 200 * 40,
            ..Amounts::NONE
        }
    );
    third.close();
}

#[tokio::test]
async fn after_the_close_openings_fail_and_nothing_panics() {
    let scratch = Scratch::new();
    let (ledger, _, _) = start(&config(&scratch.database()));
    let other = ledger.clone();
    ledger.close();
    let error = other.open(opening("r")).await.unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
    other.settle(complete(&running("r")), true);
    other.checkpoint(running("r"));
    other.close();
}

#[tokio::test]
async fn old_entries_go_while_the_gateway_runs() {
    let scratch = Scratch::new();
    let mut config = config(&scratch.database());
    config.retention = Duration::from_secs(1);
    let (ledger, _, _) = start(&config);
    for n in 0..500 {
        ledger.settle(complete(&running(&format!("r{n}"))), true);
    }
    let books = SqliteBooks::to_read(&scratch.database()).unwrap();
    let left = || {
        books
            .page(
                &Default::default(),
                crate::ledger::store::Order::Oldest(None),
                1000,
            )
            .unwrap()
            .len()
    };
    until("the old entries to go", || left() == 0).await;
    ledger.close();
}

#[tokio::test]
async fn a_reloaded_retention_and_policy_count_from_then_on() {
    let scratch = Scratch::new();
    let mut config = config(&scratch.database());
    let (ledger, _, ears) = start(&config);
    ledger.settle(complete(&running("old")), true);
    config.retention = Duration::from_secs(1);
    config.on_unknown = crate::config::OnUnknown::ChargeReserved;
    ledger.configure(&config);
    let other = crate::ledger::sqlite::SqliteStore::start(
        &scratch.database(),
        &config,
        crate::ledger::owner::fresh_run(),
    );
    leave_crashed(other.unwrap());
    until("the crash to be found", || !ears.adjustments().is_empty()).await;
    let moved = ears
        .adjustments()
        .iter()
        .fold(Amounts::NONE, |sum, p| sum.plus(p.amounts));
    assert_eq!((moved.charged, moved.held, moved.unknown), (100, 0, 1));
    ledger.close();
    let (ledger, _, _) = start(&config);
    let books = SqliteBooks::to_read(&scratch.database()).unwrap();
    until("the old entry to go", || {
        books.named(&id("old"), None).unwrap().is_empty()
    })
    .await;
    ledger.close();
}

/// Another process opens an entry and dies.
fn leave_crashed(mut store: crate::ledger::sqlite::SqliteStore) {
    use crate::ledger::store::{Store, Write};
    let now = crate::clock::now();
    store.recover(now).unwrap();
    store
        .commit(&[Write::Open(Box::new(opening("lost")), 1)], now)
        .unwrap();
}

#[test]
fn a_postgres_url_is_named_as_what_this_build_cannot_use() {
    let scratch = Scratch::new();
    let mut config = config(&scratch.database());
    let secret = crate::config::Secret::new("postgres://u:hunter2@h/db".into());
    config.store = crate::config::LedgerStore::Postgres(secret);
    let error = Ledger::start(&config, Box::new(Ears::default()))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("PostgreSQL") && !error.contains("hunter2"),
        "{error}"
    );
}

/// A ledger whose process died with one entry open.
async fn leave_open(config: &crate::config::Ledger, name: &str) {
    let (ledger, _, _) = start(config);
    assert_eq!(ledger.open(opening(name)).await, Ok(Opened::New));
    ledger.close();
}

/// Another process's lock on the file, held until it is dropped.
struct Lock(rusqlite::Connection);

impl Lock {
    fn of(scratch: &Scratch) -> Lock {
        let db = rusqlite::Connection::open(scratch.database()).unwrap();
        db.execute_batch("BEGIN IMMEDIATE").unwrap();
        Lock(db)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

#[test]
fn an_error_can_be_handed_to_every_waiter() {
    fn shared<T: Clone + Send + Sync + std::error::Error + 'static>() {}
    shared::<LedgerError>();
}
