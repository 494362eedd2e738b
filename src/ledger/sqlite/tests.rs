//! What is SQLite's own: files that are no ledger, or not a whole one, are named, left as they are, and never a panic;
//! locks, disks, plans.

use super::*;
use crate::clock;
use crate::ledger::entry::Opened;
use crate::ledger::store::{Books, Filter, Order, StateFilter};
use crate::ledger::sums::Amounts;
use crate::ledger::tests::{Scratch, acme, complete, config, ended, id, opening, running};
use crate::record::{Record, State};
use std::sync::Arc;

fn join(config: &config::Ledger) -> (SqliteStore, Standing) {
    let config::LedgerStore::Sqlite(file) = &config.store else {
        panic!("not SQLite");
    };
    let mut store = SqliteStore::start(file, config, owner::fresh_run()).unwrap();
    let standing = store.recover(clock::now()).unwrap();
    (store, standing)
}

fn fresh() -> (Scratch, SqliteStore) {
    let scratch = Scratch::new();
    let (store, _) = join(&config(&scratch.database()));
    (scratch, store)
}

fn write(store: &mut SqliteStore, write: Write) -> Applied {
    let mut committed = store.commit(&[write], clock::now()).unwrap();
    committed.applied.remove(0)
}

fn open(store: &mut SqliteStore, id: &str) {
    let applied = write(store, Write::Open(Box::new(opening(id)), 1));
    assert!(matches!(applied, Applied::Opened(Opened::New)));
}

fn settle(store: &mut SqliteStore, record: Record) -> Applied {
    write(store, Write::Settle(Arc::new(ended(record))))
}

/// What all accounts come to.
fn total(store: &SqliteStore) -> Amounts {
    sums::standing(&store.db, crate::budget::Hour(0))
        .unwrap()
        .total
}

fn start_on(file: &Path) -> Result<SqliteStore, LedgerError> {
    let mut store = SqliteStore::start(file, &config(file), owner::fresh_run())?;
    store.recover(clock::now())?;
    Ok(store)
}

/// Starting on the file fails, says why, names the file, and leaves it as it was.
fn refused(file: &Path, why: &str) {
    let before = std::fs::read(file).ok();
    let error = start_on(file)
        .err()
        .unwrap_or_else(|| panic!("{} was taken", file.display()));
    let text = error.to_string();
    assert!(text.contains(why), "{text}");
    assert!(text.contains(&file.display().to_string()), "{text}");
    assert!(!text.contains('\n'), "{text}");
    assert_eq!(std::fs::read(file).ok(), before, "the file was changed");
}

fn other_database(file: &Path) {
    let db = Connection::open(file).unwrap();
    db.execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (randomblob(20000))")
        .unwrap();
}

#[test]
fn what_is_no_ledger_is_refused_and_left_as_it_is() {
    let scratch = Scratch::new();
    let text = scratch.join("text.db");
    std::fs::write(&text, "this is not a database, ".repeat(500)).unwrap();
    refused(&text, "not a SQLite database");

    let other = scratch.join("other.db");
    other_database(&other);
    refused(&other, "belongs to another program");

    let half = scratch.join("half.db");
    let mut bytes = std::fs::read(&other).unwrap();
    bytes[100..4100].fill(0xff);
    std::fs::write(&half, bytes).unwrap();
    refused(&half, "damaged");

    let folder = scratch.join("folder.db");
    std::fs::create_dir(&folder).unwrap();
    refused(&folder, "it is a folder");

    let below = text.join("ledger.db");
    refused(&below, "its folder cannot be made");
}

#[test]
fn a_newer_schema_is_refused() {
    let (scratch, store) = fresh();
    store.db.pragma_update(None, "user_version", 99).unwrap();
    drop(store);
    let file = scratch.database();
    let error = start_on(&file).err().unwrap().to_string();
    assert!(
        error.contains("its schema is 99, this build knows up to 1"),
        "{error}"
    );
    let error = SqliteBooks::to_read(&file).err().unwrap().to_string();
    assert!(error.contains("its schema is 99"), "{error}");
}

#[test]
fn a_reader_needs_a_ledger_that_is_there() {
    let scratch = Scratch::new();
    let error = SqliteBooks::to_read(&scratch.database())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("no such file"), "{error}");
    assert!(!scratch.database().exists(), "reading made a file");
    std::fs::write(scratch.database(), "").unwrap();
    let error = SqliteBooks::to_read(&scratch.database())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("empty"), "{error}");
}

#[test]
fn a_reader_reads_what_a_crash_left_in_the_log() {
    let (scratch, mut store) = fresh();
    open(&mut store, "r");
    let copy = Scratch::new();
    for name in ["ledger.db", "ledger.db-wal"] {
        std::fs::copy(scratch.join(name), copy.join(name)).unwrap();
    }
    let books = SqliteBooks::to_read(&copy.database()).unwrap();
    assert_eq!(books.named(&id("r"), None).unwrap().len(), 1);
}

#[test]
fn a_file_that_was_moved_away_in_use_is_noticed_and_waited_for_and_not_made_anew() {
    let (scratch, mut store) = fresh();
    open(&mut store, "r");
    std::fs::rename(scratch.database(), scratch.join("moved.db")).unwrap();
    let error = store.follow(clock::now()).unwrap_err();
    assert!(
        error.asks_for_reopening() && error.to_string().contains("moved"),
        "{error}"
    );
    let error = store.reopen().unwrap_err();
    assert!(error.to_string().contains("put it back"), "{error}");
    assert!(!scratch.database().exists(), "a new ledger was begun");
    std::fs::write(scratch.database(), "").unwrap();
    let error = store.reopen().unwrap_err();
    assert!(error.to_string().contains("an empty one"), "{error}");
    std::fs::rename(scratch.join("moved.db"), scratch.database()).unwrap();
    store.reopen().unwrap();
    store.probe(clock::now()).unwrap();
    settle(&mut store, complete(&running("r")));
    assert_eq!(
        total(&store),
        Amounts {
            charged: 40,
            ..Amounts::NONE
        }
    );
}

#[test]
fn a_log_that_was_removed_in_use_is_noticed_before_anything_is_written_to_it() {
    let (scratch, mut store) = fresh();
    open(&mut store, "r");
    std::fs::remove_file(scratch.join("ledger.db-wal")).unwrap();
    let write = Write::Open(Box::new(opening("s")), 2);
    let error = store.commit(std::slice::from_ref(&write), clock::now());
    let error = error.unwrap_err();
    assert!(error.to_string().contains("write-ahead log"), "{error}");
    assert!(error.asks_for_reopening(), "{error}");
    store.reopen().unwrap();
    store.commit(&[write], clock::now()).unwrap();
    drop(store);
    let (_next, standing) = join(&config(&scratch.database()));
    assert_eq!(standing.total.unknown, 2, "what the lost log held is kept");
}

#[test]
fn a_ledger_put_in_place_waits_for_who_still_reads_the_log_of_the_old_one() {
    let (scratch, mut store) = fresh();
    let reader = Connection::open(scratch.database()).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM entry")
        .unwrap();
    open(&mut store, "r");
    let (other, mut elsewhere) = fresh();
    settle(&mut elsewhere, complete(&running("restored")));
    drop(elsewhere);
    std::fs::rename(other.database(), scratch.database()).unwrap();
    let error = store.reopen().unwrap_err();
    assert!(error.to_string().contains("still reads"), "{error}");
    drop(reader);
    store.reopen().unwrap();
    assert_eq!(total(&store).charged, 40, "the restored one's own entries");
}

#[test]
fn processes_that_reach_a_file_by_different_names_see_each_other_live() {
    let (scratch, mut first) = fresh();
    open(&mut first, "r");
    std::os::unix::fs::symlink(scratch.database(), scratch.join("other-name.db")).unwrap();
    let (_second, standing) = join(&config(&scratch.join("other-name.db")));
    assert_eq!((standing.total.open, standing.total.unknown), (1, 0));
}

#[test]
fn a_ledger_put_in_the_place_of_another_in_use_is_gone_on_with() {
    let (scratch, mut store) = fresh();
    open(&mut store, "r");
    let (other, mut elsewhere) = fresh();
    settle(&mut elsewhere, complete(&running("restored")));
    drop(elsewhere);
    std::fs::rename(other.database(), scratch.database()).unwrap();
    assert!(store.follow(clock::now()).is_err());
    store.reopen().unwrap();
    store.probe(clock::now()).unwrap();
    settle(&mut store, complete(&running("r")));
    assert_eq!(total(&store).charged, 80);
}

#[test]
fn a_commit_is_seen_by_another_connection_at_once() {
    let (scratch, mut store) = fresh();
    open(&mut store, "r");
    let other = Connection::open(scratch.database()).unwrap();
    let state: String = other
        .query_row("SELECT state FROM entry", (), |r| r.get(0))
        .unwrap();
    assert_eq!(state, "QUEUED");
}

#[test]
fn durability_power_syncs_each_commit() {
    let scratch = Scratch::new();
    let power = config::Ledger {
        durability: Durability::Power,
        ..config(&scratch.database())
    };
    for (config, level) in [(power, 2), (config(&scratch.join("other.db")), 1)] {
        let (store, _) = join(&config);
        let synchronous: i64 = store
            .db
            .query_row("PRAGMA synchronous", (), |r| r.get(0))
            .unwrap();
        let mode: String = store
            .db
            .query_row("PRAGMA journal_mode", (), |r| r.get(0))
            .unwrap();
        assert_eq!((synchronous, mode.as_str()), (level, "wal"));
    }
}

fn plan(store: &SqliteStore, sql: &str, values: Vec<rusqlite::types::Value>) -> String {
    let sql = format!("EXPLAIN QUERY PLAN {sql}");
    let mut statement = store.db.prepare(&sql).unwrap();
    let values = rusqlite::params_from_iter(values);
    let rows = statement.query_map(values, |row| row.get::<_, String>(3));
    let rows = rows.unwrap().map(Result::unwrap);
    rows.collect::<Vec<_>>().join("; ")
}

#[test]
fn open_and_unknown_entries_are_found_through_small_indexes() {
    let (_scratch, store) = fresh();
    for (sql, index) in [
        (
            "SELECT DISTINCT coalesce(owner, '') FROM entry WHERE open = 1",
            "entry_open",
        ),
        (
            "SELECT * FROM entry WHERE open = 1 AND owner = 'x'",
            "entry_open",
        ),
        ("SELECT * FROM entry WHERE request_id = 'x'", "entry_id"),
    ] {
        let plan = plan(&store, sql, vec![]);
        assert!(plan.contains(index), "{sql}: {plan}");
    }
}

#[test]
fn a_page_of_a_list_is_found_by_index_whatever_it_is_filtered_by() {
    use StateFilter::{Is, Open, Unknown};
    let (_scratch, store) = fresh();
    let found_by = |tenant: Option<&str>, state, order| {
        let filter = Filter {
            tenant: tenant.map(TenantName::new),
            state,
        };
        let (sql, values) = books::paged(&filter, order, 5);
        plan(&store, &sql, values)
    };
    for (state, index) in [
        (Open, "entry_open"),
        (Is(State::Streaming), "entry_open"),
        (Unknown, "entry_unknown"),
        (Is(State::Failed), "entry_gone_wrong"),
    ] {
        for tenant in [None, Some("acme")] {
            for order in [Order::Newest(None), Order::Oldest(Some(7))] {
                let plan = found_by(tenant, Some(state), order);
                assert!(plan.contains(index), "{state:?} of {tenant:?}: {plan}");
            }
        }
    }
    let plan = found_by(Some("acme"), None, Order::Newest(None));
    assert!(plan.contains("entry_tenant"), "{plan}");
    assert!(!plan.contains("TEMP B-TREE"), "{plan}");
}

#[test]
fn a_damaged_file_gives_errors_and_never_a_panic() {
    let (scratch, mut store) = fresh();
    let names: Vec<String> = (0..300).map(|i| format!("r{i}")).collect();
    let opens: Vec<Write> = names
        .iter()
        .map(|n| Write::Open(Box::new(opening(n)), 1))
        .collect();
    store.commit(&opens, clock::now()).unwrap();
    store.close();
    drop(store);
    let whole = std::fs::read(scratch.database()).unwrap();
    let pages = whole.len() / 4096;
    assert!(pages > 20);
    let mut faults = 0;
    for page in 1..pages {
        let place = Scratch::new();
        let mut bytes = whole.clone();
        let from = page * 4096;
        bytes[from..from + 2048].fill(0x5a);
        std::fs::write(place.database(), bytes).unwrap();
        faults += usize::from(exercised(&place.database()).is_err());
    }
    assert!(
        faults > pages / 2,
        "{faults} of {pages} damages were noticed"
    );
}

/// All that is done with a ledger, to the first error.
fn exercised(file: &Path) -> Result<(), LedgerError> {
    let books = SqliteBooks::to_read(file)?;
    for (_, record) in books.page(&Filter::default(), Order::Oldest(None), 1000)? {
        record?;
    }
    books.usage(None)?;
    let mut store = start_on(file)?;
    for name in ["r1", "new"] {
        store.find(&acme(), &id(name))?;
        store.commit(&[Write::Open(Box::new(opening(name)), 9)], clock::now())?;
        store.commit(
            &[Write::Settle(Arc::new(ended(complete(&running(name)))))],
            clock::now(),
        )?;
    }
    store.follow(clock::now())?;
    while store.forget(clock::now())? {}
    Ok(())
}

#[test]
fn processes_that_start_at_once_on_a_fresh_file_all_succeed() {
    for _ in 0..10 {
        let scratch = Scratch::new();
        let file = scratch.database();
        std::thread::scope(|scope| {
            let starts: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| start_on(&file).map(drop)))
                .collect();
            for start in starts {
                assert_eq!(start.join().unwrap(), Ok(()));
            }
        });
    }
}

#[test]
fn a_full_disk_changes_nothing_and_is_named() {
    let (_scratch, mut store) = fresh();
    open(&mut store, "r");
    let pages: i64 = store
        .db
        .query_row("PRAGMA page_count", (), |r| r.get(0))
        .unwrap();
    let limit =
        |store: &SqliteStore, n: i64| store.db.pragma_update(None, "max_page_count", n).unwrap();
    limit(&store, pages);
    let mut long = complete(&running("r"));
    long.error = Some("x".repeat(100_000));
    let writes = [Write::Settle(Arc::new(ended(long)))];
    let error = store.commit(&writes, clock::now()).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert!(error.to_string().contains("ledger.db") && error.to_string().contains("disk is full"));
    assert_eq!(
        total(&store),
        Amounts {
            reserved: 100,
            open: 1,
            ..Amounts::NONE
        }
    );
    limit(&store, 100_000);
    store.commit(&writes, clock::now()).unwrap();
    assert_eq!(
        total(&store),
        Amounts {
            charged: 40,
            ..Amounts::NONE
        }
    );
}

#[test]
fn a_process_makes_its_lock_anew_where_somebody_removed_it() {
    let (scratch, mut first) = fresh();
    open(&mut first, "r");
    std::fs::remove_dir_all(owner::folder(&scratch.database())).unwrap();
    first.follow(clock::now()).unwrap();
    let (_second, standing) = join(&config(&scratch.database()));
    assert_eq!(
        standing.total,
        Amounts {
            reserved: 100,
            open: 1,
            ..Amounts::NONE
        }
    );
}

#[test]
fn a_file_shrinks_where_much_of_it_was_forgotten() {
    let (_scratch, mut store) = fresh();
    let large = |n: i64| {
        let mut record = complete(&running(&format!("r{n}")));
        record.error = Some("x".repeat(20_000));
        Write::Settle(Arc::new(ended(record)))
    };
    let writes: Vec<Write> = (0..2000).map(large).collect();
    store.commit(&writes, clock::now()).unwrap();
    let pages = |store: &SqliteStore| -> i64 {
        let count = |r: &rusqlite::Row<'_>| r.get(0);
        store.db.query_row("PRAGMA page_count", (), count).unwrap()
    };
    let before = pages(&store);
    while store.forget(clock::now()).unwrap() {}
    let after = pages(&store);
    assert!(after < before / 2, "{after} pages, {before} before");
    assert!(!store.forget(clock::now()).unwrap(), "it comes to an end");
}
