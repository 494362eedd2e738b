//! The queue of a pool with real slots.

use super::*;

#[test]
fn a_free_slot_is_given_at_once_and_a_returned_one_to_the_first_in_line() {
    let pool = Pool::new(1, Some(RULES), &[""]);
    let running = pool.enter(0).unwrap().take_now().unwrap();
    let mut waiting = [pool.enter(0).unwrap(), pool.enter(0).unwrap()];
    assert!(waiting.iter_mut().all(|w| w.take_now().is_none()));
    assert_eq!((pool.gauge("t0"), pool.used()), (2, (1, 1)));
    drop(running);
    let granted = waiting[0].take_now().unwrap();
    assert!(waiting[1].take_now().is_none());
    assert_eq!((pool.gauge("t0"), pool.used()), (1, (1, 1)));
    drop(granted);
    drop(waiting);
    assert_eq!((pool.gauge("t0"), pool.used()), (0, (0, 0)));
}

#[test]
fn a_newcomer_does_not_take_a_slot_whose_return_is_not_told_yet() {
    let pool = Pool::new(1, Some(RULES), &["", ""]);
    let running = pool.enter(0).unwrap().take_now().unwrap();
    let mut first = pool.enter(0).unwrap();
    running.pool.put_back();
    let mut newcomer = pool.enter(1).unwrap();
    assert!(newcomer.take_now().is_none());
    assert!(first.take_now().is_some());
}

#[test]
fn slots_given_to_one_that_has_left_go_to_the_next() {
    let pool = Pool::new(1, Some(RULES), &[""]);
    let running = pool.enter(0).unwrap().take_now();
    let first = pool.enter(0).unwrap();
    let left = pool.enter(0).unwrap();
    let mut last = pool.enter(0).unwrap();
    drop(left);
    assert_eq!(pool.queue.len(), 2);
    drop(running);
    // the first has been given the slots and never looks
    assert!(last.take_now().is_none());
    drop(first);
    assert!(last.take_now().is_some());
}

#[test]
fn a_tenants_own_slots_are_waited_for_and_hold_up_nobody_else() {
    let pool = Pool::new(3, Some(RULES), &["max_streams = 1", ""]);
    let running = pool.enter(0).unwrap().take_now().unwrap();
    let mut waiting = pool.enter(0).unwrap();
    assert!(waiting.take_now().is_none());
    assert!(pool.enter(1).unwrap().take_now().is_some());
    assert_eq!(
        pool.used(),
        (1, 1),
        "nothing is held for one that cannot run"
    );
    drop(running);
    assert!(waiting.take_now().is_some());
}

#[test]
fn a_slot_of_the_tenant_that_returns_in_another_pool_is_not_missed() {
    let pool = Pool::new(3, Some(RULES), &["max_streams = 1"]);
    let other = PoolQueue::new("q", Slots::new(Some(3)), Some(RULES), &pool.metrics);
    let tenant = pool.tenant(0);
    let mut running = pool.enter(0).unwrap().take_now();
    let mut turns = String::new();
    let mut here = pool.enter(0).unwrap();
    let mut there = other.enter(tenant, Units(1)).unwrap();
    for _ in 0..6 {
        drop(running.take());
        if let Some(granted) = here.take_now() {
            (running, here) = (Some(granted), pool.enter(0).unwrap());
            turns.push('h');
        } else if let Some(granted) = there.take_now() {
            (running, there) = (Some(granted), other.enter(tenant, Units(1)).unwrap());
            turns.push('t');
        }
    }
    assert_eq!(turns.len(), 6, "a return went unnoticed: {turns}");
    assert!(turns.matches('h').count() >= 2, "{turns}");
    assert!(turns.matches('t').count() >= 2, "{turns}");
}

#[test]
fn a_slot_that_returns_between_the_look_for_it_and_the_line_is_not_missed() {
    let pool = Pool::new(3, Some(RULES), &["max_streams = 1"]);
    // the look for a slot is over, nobody watches yet, and the slot is free again
    let tenant = pool.tenant(0);
    let mut turns = Vec::new();
    let lined_up = pool.queue.line_up(
        &mut pool.queue.lock(),
        (tenant, Units(1)),
        clock::instant(),
        &mut turns,
    );
    tell(turns);
    assert!(lined_up.unwrap().take_now().is_some());
}

#[test]
fn without_a_queue_full_means_no_and_says_whose_slots_are_taken() {
    let pool = Pool::new(2, None, &["max_streams = 1", ""]);
    let _running = pool.enter(0).unwrap().take_now();
    let refused = pool.enter(0).unwrap_err();
    assert_eq!((refused.bound, refused.tenant_full), (None, true));
    assert_eq!(refused.retry_after, Duration::from_secs(1));
    let _other = pool.enter(1).unwrap().take_now();
    let refused = pool.enter(1).unwrap_err();
    assert_eq!((refused.bound, refused.tenant_full), (None, false));
    assert_eq!(pool.used(), (2, 1));
}

#[test]
fn a_raised_bound_gives_turns_at_once() {
    let pool = Pool::new(1, Some(RULES), &["max_streams = 2"]);
    let _running = pool.enter(0).unwrap().take_now();
    let mut waiting = [pool.enter(0).unwrap(), pool.enter(0).unwrap()];
    pool.slots.set_max(Some(9));
    let first = waiting[0].take_now();
    assert!(first.is_some() && waiting[1].take_now().is_none());
    pool.tenant(0).slots().set_max(None);
    assert!(waiting[1].take_now().is_some());
}

#[test]
fn a_measured_pace_refuses_a_hopeless_wait_at_once() {
    let rules = config::Queue {
        max_wait: Duration::from_nanos(1),
        ..RULES
    };
    let pool = Pool::new(1, Some(rules), &[""]);
    let _first = pool.enter(0).unwrap();
    assert!(pool.enter(0).is_ok(), "nothing is measured yet");
    drop(_first);
    for _ in 0..3 {
        drop(pool.enter(0).unwrap().take_now());
        spin();
    }
    let _running = pool.enter(0).unwrap();
    let refused = pool.enter(0).unwrap_err();
    assert_eq!(refused.bound, Some(Bound::Wait));
    assert!(refused.retry_after > Duration::from_nanos(1));
}

#[test]
fn the_mean_wait_is_of_turns_and_of_those_that_wait_for_the_pool() {
    let pool = Pool::new(1, Some(RULES), &["max_streams = 1", ""]);
    let running = pool.enter(0).unwrap().take_now();
    assert_eq!(pool.queue.mean_wait(), Duration::ZERO);
    let _blocked_by_itself = pool.enter(0).unwrap();
    let _waiting = pool.enter(1).unwrap();
    spin();
    assert!(pool.queue.mean_wait() >= Duration::from_micros(50));
    drop(running);
    assert!(pool.queue.mean_wait() >= Duration::from_micros(10));
}

#[tokio::test]
async fn a_wait_goes_on_over_dropped_futures_and_ends_with_the_slots() {
    let pool = Pool::new(1, Some(RULES), &[""]);
    let running = pool.enter(0).unwrap().take_now();
    let mut waiting = pool.enter(0).unwrap();
    for _ in 0..3 {
        assert!(poll(&mut Box::pin(waiting.granted())).is_pending());
    }
    drop(running);
    assert_eq!(pool.used(), (1, 1));
    drop(waiting.granted().await.unwrap());
    assert_eq!(pool.used(), (0, 0));
}

#[tokio::test]
async fn a_wait_is_over_when_it_has_lasted_for_as_long_as_it_may() {
    let rules = config::Queue {
        max_wait: MS(5),
        ..RULES
    };
    let pool = Pool::new(1, Some(rules), &[""]);
    let running = pool.enter(0).unwrap().take_now();
    let mut waiting = pool.enter(0).unwrap();
    let over = waiting.granted().await.unwrap_err();
    let told = TimedOut {
        retry_after: Duration::from_secs(1),
    };
    assert_eq!((over, pool.gauge("t0"), pool.queue.len()), (told, 0, 0));
    drop(running);
    assert_eq!(
        pool.used(),
        (0, 0),
        "nothing is given to one that timed out"
    );
}
