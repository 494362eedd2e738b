//! The order of turns, on a virtual clock.

use super::*;

#[test]
fn within_a_tenant_who_came_first_goes_first() {
    let mut fair = FairQueue::default();
    let (rules, name) = (Row::new().rules, TenantName::new("a"));
    let ask = |cost| Ask {
        tenant: &name,
        weight: 1,
        cost: Units(cost),
        max_queued: None,
        pace: Pace::default(),
    };
    let now = clock::instant();
    for (number, cost) in [(1, 9000), (2, 16), (3, 500)] {
        fair.enter(&ask(cost), &rules, now, number).unwrap();
    }
    let order: Vec<_> = (0..3)
        .filter_map(|_| fair.next(now, |_| Some(())).map(|n| n.waiter))
        .collect();
    assert_eq!(order, [1, 2, 3]);
}

#[test]
fn turns_go_by_weight() {
    let mut row = Row::new().weigh("a", 2);
    for _ in 0..12 {
        row.enter("a", 100);
    }
    for _ in 0..6 {
        row.enter("o", 100);
    }
    let order = row.turns(18);
    for n in [3, 6, 9, 12, 15, 18] {
        let others = order[..n].matches('o').count();
        assert!(others.abs_diff(n / 3) <= 1, "{order}");
    }
}

#[test]
fn a_tenant_with_long_requests_does_not_starve_one_with_short_ones() {
    let mut row = Row::new();
    for _ in 0..6 {
        row.enter("a", 2000);
    }
    for _ in 0..6 {
        row.enter("o", 40);
    }
    assert_eq!(row.turns(12), "aooooooaaaaa");
}

#[test]
fn requests_without_output_do_not_take_every_turn() {
    let mut row = Row::new();
    for _ in 0..400 {
        row.enter("z", 0);
    }
    row.enter("a", 1600);
    row.enter("a", 1600);
    let order = row.turns(402);
    assert!(order.rfind('a').unwrap() <= 110, "{order}");
}

#[test]
fn one_that_comes_after_a_rest_is_owed_nothing() {
    let mut row = Row::new();
    row.enter("b", 100);
    row.next();
    for _ in 0..50 {
        row.enter("a", 100);
    }
    row.turns(40);
    for _ in 0..10 {
        row.enter("b", 100);
    }
    let order = row.turns(10);
    assert!(order.matches('b').count().abs_diff(5) <= 1, "{order}");
}

#[test]
fn a_free_slot_that_nobody_waits_for_ends_what_is_owed() {
    let mut row = Row::new();
    row.enter("a", 100_000);
    row.next();
    row.fair.rest();
    for _ in 0..10 {
        row.enter("a", 100);
        row.enter("b", 100);
    }
    let order = row.turns(10);
    assert!(order.matches('b').count().abs_diff(5) <= 1, "{order}");
}

#[test]
fn a_debt_lasts_while_others_wait() {
    let mut row = Row::new();
    row.enter("a", 1000);
    row.enter("b", 100);
    row.next();
    row.enter("a", 100);
    for _ in 0..20 {
        row.enter("b", 100);
    }
    assert_eq!(row.turns(20).find('a'), Some(10));
}

#[test]
fn a_tenant_without_a_slot_of_its_own_blocks_nobody_and_saves_up_no_turns() {
    let mut row = Row::new();
    row.full = vec!["a"];
    for _ in 0..20 {
        row.enter("a", 100);
    }
    for _ in 0..40 {
        row.enter("b", 100);
    }
    assert_eq!(row.turns(20), "b".repeat(20));
    row.full.clear();
    let order = row.turns(10);
    assert!(order.matches('a').count().abs_diff(5) <= 1, "{order}");
    row.full = vec!["a", "b"];
    assert_eq!(row.next(), None);
    assert_eq!(row.fair.len(), 30);
}

#[test]
fn leaving_gives_the_place_back_and_harms_nobody() {
    let mut row = Row::new();
    let tickets: Vec<_> = (0..4).map(|_| row.enter("a", 100)).collect();
    row.enter("b", 100);
    assert!(row.fair.leave(&tickets[0]) && row.fair.leave(&tickets[2]));
    assert!(!row.fair.leave(&tickets[0]), "a place is given back once");
    assert_eq!((row.fair.len(), row.turns(9)), (3, "aba".to_owned()));
    assert!(!row.fair.leave(&tickets[1]), "its turn has come");
    assert!(row.fair.is_empty());
}

#[test]
fn the_line_is_bounded_in_all_and_for_each_tenant() {
    let mut row = Row::new();
    row.rules.max_len = 3;
    let bound = |r: Result<Ticket, (Bound, Duration)>| r.unwrap_err().0;
    row.try_enter("a", 1, Some(2)).unwrap();
    row.try_enter("a", 1, Some(2)).unwrap();
    assert_eq!(bound(row.try_enter("a", 1, Some(2))), Bound::OfTenant);
    row.try_enter("b", 1, None).unwrap();
    assert_eq!(bound(row.try_enter("b", 1, None)), Bound::Length);
    row.next();
    assert_eq!(bound(row.try_enter("c", 1, Some(0))), Bound::OfTenant);
    row.try_enter("b", 1, None).unwrap();
}

#[test]
fn a_wait_that_would_be_too_long_is_refused_with_what_was_to_be_expected() {
    let mut row = Row::new();
    row.pace.pool = MS(300);
    for _ in 0..3 {
        row.enter("a", 100);
    }
    let refused = row.try_enter("a", 100, None).unwrap_err();
    assert_eq!(refused, (Bound::Wait, MS(1200)));
    row.next();
    row.enter("a", 100);
}

#[test]
fn the_expected_wait_is_by_the_own_place_and_not_by_the_whole_line() {
    let mut row = Row::new();
    row.rules.max_wait = MS(1200);
    for _ in 0..100 {
        row.enter("a", 100);
    }
    row.pace.pool = MS(300);
    assert_eq!(row.try_enter("a", 100, None).unwrap_err().1, MS(30_300));
    row.enter("b", 100);
    row.enter("b", 100);
    let expected = |row: &Row, t| row.fair.expected(&TenantName::new(t), &row.pace);
    // each of its own is behind one of the other's
    assert_eq!(expected(&row, "b"), MS(300) * 6);
    assert_eq!(expected(&row, "c"), MS(300) * 3);
}

#[test]
fn a_tenant_that_waits_for_its_own_slots_is_told_its_own_pace() {
    let mut row = Row::new();
    row.pace.tenant = MS(400);
    row.enter("a", 100);
    row.enter("a", 100);
    let refused = row.try_enter("a", 100, None).unwrap_err();
    assert_eq!(refused, (Bound::Wait, MS(1200)));
}

#[test]
fn the_wait_for_a_slot_of_its_own_is_not_the_pools() {
    let mut row = Row::new();
    row.full = vec!["a"];
    row.enter("a", 100);
    row.now += MS(700);
    assert_eq!(row.next(), None);
    row.now += MS(300);
    assert_eq!(row.fair.mean_age(row.now), MS(300));
    row.full.clear();
    let next = row.fair.next(row.now, |_| Some(())).unwrap();
    assert_eq!((next.waited, next.waited_for_pool), (MS(1000), MS(300)));
    assert_eq!(row.fair.mean_age(row.now), Duration::ZERO);
}

#[test]
fn tenants_that_owe_nothing_are_forgotten() {
    let mut row = Row::new();
    for n in 0..100_000_u32 {
        let name = TenantName::new(&format!("t{n}"));
        let ask = Ask {
            tenant: &name,
            weight: 1,
            cost: Units(100),
            max_queued: None,
            pace: Pace::default(),
        };
        row.fair.enter(&ask, &row.rules, row.now, "t").unwrap();
        row.enter("a", 10_000);
        assert_eq!(row.turns(2).len(), 2);
    }
    let kept = row.fair.tenants_known();
    assert!(kept <= 1000, "{kept} are remembered");
}
