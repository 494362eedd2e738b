//! Processes that die, and processes that share a ledger.

use super::*;
use crate::config::OnUnknown;

fn with_policy(ground: &Ground, policy: OnUnknown) -> config::Ledger {
    config::Ledger {
        on_unknown: policy,
        ..ground.config()
    }
}

/// One request that had generated 9 units by its last checkpoint, and the process died.
fn crashed(ground: &Ground, policy: OnUnknown) -> (Held, Standing) {
    let config = with_policy(ground, policy);
    let (mut store, _) = ground.join_with(&config);
    open(&mut store, "r");
    let mut progress = running("r");
    progress.state = State::Streaming;
    progress.generated_units = Units(9);
    write(&mut store, Write::Checkpoint(Box::new(progress)));
    assert!(
        known(&mut store, "r").shown,
        "a streaming request counts as shown"
    );
    ground.kill(store);
    ground.join_with(&config)
}

#[test]
fn what_a_crash_leaves_is_unknown_and_held() {
    on_each(|ground| {
        let (mut store, standing) = crashed(ground, OnUnknown::Hold);
        assert_eq!(
            standing.total,
            Amounts {
                held: 100,
                unknown: 1,
                ..Amounts::NONE
            }
        );
        let found = known(&mut store, "r");
        let record = &found.record;
        assert_eq!(
            (record.state, record.ended_by),
            (State::Failed, Some(EndedBy::Crash))
        );
        assert_eq!(record.usage_source, UsageSource::Unknown);
        assert_eq!(
            (record.charged_units, record.generated_units),
            (Units(0), Units(9))
        );
        assert_eq!(
            record.error.as_deref(),
            Some("the gateway stopped before the request ended")
        );
        assert!(record.ended_at.is_some() && found.shown);
        assert!(matches!(open_as(&mut store, 2, opening("r")), Opened::Conflict(k) if k.shown));
    });
}

#[test]
fn what_a_crash_leaves_is_charged_as_reserved() {
    on_each(|ground| {
        let (mut store, standing) = crashed(ground, OnUnknown::ChargeReserved);
        assert_eq!(
            standing.total,
            Amounts {
                charged: 100,
                unknown: 1,
                ..Amounts::NONE
            }
        );
        assert_eq!(known(&mut store, "r").record.charged_units, Units(100));
    });
}

#[test]
fn what_a_crash_leaves_is_charged_as_counted() {
    on_each(|ground| {
        let (mut store, standing) = crashed(ground, OnUnknown::ChargeCounted);
        assert_eq!(
            standing.total,
            Amounts {
                charged: 28 + 9,
                unknown: 1,
                ..Amounts::NONE
            }
        );
        assert_eq!(
            known(&mut store, "r").record.usage_source,
            UsageSource::Unknown
        );
    });
}

#[test]
fn a_crash_is_found_once() {
    on_each(|ground| {
        let (store, standing) = crashed(ground, OnUnknown::Hold);
        ground.kill(store);
        let (_store, again) = ground.join();
        assert_eq!(again.total, standing.total);
    });
}

#[test]
fn a_crash_of_an_id_that_ran_again_keeps_its_earlier_charge() {
    on_each(|ground| {
        let config = with_policy(ground, OnUnknown::ChargeCounted);
        let (mut store, _) = ground.join_with(&config);
        open(&mut store, "r");
        settle(&mut store, failed(&running("r"), 7), false);
        open_as(&mut store, 2, opening("r"));
        ground.kill(store);
        let (mut store, standing) = ground.join_with(&config);
        assert_eq!(standing.total.charged, 7 + 28);
        assert_eq!(known(&mut store, "r").record.charged_units, Units(35));
    });
}

#[test]
fn a_clean_farewell_leaves_nothing_to_find() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open(&mut store, "r");
        settle(&mut store, complete(&running("r")), true);
        store.close();
        assert_eq!(ground.number("SELECT count(*) FROM owner"), 0);
        ground.kill(store);
        let (_store, standing) = ground.join();
        assert_eq!(
            standing.total,
            Amounts {
                charged: 40,
                ..Amounts::NONE
            }
        );
        assert_eq!(ground.number("SELECT count(*) FROM owner"), 1);
    });
}

#[test]
fn what_is_left_open_at_a_farewell_is_found_crashed() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open(&mut store, "r");
        store.close();
        ground.kill(store);
        let (_store, standing) = ground.join();
        assert_eq!(
            standing.total,
            Amounts {
                held: 100,
                unknown: 1,
                ..Amounts::NONE
            }
        );
    });
}

#[test]
fn a_second_process_leaves_the_entries_of_the_first_alone_and_counts_them_as_reserved() {
    on_each(|ground| {
        let mut first = ground.fresh();
        open(&mut first, "r");
        let (mut second, standing) = ground.join();
        assert_eq!(
            standing.total,
            Amounts {
                reserved: 100,
                open: 1,
                ..Amounts::NONE
            }
        );
        assert_eq!(second.follow(clock::now()).unwrap(), []);
        assert!(matches!(open(&mut second, "r"), Opened::Conflict(_)));
        assert!(matches!(
            settle(&mut second, complete(&running("r")), true),
            Applied::Broken(_)
        ));
        assert!(matches!(
            settle(&mut first, complete(&running("r")), true),
            Applied::Done
        ));
        assert_eq!(
            ground.total(),
            Amounts {
                charged: 40,
                ..Amounts::NONE
            }
        );
    });
}

#[test]
fn each_of_two_processes_hears_what_the_other_does_to_the_accounts_and_not_what_it_did_itself() {
    on_each(|ground| {
        let mut first = ground.fresh();
        let (mut second, _) = ground.join();
        open(&mut first, "r");
        settle(&mut first, complete(&running("r")), true);
        open(&mut second, "s");
        let heard = |store: &mut Held| {
            let postings = store.follow(clock::now()).unwrap();
            postings
                .iter()
                .fold(Amounts::NONE, |sum, p| sum.plus(p.amounts))
        };
        assert_eq!(
            heard(&mut second),
            Amounts {
                charged: 40,
                ..Amounts::NONE
            }
        );
        assert_eq!(
            heard(&mut first),
            Amounts {
                reserved: 100,
                open: 1,
                ..Amounts::NONE
            }
        );
        assert_eq!(heard(&mut second), Amounts::NONE);
        let kept = ground.number("SELECT count(*) FROM posting");
        assert_eq!(kept, 0, "what all have heard is removed");
    });
}

#[test]
fn a_process_that_is_alone_keeps_no_list_for_others() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open(&mut store, "r");
        assert_eq!(ground.number("SELECT count(*) FROM posting"), 0);
    });
}

#[test]
fn when_one_of_two_processes_dies_the_other_finds_its_entries() {
    on_each(|ground| {
        let mut first = ground.fresh();
        open(&mut first, "r");
        let (mut second, _) = ground.join();
        ground.kill(first);
        let heard = hears(&mut second);
        let moved = heard
            .iter()
            .fold(Amounts::NONE, |sum, p| sum.plus(p.amounts));
        assert_eq!(
            moved,
            Amounts {
                held: 100,
                reserved: -100,
                open: -1,
                unknown: 1,
                ..Amounts::NONE
            }
        );
        assert_eq!(
            known(&mut second, "r").record.ended_by,
            Some(EndedBy::Crash)
        );
        assert_eq!(second.follow(clock::now()).unwrap(), []);
    });
}

#[test]
fn a_process_taken_for_dead_by_mistake_still_settles_its_entry_once() {
    on_each(|ground| {
        let mut first = ground.fresh();
        open(&mut first, "r");
        ground.lose_locks();
        let (mut second, standing) = ground.join();
        assert_eq!(standing.total.unknown, 1);
        ground.come_back(&mut first);
        assert!(matches!(
            settle(&mut first, complete(&running("r")), true),
            Applied::Done
        ));
        assert_eq!(
            ground.total(),
            Amounts {
                charged: 40,
                ..Amounts::NONE
            }
        );
        let mut more = complete(&running("r"));
        more.charged_units = Units(99);
        assert!(matches!(settle(&mut first, more, true), Applied::Broken(_)));
        first.follow(clock::now()).unwrap();
        open(&mut second, "s");
        let heard = first.follow(clock::now()).unwrap();
        assert_eq!(
            heard.len(),
            1,
            "it is on the list of those that listen again"
        );
    });
}

#[test]
fn an_entry_that_is_open_without_an_owner_is_found_crashed() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open(&mut store, "r");
        ground.rows("UPDATE entry SET owner = NULL");
        ground.kill(store);
        let (_store, standing) = ground.join();
        assert_eq!(standing.total.unknown, 1);
    });
}

#[test]
fn hours_before_this_month_start_as_one_sum() {
    on_each(|ground| {
        let mut store = ground.fresh();
        let now = clock::now();
        for (name, at) in [("old", ADMITTED), ("older", Timestamp(0)), ("now", now)] {
            let mut record = complete(&running(name));
            record.admitted_at = at;
            settle(&mut store, record, true);
        }
        store.close();
        ground.kill(store);
        let (_store, standing) = ground.join();
        let accounts: Vec<_> = standing
            .accounts
            .iter()
            .map(|p| (p.hour, p.amounts.charged))
            .collect();
        assert_eq!(accounts, [(Hour(0), 80), (Hour::of(now), 40)]);
    });
}

#[test]
fn a_total_holds_what_others_did_only_once_it_was_heard_of() {
    on_each(|ground| {
        let mut first = ground.fresh();
        let (mut second, _) = ground.join();
        open(&mut first, "r");
        settle(&mut first, complete(&running("r")), true);
        open(&mut second, "s");
        let own = Amounts {
            reserved: 100,
            open: 1,
            ..Amounts::NONE
        };
        assert_eq!(second.total().unwrap(), own);
        second.follow(clock::now()).unwrap();
        assert_eq!(second.total().unwrap(), Amounts { charged: 40, ..own });
    });
}
