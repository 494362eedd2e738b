//! What is PostgreSQL's own: the way to a server, who lives, what a server answers.

mod answers;
mod direct;
mod doubt;
mod liveness;
mod mingled;
mod month;
mod outage;
mod way;

use super::*;
use crate::config::LedgerStore;
use crate::ledger::entry::{End, Opened};
use crate::ledger::owner;
use crate::ledger::store::Applied;
use crate::ledger::tests::*;
use crate::record::Record;
use std::sync::Arc;

fn config_of(database: &Database) -> config::Ledger {
    config::Ledger {
        store: LedgerStore::Postgres(Secret::new(database.url())),
        ..config("unused".as_ref())
    }
}

fn start(url: &str) -> Result<PostgresStore, LedgerError> {
    let url = Secret::new(url.to_owned());
    let config = config("unused".as_ref());
    let mut store = PostgresStore::start(&url, &config, owner::fresh_run())?;
    store.recover(clock::now())?;
    Ok(store)
}

fn join(database: &Database) -> PostgresStore {
    start(&database.url()).unwrap()
}

fn fresh() -> (Database, PostgresStore) {
    let database = Database::new();
    let store = join(&database);
    (database, store)
}

fn write(store: &mut PostgresStore, write: Write) -> Result<Applied, LedgerError> {
    let mut committed = store.commit(&[write], clock::now())?;
    Ok(committed.applied.remove(0))
}

fn open(store: &mut PostgresStore, id: &str) {
    let applied = write(store, Write::Open(Box::new(opening(id)), 1)).unwrap();
    assert!(matches!(applied, Applied::Opened(Opened::New)));
}

fn settlement(record: Record, shown: bool) -> Write {
    Write::Settle(Arc::new(End {
        shown,
        ..ended(record)
    }))
}

fn settle(store: &mut PostgresStore, record: Record) -> Result<Applied, LedgerError> {
    write(store, settlement(record, true))
}

/// What a session of the store's own answers.
fn ask(store: &mut PostgresStore, sql: &'static str) -> String {
    store
        .link
        .run(async |session| Ok(session.client.query_one(sql, &[]).await?.try_get(0)?))
        .unwrap()
}

/// Ends the connections of all runs.
fn cut(database: &Database) {
    database.cut();
    until_gone(database);
}

fn until_gone(database: &Database) {
    until_so("the connections to be gone", || database.connections() == 0);
}

fn sum(postings: &[Posting]) -> Amounts {
    postings
        .iter()
        .fold(Amounts::NONE, |sum, p| sum.plus(p.amounts))
}
