//! What a gateway does besides writing its own entries: joins and leaves, takes over from the dead, follows the living,
//! forgets the old.

use super::row;
use super::{SqliteStore, begin, sums};
use crate::clock::Timestamp;
use crate::config::OnUnknown;
use crate::ledger::entry::Entry;
use crate::ledger::error::LedgerError;
use crate::ledger::owner;
use crate::ledger::store::Standing;
use crate::ledger::stored::{COLUMNS, Line};
use crate::ledger::sums::{Change, Life, Posting, month_of};
use crate::ledger::unknown;
use rusqlite::{Connection, Error, OptionalExtension};
use std::path::Path;

/// Entries removed in one transaction.
const FORGET_MAX: usize = 200;
/// Free pages from which on the file is made smaller, where they are also a quarter of it.
const SLACK_MIN: i64 = 4096;

/// Joins the ledger, takes what dead runs left open for crashed, and sums up, in one transaction.
pub(super) fn at_start(store: &mut SqliteStore, now: Timestamp) -> Result<Standing, LedgerError> {
    let (standing, dead, followed) = join(store, now).map_err(|e| store.fault(&e))?;
    store.followed = followed;
    let folder = owner::folder(&store.at.file);
    dead.iter().for_each(|run| owner::clear(&folder, run));
    clear_strays(&folder, &store.judge.run);
    Ok(standing)
}

fn join(store: &SqliteStore, now: Timestamp) -> Result<(Standing, Vec<String>, i64), Error> {
    let transaction = begin(&store.db)?;
    let followed = newest_posting(&transaction)?;
    register(&transaction, &store.judge.run, now, followed)?;
    let dead = dead_runs(store, true)?;
    take_over(&transaction, store, &dead, now)?;
    let standing = sums::standing(&transaction, month_of(now))?;
    transaction.commit()?;
    Ok((standing, dead, followed))
}

/// Writes this run into the list of those that write here.
pub(super) fn register(
    db: &Connection,
    run: &str,
    now: Timestamp,
    followed: i64,
) -> Result<(), Error> {
    db.prepare_cached(
        "INSERT INTO owner (run, pid, since, seen, followed) VALUES (?1, ?2, ?3, ?3, ?4) \
         ON CONFLICT (run) DO UPDATE SET seen = excluded.seen",
    )?
    .execute((run, std::process::id(), now.0, followed))?;
    Ok(())
}

/// Takes this run off the list. What it left open is found crashed by the next one.
pub(super) fn leave(db: &Connection, run: &str) -> Result<(), Error> {
    db.execute("DELETE FROM owner WHERE run = ?1", (run,))?;
    Ok(())
}

/// The runs of dead processes: those on the list and, at start, those that open entries name.
fn dead_runs(store: &SqliteStore, at_start: bool) -> Result<Vec<String>, Error> {
    let sql = match at_start {
        true => {
            "SELECT run FROM owner UNION SELECT DISTINCT coalesce(owner, '') FROM entry WHERE open = 1"
        }
        false => "SELECT run FROM owner",
    };
    let folder = owner::folder(&store.at.file);
    let mut statement = store.db.prepare_cached(sql)?;
    let runs: Vec<String> = statement
        .query_map((), |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let dead = runs.into_iter().filter(|run| **run != *store.judge.run);
    Ok(dead.filter(|run| is_dead(&folder, run)).collect())
}

/// An entry without an owner is open by mistake: nobody will settle it.
fn is_dead(folder: &Path, run: &str) -> bool {
    run.is_empty() || owner::is_dead(folder, run)
}

/// Ends what dead runs left open, and takes the runs off the list.
fn take_over(
    db: &Connection,
    store: &SqliteStore,
    dead: &[String],
    now: Timestamp,
) -> Result<Vec<Posting>, Error> {
    let mut change = Change::default();
    for run in dead {
        let crashed = crash_all(db, run, store.judge.policy, now, &mut change)?;
        db.execute("DELETE FROM owner WHERE run = ?1", (run,))?;
        if crashed > 0 {
            log::warn!(
                "ledger {}: a process ended with {crashed} requests open; what they used is unknown until \
                 `streamgate ledger reconcile`",
                store.place
            );
        }
    }
    sums::post(db, &change, &store.judge.run)?;
    Ok(change.postings())
}

fn crash_all(
    db: &Connection,
    run: &str,
    policy: OnUnknown,
    now: Timestamp,
    change: &mut Change,
) -> Result<usize, Error> {
    let open = open_entries(db, run)?;
    for old in &open {
        let new = unknown::crash(old, policy, now);
        row::put(db, &new, false)?;
        change.replace(Some(old), &new, Life::Same);
    }
    Ok(open.len())
}

fn open_entries(db: &Connection, run: &str) -> Result<Vec<Entry>, Error> {
    let of_run = match run {
        "" => "owner IS NULL AND ?1 = ''",
        _ => "owner = ?1",
    };
    let sql = format!("SELECT {COLUMNS} FROM entry WHERE open = 1 AND {of_run}");
    let mut statement = db.prepare(&sql)?;
    let lines: Vec<Line> = statement
        .query_map((run,), row::read)?
        .collect::<Result<_, _>>()?;
    Ok(lines.into_iter().map(Line::entry_at_least).collect())
}

/// What others did to the accounts since the last time, and what became of those that died.
pub(super) fn follow(store: &mut SqliteStore, now: Timestamp) -> Result<Vec<Posting>, Error> {
    if !is_registered(&store.db, &store.judge.run)? {
        log::warn!(
            "ledger {}: another process took this one for dead",
            store.place
        );
        register(&store.db, &store.judge.run, now, store.followed)?;
    }
    let newest = newest_posting(&store.db)?;
    let mut postings = postings_of_others(store, newest)?;
    if newest > store.followed {
        note_followed(store, newest)?;
        store.followed = newest;
    }
    let dead = dead_runs(store, false)?;
    if !dead.is_empty() {
        let transaction = begin(&store.db)?;
        let taken = take_over(&transaction, store, &dead, now)?;
        transaction.commit()?;
        postings.extend(taken);
        let folder = owner::folder(&store.at.file);
        dead.iter().for_each(|run| owner::clear(&folder, run));
    }
    Ok(postings)
}

fn is_registered(db: &Connection, run: &str) -> Result<bool, Error> {
    db.prepare_cached("SELECT EXISTS (SELECT 1 FROM owner WHERE run = ?1)")?
        .query_row((run,), |row| row.get(0))
}

pub(super) fn newest_posting(db: &Connection) -> Result<i64, Error> {
    let newest: Option<i64> = db
        .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = 'posting'")?
        .query_row((), |row| row.get(0))
        .optional()?;
    Ok(newest.unwrap_or(0))
}

fn postings_of_others(store: &SqliteStore, newest: i64) -> Result<Vec<Posting>, Error> {
    store
        .db
        .prepare_cached(
            "SELECT tenant, hour, charged, held, reserved, open, unknown FROM posting \
             WHERE key > ?1 AND key <= ?2 AND run <> ?3",
        )?
        .query_map((store.followed, newest, &*store.judge.run), sums::posting)?
        .collect()
}

/// Notes how far this run has read, and removes what all have read.
fn note_followed(store: &SqliteStore, newest: i64) -> Result<(), Error> {
    let transaction = begin(&store.db)?;
    transaction.execute(
        "UPDATE owner SET followed = ?1 WHERE run = ?2",
        (newest, &*store.judge.run),
    )?;
    transaction.execute(
        "DELETE FROM posting WHERE key <= (SELECT min(followed) FROM owner)",
        (),
    )?;
    transaction.commit()
}

/// Removes some entries that ended before a moment, oldest first; those that run or await their bill stay. Where there
/// are none, makes the file smaller. Whether more may be left to do.
pub(super) fn forget(db: &Connection, before: Timestamp) -> Result<bool, Error> {
    if forgettable(db, before)?.is_empty() {
        return give_back_space(db);
    }
    // Looked up again: an id may have been opened once more in between.
    let transaction = begin(db)?;
    let old = forgettable(&transaction, before)?;
    for key in &old {
        transaction
            .prepare_cached("DELETE FROM entry WHERE key = ?1")?
            .execute((key,))?;
    }
    transaction.commit()?;
    Ok(old.len() >= FORGET_MAX)
}

fn forgettable(db: &Connection, before: Timestamp) -> Result<Vec<i64>, Error> {
    let limit = i64::try_from(FORGET_MAX).unwrap_or(i64::MAX);
    db.prepare_cached(
        "SELECT key FROM entry WHERE open = 0 AND usage_source <> 'unknown' \
         AND coalesce(ended_at, admitted_at) < ?1 ORDER BY coalesce(ended_at, admitted_at) LIMIT ?2",
    )?
    .query_map((before.0, limit), |row| row.get(0))?
    .collect()
}

/// Makes the file smaller by a little, where much of it is empty. Whether it has become so.
fn give_back_space(db: &Connection) -> Result<bool, Error> {
    let number = |sql: &str| -> Result<i64, Error> { db.query_row(sql, (), |row| row.get(0)) };
    let free = number("PRAGMA freelist_count")?;
    if free < SLACK_MIN || free < number("PRAGMA page_count")? / 4 {
        return Ok(false);
    }
    let mut statement = db.prepare_cached("PRAGMA incremental_vacuum(128)")?;
    let mut rows = statement.query(())?;
    while rows.next()?.is_some() {}
    Ok(number("PRAGMA freelist_count")? < free)
}

/// Removes lock files of dead runs that no list names any more.
fn clear_strays(folder: &Path, own: &str) {
    let Ok(files) = std::fs::read_dir(folder) else {
        return;
    };
    for file in files.flatten() {
        let name = file.file_name();
        let run = name
            .to_str()
            .filter(|run| *run != own && owner::is_run(run));
        run.inspect(|run| owner::clear(folder, run));
    }
}
