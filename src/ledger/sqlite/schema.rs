//! The tables, and how a database of an earlier schema is brought up to this one.

use super::fault::fault;
use crate::ledger::error::{Kind, LedgerError};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// "sglg", in the file's header: the database is a ledger of ours.
const APPLICATION_ID: i64 = 0x7367_6c67;

/// The n-th brings schema n to n + 1. What was released is never edited, only followed.
const MIGRATIONS: &[&str] = &[FIRST];

/// Times in microseconds since the epoch, `hour` and `day` in hours and days since it, UTC. `record` is the record as
/// JSON; the columns beside it repeat what is filtered and summed, and are the ones believed.
///
/// Entries that are open, await their bill or went wrong are few, and found through small indexes of their own.
/// `account` holds what tenants were charged by hour of admission, and what is held and reserved; `usage` what the
/// report shows. Both outlive the entries they sum. `owner` lists the runs that write here, `posting` what each of them did to the
/// accounts, until all others have read it.
const FIRST: &str = "
CREATE TABLE entry (
    key INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    request_id TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    shown INTEGER NOT NULL,
    owner TEXT,
    opening INTEGER,
    open INTEGER NOT NULL,
    state TEXT NOT NULL,
    ended_by TEXT,
    usage_source TEXT NOT NULL,
    api TEXT NOT NULL,
    model TEXT NOT NULL,
    pool TEXT NOT NULL,
    admitted_at INTEGER NOT NULL,
    ended_at INTEGER,
    reserved_units INTEGER NOT NULL,
    input_units INTEGER NOT NULL,
    generated_units INTEGER NOT NULL,
    delivered_units INTEGER NOT NULL,
    charged_units INTEGER NOT NULL,
    earlier_units INTEGER NOT NULL,
    held_units INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX entry_id ON entry (request_id, tenant);
CREATE INDEX entry_tenant ON entry (tenant);
CREATE INDEX entry_open ON entry (owner) WHERE open = 1;
CREATE INDEX entry_unknown ON entry (tenant) WHERE open = 0 AND usage_source = 'unknown';
CREATE INDEX entry_gone_wrong ON entry (state) WHERE open = 0 AND state <> 'COMPLETED';
CREATE INDEX entry_forgettable ON entry (coalesce(ended_at, admitted_at))
    WHERE open = 0 AND usage_source <> 'unknown';

CREATE TABLE account (
    tenant TEXT NOT NULL,
    hour INTEGER NOT NULL,
    charged INTEGER NOT NULL,
    held INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    open INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    PRIMARY KEY (tenant, hour)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
    day INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    input_units INTEGER NOT NULL,
    generated_units INTEGER NOT NULL,
    delivered_units INTEGER NOT NULL,
    charged_units INTEGER NOT NULL,
    PRIMARY KEY (day, tenant, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE owner (
    run TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    since INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    followed INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE posting (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL,
    tenant TEXT NOT NULL,
    hour INTEGER NOT NULL,
    charged INTEGER NOT NULL,
    held INTEGER NOT NULL,
    reserved INTEGER NOT NULL,
    open INTEGER NOT NULL,
    unknown INTEGER NOT NULL
) STRICT;
";

/// What a file holds, found out without writing to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    /// A ledger of an earlier schema.
    Older(usize),
    Current,
}

/// Looks at a database before anything is written to it: one that is damaged, of another program or of a newer
/// streamgate is left as it is.
pub(super) fn look(file: &Path, db: &Connection) -> Result<Content, LedgerError> {
    let number = |sql: &str| -> Result<i64, LedgerError> {
        db.query_row(sql, (), |row| row.get(0))
            .map_err(|e| fault(file, &e))
    };
    let tables = number("SELECT count(*) FROM sqlite_master")?;
    let application = number("PRAGMA application_id")?;
    let version = number("PRAGMA user_version")?;
    let refuse =
        |kind, cause: String| Err(LedgerError::new(file.display().to_string(), kind, cause));
    if application != APPLICATION_ID {
        return match tables {
            0 => Ok(Content::Nothing),
            _ => refuse(
                Kind::OtherProgram,
                "the database belongs to another program".into(),
            ),
        };
    }
    match usize::try_from(version) {
        Ok(n) if n == MIGRATIONS.len() => Ok(Content::Current),
        Ok(n) if n < MIGRATIONS.len() => Ok(Content::Older(n)),
        Ok(_) | Err(_) => refuse(
            Kind::NewerSchema,
            format!(
                "its schema is {version}, this build knows up to {}",
                MIGRATIONS.len()
            ),
        ),
    }
}

/// Brings a database up to the current schema, in one transaction.
pub(super) fn migrate(file: &Path, db: &mut Connection) -> Result<(), LedgerError> {
    let failed = |e: rusqlite::Error| fault(file, &e);
    let transaction = db
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    let done = match look(file, &transaction)? {
        Content::Nothing => 0,
        Content::Older(done) => done,
        Content::Current => return Ok(()),
    };
    for step in MIGRATIONS.iter().skip(done) {
        transaction.execute_batch(step).map_err(failed)?;
    }
    let version = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    transaction
        .pragma_update(None, "application_id", APPLICATION_ID)
        .and_then(|()| transaction.pragma_update(None, "user_version", version))
        .map_err(failed)?;
    transaction.commit().map_err(failed)
}
