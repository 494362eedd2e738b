//! The tables, in a schema of their own, and how those of an earlier version are brought up to this one. They are those
//! of the SQLite ledger, in PostgreSQL's types.

use super::fault::Fault;
use super::link::{Session, column};
use super::write::LOCK;
use crate::ledger::error::{Kind, LedgerError};

/// The n-th brings version n to n + 1. What was released is never edited, only followed.
const MIGRATIONS: &[&str] = &[FIRST];

/// Times in microseconds since the epoch, `hour` and `day` in hours and days since it, UTC. `record` is the record as
/// JSON, in a type that takes any text; the columns beside it repeat what is filtered and summed, and are the ones
/// believed. `owner.server` is when the server started that the run's lock was taken of.
///
/// Rows of `account` and `usage` change with every commit, so their pages have room for the new versions.
const FIRST: &str = "
CREATE TABLE version (
    version bigint NOT NULL
);
INSERT INTO version VALUES (0);

CREATE TABLE entry (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE \"C\" NOT NULL,
    request_id text COLLATE \"C\" NOT NULL,
    fingerprint bytea NOT NULL,
    shown boolean NOT NULL,
    owner text COLLATE \"C\",
    opening bigint,
    open boolean NOT NULL,
    state text COLLATE \"C\" NOT NULL,
    ended_by text COLLATE \"C\",
    usage_source text COLLATE \"C\" NOT NULL,
    api text COLLATE \"C\" NOT NULL,
    model text COLLATE \"C\" NOT NULL,
    pool text COLLATE \"C\" NOT NULL,
    admitted_at bigint NOT NULL,
    ended_at bigint,
    reserved_units bigint NOT NULL,
    input_units bigint NOT NULL,
    generated_units bigint NOT NULL,
    delivered_units bigint NOT NULL,
    charged_units bigint NOT NULL,
    earlier_units bigint NOT NULL,
    held_units bigint NOT NULL,
    record text NOT NULL
);
CREATE UNIQUE INDEX entry_id ON entry (request_id, tenant);
CREATE INDEX entry_tenant ON entry (tenant, key);
CREATE INDEX entry_open ON entry (owner) WHERE open;
CREATE INDEX entry_unknown ON entry (tenant, key) WHERE NOT open AND usage_source = 'unknown';
CREATE INDEX entry_gone_wrong ON entry (state, key) WHERE NOT open AND state <> 'COMPLETED';
CREATE INDEX entry_forgettable ON entry (coalesce(ended_at, admitted_at))
    WHERE NOT open AND usage_source <> 'unknown';

CREATE TABLE account (
    tenant text COLLATE \"C\" NOT NULL,
    hour bigint NOT NULL,
    charged bigint NOT NULL,
    held bigint NOT NULL,
    reserved bigint NOT NULL,
    open bigint NOT NULL,
    unknown bigint NOT NULL,
    PRIMARY KEY (tenant, hour)
) WITH (fillfactor = 50);

CREATE TABLE usage (
    day bigint NOT NULL,
    tenant text COLLATE \"C\" NOT NULL,
    model text COLLATE \"C\" NOT NULL,
    requests bigint NOT NULL,
    completed bigint NOT NULL,
    cancelled bigint NOT NULL,
    failed bigint NOT NULL,
    unknown bigint NOT NULL,
    input_units bigint NOT NULL,
    generated_units bigint NOT NULL,
    delivered_units bigint NOT NULL,
    charged_units bigint NOT NULL,
    PRIMARY KEY (day, tenant, model)
) WITH (fillfactor = 50);

CREATE TABLE owner (
    run text COLLATE \"C\" PRIMARY KEY,
    pid bigint NOT NULL,
    since bigint NOT NULL,
    seen bigint NOT NULL,
    followed bigint NOT NULL,
    server bigint NOT NULL
);

CREATE TABLE posting (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE \"C\" NOT NULL,
    tenant text COLLATE \"C\" NOT NULL,
    hour bigint NOT NULL,
    charged bigint NOT NULL,
    held bigint NOT NULL,
    reserved bigint NOT NULL,
    open bigint NOT NULL,
    unknown bigint NOT NULL
);
";

/// What a database holds, found out without writing to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Nothing {
        has_schema: bool,
    },
    /// A ledger of an earlier version.
    Older(usize),
    Current,
}

async fn look(session: &Session, place: &str) -> Result<Content, Fault> {
    let refuse = |kind, cause: String| Err(Fault::Refused(LedgerError::new(place, kind, cause)));
    let found = session
        .row(
            "SELECT current_setting('server_encoding'), to_regnamespace('streamgate') IS NOT NULL, \
             to_regclass('streamgate.version') IS NOT NULL, EXISTS (SELECT FROM pg_class \
             WHERE relnamespace = to_regnamespace('streamgate'))",
            &[],
        )
        .await?;
    let encoding: String = column(&found, 0)?;
    if encoding != "UTF8" {
        return refuse(
            Kind::OtherProgram,
            format!("the database's encoding is {encoding}, not UTF8"),
        );
    }
    match (column(&found, 1)?, column(&found, 2)?, column(&found, 3)?) {
        (_, true, _) => {}
        (has_schema, false, false) => return Ok(Content::Nothing { has_schema }),
        (_, false, true) => {
            let cause = "its schema \"streamgate\" belongs to another program";
            return refuse(Kind::OtherProgram, cause.into());
        }
    }
    let version = session
        .client
        .query_one("SELECT max(version) FROM streamgate.version", &[])
        .await?;
    let version: Option<i64> = column(&version, 0)?;
    match usize::try_from(version.unwrap_or(-1)) {
        Ok(n) if n == MIGRATIONS.len() => Ok(Content::Current),
        Ok(n) if n < MIGRATIONS.len() => Ok(Content::Older(n)),
        Ok(_) | Err(_) => refuse(
            Kind::NewerSchema,
            format!(
                "its schema is {}, this build knows up to {}",
                version.unwrap_or(-1),
                MIGRATIONS.len()
            ),
        ),
    }
}

/// Makes the tables, or brings them up to the current version, in one transaction.
pub(super) async fn migrate(session: &Session, place: &str) -> Result<(), Fault> {
    if look(session, place).await? == Content::Current {
        return Ok(());
    }
    session.batch("BEGIN").await?;
    session.batch(LOCK).await?;
    let done = match look(session, place).await? {
        Content::Nothing { has_schema } => {
            if !has_schema {
                session.batch("CREATE SCHEMA streamgate").await?;
            }
            0
        }
        Content::Older(done) => done,
        Content::Current => return session.batch("COMMIT").await,
    };
    for step in MIGRATIONS.iter().skip(done) {
        session.batch(step).await?;
    }
    let version = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    session
        .client
        .execute("UPDATE version SET version = $1", &[&version])
        .await?;
    session.batch("COMMIT").await
}

/// Refuses a database that holds no ledger of this version.
pub(super) async fn must_be_current(session: &Session, place: &str) -> Result<(), Fault> {
    let refuse = |kind, cause: String| Err(Fault::Refused(LedgerError::new(place, kind, cause)));
    match look(session, place).await? {
        Content::Current => Ok(()),
        Content::Nothing { .. } => refuse(Kind::Missing, "the database holds no ledger".into()),
        Content::Older(n) => refuse(
            Kind::OlderSchema,
            format!("its schema is {n}, an earlier one"),
        ),
    }
}
