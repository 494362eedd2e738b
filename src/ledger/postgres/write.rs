//! Transactions that change entries. They come one after another, whoever makes them: each begins by taking a lock of
//! the whole ledger, so that what it reads stays so until it has written, and postings are numbered in the order of
//! their commits. What is sent does not wait for the answer to what was sent before: a commit takes two round trips, one
//! where nothing need be read first.

use super::fault::Fault;
use super::link::{Session, Values, column};
use super::{row, sums};
use crate::ledger::entry::Entry;
use crate::ledger::stored::COLUMNS;
use crate::ledger::sums::Change;
use std::sync::LazyLock;
use tokio_postgres::{Row, Statement};

/// Of an advisory lock: "sglg".
pub(super) const LOCK: &str = "SELECT pg_advisory_xact_lock(1936157799)";
/// The same, with the transaction's number.
const LOCK_AND_NUMBER: &str = "SELECT pg_advisory_xact_lock(1936157799), txid_current()";

static FIND: LazyLock<String> =
    LazyLock::new(|| format!("SELECT {COLUMNS} FROM entry WHERE request_id = ANY($1)"));

/// Begins a transaction, takes the lock, and reads the entries of some ids, of all tenants. Also the transaction's
/// number, by which its end can be asked for.
pub(super) async fn begin_with(session: &Session, ids: &[&str]) -> Result<(Vec<Row>, i64), Fault> {
    let lock = lock_statement(session).await?;
    let find = session.statement(&FIND).await?;
    let values: Values<'_> = &[&ids];
    let (begun, locked, found) = tokio::join!(
        biased;
        session.batch("BEGIN"),
        session.client.query_one(&lock, &[]),
        session.client.query(&find, values)
    );
    begun?;
    let number = column(&locked?, 1)?;
    Ok((found?, number))
}

/// Takes the lock within a transaction, and gives it its number.
pub(super) async fn lock_statement(session: &Session) -> Result<Statement, Fault> {
    session.statement(LOCK_AND_NUMBER).await
}

/// Whether a transaction that has ended came through. One that a crashed server has forgotten did not.
pub(super) async fn came_through(session: &Session, number: i64) -> Result<bool, Fault> {
    let row = session
        .row(
            "SELECT CASE WHEN $1 < txid_snapshot_xmax(txid_current_snapshot()) \
             THEN txid_status($1) IS NOT DISTINCT FROM 'committed' ELSE false END",
            &[&number],
        )
        .await?;
    column(&row, 0)
}

/// Begins a transaction that takes the lock.
pub(super) async fn begin(session: &Session) -> Result<(), Fault> {
    let (begun, locked) = tokio::join!(biased; session.batch("BEGIN"), session.batch(LOCK));
    begun.and(locked)
}

/// Reads the entries of some ids, of all tenants.
pub(super) async fn find(session: &Session, ids: &[&str]) -> Result<Vec<Row>, Fault> {
    session.rows(&FIND, &[&ids]).await
}

/// The statements that write, prepared: what is sent without waiting must not wait for them.
pub(super) struct Statements {
    put: Statement,
    sums: sums::Statements,
}

impl Statements {
    pub async fn of(session: &Session) -> Result<Statements, Fault> {
        Ok(Statements {
            put: row::put_statement(session).await?,
            sums: sums::Statements::of(session).await?,
        })
    }
}

/// What a transaction writes: entries of different ids, and what they change in the sums. `run` is whose doing it is.
pub(super) struct Writing<'a> {
    pub entries: Vec<&'a Entry>,
    pub change: &'a Change,
    pub run: &'a str,
}

impl Writing<'_> {
    /// Writes within a transaction.
    pub async fn put(&self, session: &Session) -> Result<(), Fault> {
        let statements = Statements::of(session).await?;
        let records = row::records(&self.entries)?;
        self.send(session, &statements, &records).await
    }

    /// Writes and ends the transaction. Where something cannot be written, the server makes of the commit a rollback.
    pub async fn commit(&self, session: &Session) -> Result<(), Fault> {
        let statements = Statements::of(session).await?;
        // From here on nothing fails before it is sent: the commit would go without it.
        let records = row::records(&self.entries)?;
        let (written, committed) = tokio::join!(
            biased;
            self.send(session, &statements, &records),
            session.batch("COMMIT")
        );
        written.and(committed)
    }

    async fn send(
        &self,
        session: &Session,
        statements: &Statements,
        records: &[String],
    ) -> Result<(), Fault> {
        let (written, posted) = tokio::join!(
            biased;
            row::put(session, &statements.put, &self.entries, records),
            sums::post(session, &statements.sums, self.change, self.run)
        );
        written.and(posted)
    }
}
