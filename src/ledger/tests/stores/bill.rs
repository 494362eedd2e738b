//! Bills: what they settle, and what they leave alone.

use super::*;

fn line(name: &str, units: u64) -> BillLine {
    BillLine {
        line: 1,
        tenant: None,
        id: id(name),
        units: Units(units),
    }
}

/// Two entries that a crash left with 100 units held each, one whose usage is known, and one that runs.
fn staged(ground: &Ground) -> (Held, Box<dyn Books>) {
    let mut store = ground.fresh();
    for name in ["lost", "more", "fine"] {
        open(&mut store, name);
    }
    settle(&mut store, complete(&running("fine")), true);
    ground.kill(store);
    let (mut store, _) = ground.join();
    open(&mut store, "runs");
    (store, ground.to_reconcile())
}

#[test]
fn a_bill_settles_what_awaits_it_once_and_nothing_else() {
    on_each(|ground| {
        let (mut store, mut books) = staged(ground);
        let names = [
            ("lost", 37),
            ("more", 700),
            ("fine", 9),
            ("runs", 1),
            ("stranger", 5),
        ];
        let bill = names.map(|(name, units)| line(name, units));
        let held = Settlement::Reconciled {
            before: Units(0),
            held: Units(100),
        };
        let rest = [
            Settlement::Known { charged: Units(40) },
            Settlement::Running,
            Settlement::NotFound,
        ];
        let first = books.reconcile(&bill, false).unwrap();
        assert_eq!(first[..2], [held.clone(), held]);
        assert_eq!(first[2..], rest);
        let after = Amounts {
            charged: 40 + 37 + 700,
            reserved: 100,
            open: 1,
            ..Amounts::NONE
        };
        assert_eq!(ground.total(), after);
        let second = books.reconcile(&bill, false).unwrap();
        assert_eq!(second[..2], [Settlement::Already, Settlement::Already]);
        assert_eq!(second[2..], rest);
        assert_eq!(ground.total(), after);
        let record = known(&mut store, "lost").record;
        assert_eq!(record.usage_source, UsageSource::Reconciled);
        assert_eq!(
            (record.state, record.ended_by),
            (State::Failed, Some(EndedBy::Crash))
        );
    });
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    on_each(|ground| {
        let (_store, mut books) = staged(ground);
        let bill = [
            line("lost", 37),
            line("lost", 37),
            line("lost", 38),
            line("stranger", 1),
        ];
        let before = ground.total();
        let dry = books.reconcile(&bill, true).unwrap();
        assert_eq!(ground.total(), before);
        assert_eq!(
            dry[1..3],
            [
                Settlement::Already,
                Settlement::AlreadyOtherwise { charged: Units(37) }
            ]
        );
        assert_eq!(books.reconcile(&bill, false).unwrap(), dry);
    });
}

#[test]
fn a_bill_of_the_same_id_with_other_units_changes_nothing() {
    on_each(|ground| {
        let (_store, mut books) = staged(ground);
        books.reconcile(&[line("lost", 37)], false).unwrap();
        let again = books.reconcile(&[line("lost", 38)], false).unwrap();
        assert_eq!(again, [Settlement::AlreadyOtherwise { charged: Units(37) }]);
        assert_eq!(ground.total().charged, 77);
    });
}

#[test]
fn an_id_of_two_tenants_is_settled_only_where_its_tenant_is_named() {
    on_each(|ground| {
        let (mut store, mut books) = staged(ground);
        let mut theirs = complete(&running("lost"));
        theirs.tenant = TenantName::new("other");
        settle(&mut store, theirs, true);
        let ambiguous = books.reconcile(&[line("lost", 37)], false).unwrap();
        assert_eq!(
            ambiguous,
            [Settlement::Ambiguous(vec![
                acme(),
                TenantName::new("other")
            ])]
        );
        let named = BillLine {
            tenant: Some(acme()),
            ..line("lost", 37)
        };
        assert!(matches!(
            books.reconcile(&[named], false).unwrap()[..],
            [Settlement::Reconciled { .. }]
        ));
    });
}

#[test]
fn a_running_gateway_hears_what_a_bill_did() {
    on_each(|ground| {
        let (mut store, mut books) = staged(ground);
        books
            .reconcile(&[line("lost", 37), line("more", 700)], false)
            .unwrap();
        let followed = store.follow(clock::now()).unwrap();
        let moved = followed
            .iter()
            .fold(Amounts::NONE, |sum, p| sum.plus(p.amounts));
        let want = Amounts {
            charged: 737,
            held: -200,
            unknown: -2,
            ..Amounts::NONE
        };
        assert_eq!(moved, want);
    });
}
