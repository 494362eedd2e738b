//! The thread over a connection that is lost and comes back: nothing is lost, nothing is counted twice.

use super::*;
use crate::ledger::{Ledger, Opened};

/// A ledger with ten requests open, whose server then takes no connections.
async fn cut_off(database: &Database) -> (Ledger, Ears) {
    let (ledger, _, ears) = crate::ledger::tests::start(&config_of(database));
    for n in 0..10 {
        let opened = ledger.open(opening(&format!("r{n}"))).await;
        assert_eq!(opened, Ok(Opened::New));
    }
    apart(|| {
        database.admit(false);
        database.cut();
    });
    (ledger, ears)
}

#[tokio::test]
async fn what_is_settled_while_the_server_is_away_is_written_when_it_is_back() {
    let database = Database::new();
    let (ledger, ears) = cut_off(&database).await;
    for n in 0..10 {
        ledger.settle(ended(complete(&running(&format!("r{n}")))));
    }
    let error = ledger.open(opening("refused")).await.unwrap_err();
    assert!(error.to_string().contains("postgres://"), "{error}");
    until("the trouble to last", || ears.failures() > 4).await;
    let found = ledger.find(&acme(), &id("r3")).await.unwrap().unwrap();
    assert_eq!(found.record, complete(&running("r3")));
    apart(|| database.admit(true));
    until("all to be settled", || ears.state() == Some((0, 0))).await;
    assert_eq!(ledger.find(&acme(), &id("refused")).await, Ok(None));
    assert_eq!(ledger.open(opening("next")).await, Ok(Opened::New));
    ledger.close().unwrap();
    let charged = apart(|| database.rows("SELECT charged, open FROM account"));
    assert_eq!(charged, [["400", "1"]]);
}

#[tokio::test]
async fn a_connection_that_is_cut_again_and_again_loses_and_doubles_nothing() {
    let database = Database::new();
    let (ledger, _, ears) = crate::ledger::tests::start(&config_of(&database));
    let mut opened = Vec::new();
    for n in 0..200 {
        if n % 10 == 5 {
            apart(|| database.cut());
        }
        let name = format!("r{n}");
        // Refused or not, some openings and settlements are under way when the connection goes.
        if ledger.open(opening(&name)).await.is_ok() {
            ledger.settle(ended(complete(&running(&name))));
            opened.push(name);
        }
    }
    assert!(opened.len() > 20, "only {} were opened", opened.len());
    until("all to be settled", || ears.state() == Some((0, 0))).await;
    ledger.close().unwrap();
    let sums = apart(|| database.rows("SELECT sum(charged), sum(open), sum(unknown) FROM account"));
    let charged = (opened.len() * 40).to_string();
    assert_eq!(sums, [[charged.as_str(), "0", "0"]]);
    let whole = "SELECT count(*) FROM entry WHERE state = 'COMPLETED'";
    let whole = apart(|| database.rows(whole));
    assert_eq!(whole, [[opened.len().to_string()]]);
}

#[tokio::test]
async fn a_gateway_that_was_cut_off_hears_what_the_others_did_meanwhile() {
    let database = Database::new();
    let (ledger, ears) = cut_off(&database).await;
    until("the loss to be noticed", || ears.failures() > 0).await;
    apart(|| {
        database.admit(true);
        let mut other = join(&database);
        settle(&mut other, complete(&running("other"))).unwrap();
    });
    until("the other's charge to be heard of", || {
        let charged = ears
            .adjustments()
            .iter()
            .map(|p| p.amounts.charged)
            .sum::<i64>();
        charged == 40
    })
    .await;
    ledger.close().unwrap();
}
