//! The rules of every store, on a real database: what each write does to the entry and to the sums.

mod bill;
mod crash;
mod recount;

use super::*;
use crate::budget::{Hour, Units};
use crate::clock::{self, Timestamp};
use crate::config;
use crate::ledger::entry::{End, Known, Opened, Opening};
use crate::ledger::queue::Abandon;
use crate::ledger::rules::Abandoned;
use crate::ledger::store::{Applied, BillLine, Books, Filter, Order, Settlement, Standing, Write};
use crate::ledger::sums::Amounts;
use crate::record::{Attempt, EndedBy, Outcome, Record, State, UsageSource};
use crate::tenant::TenantName;
use std::sync::Arc;
use std::time::Duration;

fn write(store: &mut Held, write: Write) -> Applied {
    let committed = store.commit(&[write], clock::now()).unwrap();
    committed.applied.into_iter().next().unwrap()
}

fn open_as(store: &mut Held, number: i64, opening: Opening) -> Opened {
    let applied = write(store, Write::Open(Box::new(opening), number));
    let Applied::Opened(opened) = applied else {
        panic!("{applied:?}");
    };
    opened
}

fn open(store: &mut Held, id: &str) -> Opened {
    open_as(store, 1, opening(id))
}

fn settle(store: &mut Held, record: Record, shown: bool) -> Applied {
    let end = End {
        shown,
        ..ended(record)
    };
    write(store, Write::Settle(Arc::new(end)))
}

fn known(store: &mut Held, name: &str) -> Known {
    store.find(&acme(), &id(name)).unwrap().unwrap()
}

#[test]
fn an_entry_is_open_and_reserves_then_settles_and_charges() {
    on_each(|ground| {
        let mut store = ground.fresh();
        assert_eq!(open(&mut store, "r"), Opened::New);
        let reserved = Amounts {
            reserved: 100,
            open: 1,
            ..Amounts::NONE
        };
        assert_eq!(ground.total(), reserved);
        let record = complete(&running("r"));
        assert!(matches!(
            settle(&mut store, record.clone(), true),
            Applied::Done
        ));
        assert_eq!(
            ground.total(),
            Amounts {
                charged: 40,
                ..Amounts::NONE
            }
        );
        let found = known(&mut store, "r");
        assert_eq!((found.record, found.shown), (record, true));
        let usage = ground.usage();
        assert_eq!(
            (usage.requests, usage.completed, usage.charged_units),
            (1, 1, 40)
        );
    });
}

#[test]
fn an_id_that_runs_or_was_shown_conflicts() {
    on_each(|ground| {
        let mut store = ground.fresh();
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
        assert_eq!(ground.total().charged, 40);
    });
}

#[test]
fn an_id_is_its_tenants_own() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open(&mut store, "r");
        let mut theirs = opening("r");
        theirs.record.tenant = TenantName::new("other");
        assert_eq!(open_as(&mut store, 2, theirs), Opened::New);
        assert_eq!(ground.total().open, 2);
    });
}

#[test]
fn an_id_that_ended_with_nothing_shown_reopens_and_its_charges_add_up_in_their_own_hours() {
    on_each(|ground| {
        let mut store = ground.fresh();
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
            ground.total(),
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
        let second = End {
            charge: Units(40),
            ..ended(second)
        };
        write(&mut store, Write::Settle(Arc::new(second)));
        let charged = ground.rows("SELECT hour, charged FROM account ORDER BY hour");
        let hour = Hour::of(ADMITTED).0;
        let row = |hour: i64, charged: i64| [hour.to_string(), charged.to_string()];
        assert_eq!(charged, [row(hour, 7), row(hour + 2, 40)]);
        let usage = ground.usage();
        assert_eq!((usage.requests, usage.charged_units), (1, 47));
    });
}

#[test]
fn an_id_that_ended_with_nothing_shown_does_not_reopen_for_another_payload() {
    on_each(|ground| {
        let mut store = ground.fresh();
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
    });
}

#[test]
fn an_id_that_awaits_its_bill_does_not_reopen() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open(&mut store, "r");
        let mut record = failed(&running("r"), 30);
        record.usage_source = UsageSource::Unknown;
        settle(&mut store, record, false);
        assert_eq!(
            ground.total(),
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
    });
}

#[test]
fn a_second_settlement_is_refused_and_charges_nothing() {
    on_each(|ground| {
        let mut store = ground.fresh();
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
            ground.total(),
            Amounts {
                charged: 40,
                ..Amounts::NONE
            }
        );
    });
}

#[test]
fn a_settlement_that_is_no_end_is_refused() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open(&mut store, "r");
        assert!(matches!(
            settle(&mut store, running("r"), true),
            Applied::Broken(_)
        ));
        assert_eq!(ground.total().open, 1);
    });
}

#[test]
fn a_request_that_was_served_without_an_entry_is_settled_all_the_same() {
    on_each(|ground| {
        let mut store = ground.fresh();
        settle(&mut store, complete(&running("r")), true);
        assert_eq!(
            ground.total(),
            Amounts {
                charged: 40,
                ..Amounts::NONE
            }
        );
        let found = known(&mut store, "r");
        assert!(found.is_of(&print("payload")) && !found.is_of(&print("another")));
        let mut later = complete(&running("r"));
        later.admitted_at = ADMITTED.plus(Duration::from_secs(60));
        settle(&mut store, later, true);
        assert_eq!(
            ground.total().charged,
            80,
            "its id was used twice while nobody could look"
        );
        assert_eq!(known(&mut store, "r").record.charged_units, Units(80));
    });
}

#[test]
fn what_an_id_was_charged_before_is_added_by_the_ledger_where_the_gateway_does_not_know() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open(&mut store, "r");
        settle(&mut store, failed(&running("r"), 7), false);
        // opened again, but the answer did not come in time: the gateway served it as if it were new
        let mut again = opening("r");
        again.record.admitted_at = ADMITTED.plus(Duration::from_secs(60));
        open_as(&mut store, 2, again.clone());
        settle(&mut store, complete(&again.record), true);
        assert_eq!(known(&mut store, "r").record.charged_units, Units(47));
        assert_eq!(ground.total().charged, 47);
        assert_eq!(ground.usage().charged_units, 47);
    });
}

#[test]
fn the_same_opening_tried_again_finds_its_own_entry() {
    on_each(|ground| {
        let mut store = ground.fresh();
        assert_eq!(open_as(&mut store, 5, opening("r")), Opened::New);
        assert_eq!(open_as(&mut store, 5, opening("r")), Opened::New);
        assert_eq!(ground.total().open, 1);
    });
}

#[test]
fn an_abandoned_opening_ends_and_frees_its_budget_but_a_late_settlement_still_counts() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open_as(&mut store, 5, opening("r"));
        let abandon = Abandon {
            tenant: acme(),
            id: id("r"),
            opening: 5,
            why: Abandoned::Late,
        };
        write(&mut store, Write::Abandon(abandon.clone()));
        assert_eq!(ground.total(), Amounts::NONE);
        assert_eq!(
            known(&mut store, "r").record.ended_by,
            Some(EndedBy::Gateway)
        );
        settle(&mut store, complete(&running("r")), true);
        assert_eq!(
            ground.total(),
            Amounts {
                charged: 40,
                ..Amounts::NONE
            }
        );
        write(&mut store, Write::Abandon(abandon));
        assert_eq!(known(&mut store, "r").record.state, State::Completed);
    });
}

#[test]
fn abandoning_does_not_touch_another_opening_of_the_id() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open_as(&mut store, 5, opening("r"));
        let abandon = Abandon {
            tenant: acme(),
            id: id("r"),
            opening: 4,
            why: Abandoned::Left,
        };
        write(&mut store, Write::Abandon(abandon));
        assert_eq!(ground.total().open, 1);
    });
}

#[test]
fn a_bad_entry_is_left_out_of_its_group_and_the_others_are_written() {
    on_each(|ground| {
        let mut store = ground.fresh();
        ground.forbid("bad");
        let writes = ["a", "bad", "b"].map(|name| Write::Open(Box::new(opening(name)), 1));
        let committed = store.commit(&writes, clock::now()).unwrap();
        let kinds: Vec<bool> = committed
            .applied
            .iter()
            .map(|a| matches!(a, Applied::Opened(Opened::New)))
            .collect();
        assert_eq!(kinds, [true, false, true]);
        assert!(matches!(&committed.applied[1], Applied::Failed(e) if e.is_of_one_entry()));
        assert_eq!(ground.total().open, 2);
    });
}

#[test]
fn a_stored_record_that_cannot_be_read_still_holds_its_id_and_its_sums() {
    on_each(|ground| {
        let mut store = ground.fresh();
        open(&mut store, "r");
        settle(&mut store, complete(&running("r")), true);
        open_as(&mut store, 2, opening("s"));
        ground.rows("UPDATE entry SET record = '{oops'");
        assert!(matches!(
            open_as(&mut store, 3, opening("r")),
            Opened::Conflict(_)
        ));
        let found = known(&mut store, "r");
        assert_eq!(
            (found.record.charged_units, found.record.state),
            (Units(40), State::Completed)
        );
        ground.kill(store);
        let (_store, standing) = ground.join();
        assert_eq!(
            standing.total,
            Amounts {
                charged: 40,
                held: 100,
                unknown: 1,
                ..Amounts::NONE
            }
        );
    });
}

#[test]
fn sums_outlive_the_entries_that_retention_removes() {
    on_each(|ground| {
        let mut store = ground.fresh();
        for name in ["old", "lost"] {
            open(&mut store, name);
        }
        settle(&mut store, complete(&running("old")), true);
        ground.kill(store);
        let (mut store, _) = ground.join();
        let mut now = opening("open");
        now.record.admitted_at = ADMITTED;
        open_as(&mut store, 2, now);
        let mut fresh = complete(&running("fresh"));
        fresh.ended_at = Some(clock::now());
        settle(&mut store, fresh, true);
        let before = ground.total();
        while store
            .forget(ADMITTED.plus(Duration::from_secs(60)))
            .unwrap()
        {}
        let left = ground
            .to_read()
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
        assert_eq!(ground.total(), before);
        assert_eq!(ground.usage().charged_units, 80);
        assert_eq!(open_as(&mut store, 9, opening("old")), Opened::New);
    });
}

#[test]
fn forgetting_goes_on_past_a_round_and_past_what_a_wrong_clock_wrote() {
    on_each(|ground| {
        let mut store = ground.fresh();
        let record = |n: i64| {
            let mut record = complete(&running(&format!("r{n}")));
            if n < 300 {
                record.ended_at = Some(Timestamp(i64::MAX));
            }
            Write::Settle(Arc::new(ended(record)))
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
        assert_eq!(ground.number("SELECT count(*) FROM entry"), 300);
    });
}
