//! The handle and its thread, on a real ledger.

use super::*;
use crate::budget::Units;
use crate::ledger::store::{BillLine, Write};
use crate::ledger::{Amounts, Ledger, LedgerError, Opened, Recovered};
use crate::record::{EndedBy, State};
use std::time::Duration;

#[tokio::test]
async fn an_entry_is_opened_settled_and_found() {
    on_each_awaited(async |ground| {
        let (ledger, recovered, ears) = start(&ground.config());
        assert_eq!(recovered, Recovered::default());
        assert_eq!(ledger.open(opening("r")).await, Ok(Opened::New));
        until("the open entry to be told", || ears.state() == Some((1, 0))).await;
        let record = complete(&running("r"));
        ledger.settle(ended(record.clone()));
        let found = ledger.find(&acme(), &id("r")).await.unwrap().unwrap();
        assert_eq!(
            (found.record, found.shown),
            (record, true),
            "a look-up sees what was settled before it"
        );
        assert_eq!(ledger.find(&acme(), &id("x")).await, Ok(None));
        assert_eq!(ears.state(), Some((0, 0)));
        ledger.close().unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_waits_at_the_close_is_written_and_summed_up_at_the_next_start() {
    on_each_awaited(async |ground| {
        let config = ground.config();
        let (ledger, _, _) = start(&config);
        for n in 0..300 {
            ledger.settle(ended(complete(&running(&format!("r{n}")))));
        }
        ledger.close().unwrap();
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
        ledger.close().unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_opening_whose_client_left_is_undone() {
    on_each_awaited(async |ground| {
        let (ledger, _, ears) = start(&ground.config());
        for n in 0..50 {
            let name = format!("r{n}");
            let mut opening = Box::pin(ledger.open(opening(&name)));
            // Polled once, the opening is on its way; dropped, nobody waits for it.
            let polled = polled(opening.as_mut());
            drop(opening);
            if polled.is_ready() {
                ledger.settle(ended(complete(&running(&name)))); // the answer was there at once
            } else if let Some(known) = ledger.find(&acme(), &id(&name)).await.unwrap() {
                assert_eq!(known.record.ended_by, Some(EndedBy::ClientClosed));
            }
        }
        until("no entry to be open", || {
            matches!(ears.state(), Some((0, 0)))
        })
        .await;
        ledger.close().unwrap();
    })
    .await;
}

#[tokio::test]
async fn while_the_ledger_is_locked_openings_fail_in_time_and_settlements_wait() {
    on_each_awaited(async |ground| {
        let (ledger, _, ears) = start(&ground.config());
        assert_eq!(ledger.open(opening("r")).await, Ok(Opened::New));
        let lock = ground.lock();
        let error = ledger.open(opening("s")).await.unwrap_err();
        assert!(error.to_string().contains(ground.place()), "{error}");
        ledger.settle(ended(complete(&running("r"))));
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
        until("the ledger to be written again", || ledger.is_up()).await;
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
        ledger.close().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_running_gateway_hears_of_a_bill_within_seconds() {
    on_each_awaited(async |ground| {
        let config = ground.config();
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
        apart(|| ground.to_reconcile().reconcile(&[line], false).unwrap());
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
        ledger.close().unwrap();
    })
    .await;
}

#[tokio::test]
async fn two_gateways_on_one_ledger_do_not_block_each_other_and_lose_nothing() {
    on_each_awaited(async |ground| {
        let config = ground.config();
        let (first, _, _) = start(&config);
        let (second, _, ears) = start(&config);
        let work = |ledger: Ledger, who: &'static str| async move {
            for n in 0..100 {
                let name = format!("{who}-{n}");
                assert_eq!(ledger.open(opening(&name)).await, Ok(Opened::New));
                ledger.settle(ended(complete(&running(&name))));
            }
        };
        tokio::join!(work(first.clone(), "first"), work(second.clone(), "second"));
        first.close().unwrap();
        until("the second to hear what the first charged", || {
            ears.adjustments()
                .iter()
                .map(|p| p.amounts.charged)
                .sum::<i64>()
                == 100 * 40
        })
        .await;
        second.close().unwrap();
        let (third, recovered, _) = start(&config);
        assert_eq!(
            recovered.accounts[0].amounts,
            Amounts {
                charged: 200 * 40,
                ..Amounts::NONE
            }
        );
        third.close().unwrap();
    })
    .await;
}

#[tokio::test]
async fn after_the_close_openings_fail_and_nothing_panics() {
    on_each_awaited(async |ground| {
        let (ledger, _, _) = start(&ground.config());
        let other = ledger.clone();
        ledger.close().unwrap();
        let error = other.open(opening("r")).await.unwrap_err();
        assert!(error.to_string().contains("closed"), "{error}");
        other.settle(ended(complete(&running("r"))));
        other.checkpoint(running("r"));
        other.close().unwrap();
    })
    .await;
}

#[tokio::test]
async fn old_entries_go_while_the_gateway_runs() {
    on_each_awaited(async |ground| {
        let mut config = ground.config();
        config.retention = Duration::from_secs(1);
        let (ledger, _, _) = start(&config);
        for n in 0..500 {
            ledger.settle(ended(complete(&running(&format!("r{n}")))));
        }
        let left = || apart(|| ground.number("SELECT count(*) FROM entry"));
        until("the old entries to go", || left() == 0).await;
        ledger.close().unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_reloaded_retention_and_policy_count_from_then_on() {
    on_each_awaited(async |ground| {
        let mut config = ground.config();
        let (ledger, _, ears) = start(&config);
        ledger.settle(ended(complete(&running("old"))));
        config.retention = Duration::from_secs(1);
        config.on_unknown = crate::config::OnUnknown::ChargeReserved;
        ledger.configure(&config);
        // Answered after all that was sent before it.
        assert!(ledger.find(&acme(), &id("old")).await.is_ok());
        apart(|| leave_crashed(ground));
        let moved = || {
            let adjustments = ears.adjustments();
            let amounts = adjustments.iter().map(|p| p.amounts);
            amounts.fold(Amounts::NONE, Amounts::plus)
        };
        until("the crash to be found", || moved().unknown == 1).await;
        assert_eq!((moved().charged, moved().held), (100, 0));
        ledger.close().unwrap();
        let (ledger, _, _) = start(&config);
        let old = "SELECT count(*) FROM entry WHERE request_id = 'old'";
        until("the old entry to go", || apart(|| ground.number(old)) == 0).await;
        ledger.close().unwrap();
    })
    .await;
}

/// Another process opens an entry and dies.
fn leave_crashed(ground: &Ground) {
    let (mut store, _) = ground.join();
    let open = Write::Open(Box::new(opening("lost")), 1);
    store.commit(&[open], crate::clock::now()).unwrap();
    ground.kill(store);
}

/// A ledger whose process died with one entry open.
async fn leave_open(config: &crate::config::Ledger, name: &str) {
    let (ledger, _, _) = start(config);
    assert_eq!(ledger.open(opening(name)).await, Ok(Opened::New));
    ledger.close().unwrap();
}

#[test]
fn an_error_can_be_handed_to_every_waiter() {
    fn shared<T: Clone + Send + Sync + std::error::Error + 'static>() {}
    shared::<LedgerError>();
}
