//! Who lives and who is dead: by the lock of a session, or by long silence.

use super::*;

/// Makes all runs look as if the server had been started anew since.
fn restart_server(database: &Database) {
    database.rows("UPDATE owner SET server = server - 1");
    cut(database);
}

#[test]
fn after_a_restart_of_the_server_the_living_are_given_time_to_come_back() {
    let (database, mut first) = fresh();
    open(&mut first, "r");
    restart_server(&database);
    let mut second = join(&database);
    assert_eq!(second.total().unwrap().open, 1, "it may come back");
    assert_eq!(second.follow(clock::now()), Ok(vec![]));
    assert!(first.probe(clock::now()).is_err());
    first.reopen().unwrap();
    first.probe(clock::now()).unwrap();
    assert!(matches!(
        settle(&mut first, complete(&running("r"))),
        Ok(Applied::Done)
    ));
    assert_eq!(second.follow(clock::now()).unwrap().len(), 1);
    assert_eq!(second.total().unwrap().charged, 40);
}

#[test]
fn who_does_not_come_back_after_a_restart_of_the_server_is_dead_in_the_end() {
    let (database, mut first) = fresh();
    open(&mut first, "r");
    restart_server(&database);
    let mut second = join(&database);
    assert_eq!(second.follow(clock::now()), Ok(vec![]));
    database.rows(
        "UPDATE owner SET seen = seen - 20000000 WHERE server < (SELECT max(server) FROM owner)",
    );
    let heard = hears(&mut second);
    assert_eq!((heard.open, heard.unknown), (-1, 1));
}

/// What a process hears of the others, once there is something to hear.
fn hears(store: &mut PostgresStore) -> Amounts {
    let mut heard = Vec::new();
    until_so("something to be heard", || {
        heard = store.follow(clock::now()).unwrap();
        !heard.is_empty()
    });
    sum(&heard)
}

#[test]
fn a_short_loss_of_the_connection_is_not_taken_for_a_death() {
    let (database, mut first) = fresh();
    open(&mut first, "r");
    let mut second = join(&database);
    cut(&database);
    second.reopen().unwrap();
    assert_eq!(second.follow(clock::now()), Ok(vec![]));
    first.reopen().unwrap();
    assert_eq!(second.follow(clock::now()), Ok(vec![]));
    assert_eq!(second.total().unwrap().open, 1);
}

#[test]
fn a_run_that_was_taken_for_dead_is_told_what_it_missed_and_not_that_it_died() {
    let (database, mut first) = fresh();
    open(&mut first, "mine");
    cut(&database);
    let mut second = join(&database);
    let crashed = Amounts {
        held: 100,
        unknown: 1,
        ..Amounts::NONE
    };
    assert_eq!(second.total().unwrap(), crashed);
    settle(&mut second, complete(&running("theirs"))).unwrap();
    for _ in 0..2 {
        first.reopen().unwrap();
    }
    let theirs = Amounts {
        charged: 40,
        ..Amounts::NONE
    };
    let heard = first.follow(clock::now()).unwrap();
    assert_eq!(sum(&heard), theirs, "its own request runs still");
    settle(&mut first, complete(&running("mine"))).unwrap();
    let heard = second.follow(clock::now()).unwrap();
    assert_eq!(
        sum(&heard),
        Amounts {
            charged: 40,
            held: -100,
            unknown: -1,
            ..Amounts::NONE
        }
    );
    assert_eq!(first.follow(clock::now()), Ok(vec![]));
    let all = Amounts {
        charged: 80,
        ..Amounts::NONE
    };
    assert_eq!((first.total(), second.total()), (Ok(all), Ok(all)));
}

#[test]
fn a_run_that_holds_its_lock_lives_however_silent_it_is() {
    let (database, mut first) = fresh();
    open(&mut first, "r");
    database.rows("UPDATE owner SET seen = 0, server = 0");
    let mut second = join(&database);
    assert_eq!(second.total().unwrap().open, 1);
    assert_eq!(second.follow(clock::now()), Ok(vec![]));
}

#[test]
fn a_run_says_now_and_then_that_it_lives() {
    let (database, mut store) = fresh();
    let seen = || database.rows("SELECT seen FROM owner");
    let before = seen();
    store.follow(clock::now()).unwrap();
    assert_eq!(seen(), before, "not at every look");
    store.noted_at -= BEAT;
    store.follow(clock::now()).unwrap();
    assert_ne!(seen(), before);
}

#[test]
fn a_process_that_stops_in_the_middle_of_a_transaction_does_not_hold_up_the_others() {
    let (database, mut stuck) = fresh();
    let mut other = join(&database);
    stuck
        .link
        .run(async |session| write::begin(session).await)
        .unwrap();
    let error = settle(&mut other, complete(&running("r"))).unwrap_err();
    assert!(error.is_locked(), "{error}");
    until_so("the server to end the stuck transaction", || {
        settle(&mut other, complete(&running("r"))).is_ok()
    });
    let error = stuck.find(&acme(), &id("r")).unwrap_err();
    assert!(error.asks_for_reopening(), "{error}");
    stuck.reopen().unwrap();
    assert!(stuck.find(&acme(), &id("r")).unwrap().is_some());
}
