//! Connections to a database file: the gateway's own, and a reader's beside it.

use super::fault::fault;
use super::schema::{self, Content};
use crate::config::Durability;
use crate::ledger::error::{Kind, LedgerError};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// At start, and for commands: another process may be busy with a long commit.
const PATIENCE: Duration = Duration::from_secs(5);
/// While requests wait.
const RUNNING_PATIENCE: Duration = Duration::from_millis(250);
/// Bytes; the log is cut back to this after a long reader let it grow.
const WAL_SIZE_MAX: i64 = 64 << 20;
/// KiB, as SQLite's negative sizes are.
const CACHE_KIB: i64 = 2 * 1024;

/// Opens a file to write to: makes it, or brings it up to date. A file that is no ledger is left as it is.
pub(super) fn writer(file: &Path, durability: Durability) -> Result<Connection, LedgerError> {
    refuse_a_folder(file)?;
    make_folder(file)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    prepared(file, open(file, flags)?, durability)
}

/// Opens a file again that was in use: it must be there, and a ledger. A new one would begin without the entries, and
/// so without the charges, of the old.
pub(super) fn writer_again(file: &Path, durability: Durability) -> Result<Connection, LedgerError> {
    let lost = |cause: &str| {
        let place = file.display().to_string();
        Err(LedgerError::new(place, Kind::Lost, cause))
    };
    if let Err(error) = refuse_absence(file) {
        return match error.kind() == Kind::Missing {
            true => lost("the file was moved or removed while in use"),
            false => Err(error),
        };
    }
    let db = open(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    match schema::look(file, &db)? {
        Content::Nothing => lost("the file was emptied or replaced by an empty one while in use"),
        Content::Older(_) | Content::Current => prepared(file, db, durability),
    }
}

fn make_folder(file: &Path) -> Result<(), LedgerError> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(|e| {
            let cause = format!("its folder cannot be made: {e}");
            LedgerError::new(file.display().to_string(), Kind::Unopenable, cause)
        })?;
    }
    Ok(())
}

fn prepared(
    file: &Path,
    mut db: Connection,
    durability: Durability,
) -> Result<Connection, LedgerError> {
    let content = schema::look(file, &db)?;
    refuse_read_only(file, &db)?;
    if content == Content::Nothing {
        set(file, &db, "auto_vacuum", "INCREMENTAL")?;
    }
    use_wal(file, &db)?;
    set_durability(file, &db, durability)?;
    set(file, &db, "journal_size_limit", WAL_SIZE_MAX)?;
    set(file, &db, "cache_size", -CACHE_KIB)?;
    db.set_prepared_statement_cache_capacity(64);
    schema::migrate(file, &mut db)?;
    Ok(db)
}

/// Whether each commit is synced to disk, or left to the system.
pub(super) fn set_durability(
    file: &Path,
    db: &Connection,
    durability: Durability,
) -> Result<(), LedgerError> {
    let synchronous = match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    };
    set(file, db, "synchronous", synchronous)
}

/// How long a running gateway waits for another process's lock.
pub(super) fn be_brief(file: &Path, db: &Connection) -> Result<(), LedgerError> {
    db.busy_timeout(RUNNING_PATIENCE)
        .map_err(|e| fault(file, &e))
}

/// Opens a ledger to read, beside a gateway that runs or without one.
pub(super) fn reader(file: &Path) -> Result<Connection, LedgerError> {
    refuse_absence(file)?;
    let read_only = open(file, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let db = match read_only.and_then(|db| current(file, db)) {
        Err(e) if e.may_be_for_want_of_writing() => {
            // A log that a crash left needs a writer to be read.
            current(file, open(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?)?
        }
        other => other?,
    };
    set(file, &db, "query_only", "ON")?;
    Ok(db)
}

/// Opens a ledger that is there to change entries, beside a gateway that runs or without one.
pub(super) fn editor(file: &Path) -> Result<Connection, LedgerError> {
    refuse_absence(file)?;
    let db = current(file, open(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?)?;
    refuse_read_only(file, &db)?;
    set(file, &db, "synchronous", "FULL")?;
    Ok(db)
}

fn open(file: &Path, flags: OpenFlags) -> Result<Connection, LedgerError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(file, flags).map_err(|e| fault(file, &e))?;
    db.busy_timeout(PATIENCE).map_err(|e| fault(file, &e))?;
    Ok(db)
}

fn current(file: &Path, db: Connection) -> Result<Connection, LedgerError> {
    let refuse = |kind, cause| Err(LedgerError::new(file.display().to_string(), kind, cause));
    match schema::look(file, &db)? {
        Content::Current => Ok(db),
        Content::Nothing => refuse(Kind::Missing, "the database is empty".to_owned()),
        Content::Older(n) => refuse(
            Kind::OlderSchema,
            format!("its schema is {n}, an earlier one"),
        ),
    }
}

fn refuse_absence(file: &Path) -> Result<(), LedgerError> {
    refuse_a_folder(file)?;
    match file.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => Err(LedgerError::new(
            file.display().to_string(),
            Kind::Missing,
            "there is no such file",
        )),
        Err(e) => Err(LedgerError::new(
            file.display().to_string(),
            Kind::Unopenable,
            e.to_string(),
        )),
    }
}

fn refuse_a_folder(file: &Path) -> Result<(), LedgerError> {
    match file.is_dir() {
        true => Err(LedgerError::new(
            file.display().to_string(),
            Kind::Unopenable,
            "it is a folder, not a file",
        )),
        false => Ok(()),
    }
}

/// SQLite opens what it cannot write for reading, and says nothing.
fn refuse_read_only(file: &Path, db: &Connection) -> Result<(), LedgerError> {
    match db.is_readonly("main").map_err(|e| fault(file, &e))? {
        true => Err(LedgerError::new(
            file.display().to_string(),
            Kind::ReadOnly,
            "the file cannot be written",
        )),
        false => Ok(()),
    }
}

fn use_wal(file: &Path, db: &Connection) -> Result<(), LedgerError> {
    let mode: String = db
        .query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0))
        .map_err(|e| fault(file, &e))?;
    match mode.as_str() {
        "wal" => Ok(()),
        other => Err(LedgerError::new(
            file.display().to_string(),
            Kind::Unopenable,
            format!("its file system allows no write-ahead log, only journal mode {other}"),
        )),
    }
}

fn set(
    file: &Path,
    db: &Connection,
    pragma: &str,
    value: impl rusqlite::ToSql,
) -> Result<(), LedgerError> {
    db.pragma_update(None, pragma, value)
        .map_err(|e| fault(file, &e))
}
