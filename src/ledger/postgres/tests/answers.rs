//! What a server answers: errors by their kind, plans, durability.

use super::*;
use crate::ledger::error::Kind;
use crate::ledger::store::Books;

/// Settles `r` where the server answers with an error.
fn refused_with(sqlstate: &str) -> (Database, PostgresStore, Result<Applied, LedgerError>) {
    let (database, mut store) = fresh();
    database.forbid("r", sqlstate);
    let result = settle(&mut store, complete(&running("r")));
    (database, store, result)
}

#[test]
fn an_answer_that_is_an_error_is_named_by_its_kind_and_changes_nothing() {
    for (sqlstate, kind, words) in [
        ("53100", Kind::Full, "the disk of its server is full"),
        ("55P03", Kind::Locked, "holds the database locked"),
        ("57014", Kind::Late, "its server takes too long"),
        ("25006", Kind::Standby, "name the server that takes writes"),
        ("42501", Kind::Denied, "check the user"),
        ("58030", Kind::Io, "check its disk"),
        ("XX001", Kind::Broken, "restore the database from a backup"),
        ("57P01", Kind::Unreachable, "check that its server runs"),
    ] {
        let (database, _store, result) = refused_with(sqlstate);
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{sqlstate}: {error}");
        assert!(error.to_string().contains(words), "{sqlstate}: {error}");
        assert!(error.to_string().contains("no such ids here"), "{error}");
        for table in ["entry", "account", "usage"] {
            let count = database.rows(&format!("SELECT count(*) FROM {table}"));
            assert_eq!(count, [["0"]], "{sqlstate}: {table}");
        }
    }
}

#[test]
fn after_an_error_the_connection_is_of_use() {
    let (database, mut store, result) = refused_with("53100");
    assert!(result.unwrap_err().is_full());
    assert!(settle(&mut store, complete(&running("other"))).is_ok());
    database.rows("DROP TRIGGER no ON entry");
    assert!(settle(&mut store, complete(&running("r"))).is_ok());
    assert_eq!(store.total().unwrap().charged, 80);
}

#[test]
fn tables_that_were_changed_give_errors_and_never_a_panic() {
    let (database, mut store) = fresh();
    open(&mut store, "r");
    assert!(store.find(&acme(), &id("r")).is_ok());
    store.own.forget_all();
    database.rows("ALTER TABLE entry ALTER COLUMN shown TYPE text");
    let error = settle(&mut store, complete(&running("r"))).unwrap_err();
    assert!(
        error.asks_for_reopening(),
        "what was prepared fits no more: {error}"
    );
    store.reopen().unwrap();
    let applied = settle(&mut store, complete(&running("r"))).unwrap();
    assert!(matches!(applied, Applied::Failed(e) if e.is_of_one_entry()));
    database.rows("DROP TABLE entry");
    store.reopen().unwrap();
    assert!(settle(&mut store, complete(&running("r"))).is_err());
    assert!(store.forget(clock::now()).is_err());
    let url = Secret::new(database.url());
    let books = PostgresBooks::to_read(&url).unwrap();
    assert!(books.named(&id("r"), None).is_err());
}

#[test]
fn a_word_that_is_none_of_ours_is_of_one_entry() {
    let (database, mut store) = fresh();
    open(&mut store, "r");
    open(&mut store, "s");
    database.rows("UPDATE entry SET state = 'GONE' WHERE request_id = 'r'");
    let error = store.find(&acme(), &id("r")).unwrap_err();
    assert!(
        error.is_of_one_entry() && error.to_string().contains("column state holds \"GONE\""),
        "{error}"
    );
    let applied = settle(&mut store, complete(&running("r"))).unwrap();
    assert!(matches!(applied, Applied::Failed(e) if e.is_of_one_entry()));
    assert!(matches!(
        settle(&mut store, complete(&running("s"))),
        Ok(Applied::Done)
    ));
}

#[test]
fn a_text_with_a_character_that_cannot_be_stored_is_stored_without_it() {
    let (_database, mut store) = fresh();
    let mut record = complete(&running("r"));
    record.model = "a\0b".into();
    record.error = Some("c\0d".into());
    settle(&mut store, record).unwrap();
    let found = store.find(&acme(), &id("r")).unwrap().unwrap().record;
    assert_eq!(
        (found.model.as_str(), found.error.as_deref()),
        ("a\u{fffd}b", Some("c\0d"))
    );
}

#[test]
fn durability_power_waits_for_the_servers_disk() {
    let database = Database::new();
    for (durability, synchronous) in [(Durability::Process, "off"), (Durability::Power, "on")] {
        let config = config::Ledger {
            durability,
            ..config_of(&database)
        };
        let url = Secret::new(database.url());
        let mut store = PostgresStore::start(&url, &config, owner::fresh_run()).unwrap();
        store.recover(clock::now()).unwrap();
        assert_eq!(ask(&mut store, "SHOW synchronous_commit"), synchronous);
        store.configure(&config_of(&database));
        assert_eq!(ask(&mut store, "SHOW synchronous_commit"), "off");
    }
}

#[test]
fn what_a_gateway_reads_is_found_by_index_however_small_the_tables_are() {
    let (_database, mut store) = fresh();
    for (sql, index) in [
        (
            "SELECT * FROM entry WHERE request_id = ANY(ARRAY['x', 'y'])",
            "entry_id",
        ),
        (
            "SELECT DISTINCT coalesce(owner, '') FROM entry WHERE open",
            "entry_open",
        ),
        (
            "SELECT key FROM entry WHERE NOT open AND usage_source <> 'unknown' \
             AND coalesce(ended_at, admitted_at) < 5 ORDER BY coalesce(ended_at, admitted_at) LIMIT 2",
            "entry_forgettable",
        ),
        (
            "SELECT * FROM posting WHERE key > 5 AND key <= 7 AND run <> 'x'",
            "posting_pkey",
        ),
        ("SELECT max(key) FROM posting", "posting_pkey"),
    ] {
        let plan = store
            .link
            .run(async |session| {
                let rows = session.client.query(&format!("EXPLAIN {sql}"), &[]).await?;
                let lines: Result<Vec<String>, _> = rows.iter().map(|row| row.try_get(0)).collect();
                Ok(lines?.join("; "))
            })
            .unwrap();
        assert!(plan.contains(index), "{sql}: {plan}");
    }
}
