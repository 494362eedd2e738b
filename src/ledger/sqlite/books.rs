//! A SQLite ledger as the ledger command reads and reconciles it.

use super::fault::fault;
use super::row;
use super::{begin, connect, sums};
use crate::ledger::error::{Kind, LedgerError};
use crate::ledger::store::{BillLine, Books, Filter, Order, Row, Settlement, StateFilter};
use crate::ledger::stored::{COLUMNS, Line};
use crate::ledger::sums::{Change, Life, Usage, UsageKey};
use crate::ledger::unknown::{self, Billed};
use crate::record::{RequestId, State};
use crate::tenant::TenantName;
use rusqlite::types::Value;
use rusqlite::{Connection, Error, params_from_iter};
use std::path::{Path, PathBuf};

/// Lines of a bill that are looked up in one transaction, which costs no lock of its own each and holds up no
/// checkpoint for long.
const CHUNK: usize = 1000;

/// Who a reconciliation is by, in the list of what others did to the accounts.
const COMMAND: &str = "command";

pub(in crate::ledger) struct SqliteBooks {
    file: PathBuf,
    db: Connection,
}

impl SqliteBooks {
    pub fn to_read(file: &Path) -> Result<SqliteBooks, LedgerError> {
        Ok(SqliteBooks {
            db: connect::reader(file)?,
            file: file.to_owned(),
        })
    }

    pub fn to_reconcile(file: &Path) -> Result<SqliteBooks, LedgerError> {
        Ok(SqliteBooks {
            db: connect::editor(file)?,
            file: file.to_owned(),
        })
    }

    fn fault(&self, error: &Error) -> LedgerError {
        fault(&self.file, error)
    }

    fn lines(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Line>, Error> {
        self.db
            .prepare_cached(sql)?
            .query_map(params_from_iter(values), row::read)?
            .collect()
    }

    fn row(&self, line: Line) -> Row {
        let key = line.key;
        let entry = line.entry().map_err(|e| {
            let cause = format!("the record of entry {key} cannot be read: {e}");
            LedgerError::new(self.file.display().to_string(), Kind::BadEntry, cause)
        });
        (key, entry.map(|entry| entry.record))
    }

    /// What a line settles, or why it settles nothing.
    fn billed(&self, line: &BillLine) -> Result<Result<Billed, Settlement>, LedgerError> {
        let (sql, values) = named(&line.id, line.tenant.as_ref());
        match self.lines(&sql, values).map_err(|e| self.fault(&e)) {
            Ok(found) => {
                let found = found.into_iter().map(Line::entry_at_least).collect();
                Ok(unknown::reconcile(found, line.units))
            }
            Err(e) if e.is_of_one_entry() => Ok(Err(Settlement::Unreadable(e))),
            Err(e) => Err(e),
        }
    }

    /// What becomes of the lines that settle nothing. The others have nothing yet.
    fn look_through(&self, bill: &[BillLine]) -> Result<Vec<Option<Settlement>>, LedgerError> {
        let mut settlements = Vec::with_capacity(bill.len());
        for lines in bill.chunks(CHUNK) {
            let transaction = self.db.unchecked_transaction();
            let transaction = transaction.map_err(|e| self.fault(&e))?;
            for line in lines {
                settlements.push(self.billed(line)?.err());
            }
            transaction.commit().map_err(|e| self.fault(&e))?;
        }
        Ok(settlements)
    }

    fn settle(&self, line: &BillLine, change: &mut Change) -> Result<Settlement, LedgerError> {
        let billed = match self.billed(line)? {
            Ok(billed) => billed,
            Err(settlement) => return Ok(settlement),
        };
        match row::put(&self.db, &billed.new, false).map_err(|e| self.fault(&e)) {
            Ok(()) => {
                change.replace(Some(&billed.old), &billed.new, Life::Same);
                Ok(billed.settlement())
            }
            Err(e) if e.is_of_one_entry() => Ok(Settlement::Unreadable(e)),
            Err(e) => Err(e),
        }
    }

    /// Settles, under the ledger's lock, the lines that have nothing yet.
    fn settle_rest(
        &self,
        bill: &[BillLine],
        known: Vec<Option<Settlement>>,
        dry: bool,
    ) -> Result<Vec<Settlement>, LedgerError> {
        let transaction = begin(&self.db).map_err(|e| self.fault(&e))?;
        let mut change = Change::default();
        let mut settlements = Vec::with_capacity(bill.len());
        for (line, known) in bill.iter().zip(known) {
            settlements.push(match known {
                Some(settlement) => settlement,
                None => self.settle(line, &mut change)?,
            });
        }
        let ended = match dry {
            true => transaction.rollback(),
            false => sums::post(&transaction, &change, COMMAND).and_then(|()| transaction.commit()),
        };
        ended.map_err(|e| self.fault(&e))?;
        Ok(settlements)
    }
}

impl Books for SqliteBooks {
    fn page(&self, filter: &Filter, order: Order, limit: usize) -> Result<Vec<Row>, LedgerError> {
        let (sql, values) = paged(filter, order, limit);
        let lines = self.lines(&sql, values).map_err(|e| self.fault(&e))?;
        Ok(lines.into_iter().map(|line| self.row(line)).collect())
    }

    fn named(&self, id: &RequestId, tenant: Option<&TenantName>) -> Result<Vec<Row>, LedgerError> {
        let (sql, values) = named(id, tenant);
        let lines = self.lines(&sql, values).map_err(|e| self.fault(&e))?;
        Ok(lines.into_iter().map(|line| self.row(line)).collect())
    }

    fn usage(&self, tenant: Option<&TenantName>) -> Result<Vec<(UsageKey, Usage)>, LedgerError> {
        let mut statement = self
            .db
            .prepare_cached(
                "SELECT * FROM usage WHERE tenant = coalesce(?1, tenant) ORDER BY day, tenant, model",
            )
            .map_err(|e| self.fault(&e))?;
        let rows = statement.query_map((tenant.map(TenantName::as_str),), sums::usage_row);
        rows.and_then(Iterator::collect).map_err(|e| self.fault(&e))
    }

    /// Most lines of a bill settle nothing. They are looked up without a lock, so that gateways wait only for the rest.
    fn reconcile(&mut self, bill: &[BillLine], dry: bool) -> Result<Vec<Settlement>, LedgerError> {
        let known = self.look_through(bill)?;
        if known.iter().all(Option::is_some) {
            return Ok(known.into_iter().flatten().collect());
        }
        self.settle_rest(bill, known, dry)
    }
}

fn named(id: &RequestId, tenant: Option<&TenantName>) -> (String, Vec<Value>) {
    let mut sql = format!("SELECT {COLUMNS} FROM entry WHERE request_id = ?1");
    let mut values = vec![Value::from(id.as_str().to_owned())];
    if let Some(tenant) = tenant {
        sql.push_str(" AND tenant = ?2");
        values.push(Value::from(tenant.as_str().to_owned()));
    }
    (sql, values)
}

/// The index that serves a filter is named: without figures about the table, SQLite rather walks through all of it in
/// the order that is asked for.
pub(super) fn paged(filter: &Filter, order: Order, limit: usize) -> (String, Vec<Value>) {
    let mut conditions = vec!["1 = 1"];
    let mut values = Vec::new();
    if let Some(tenant) = &filter.tenant {
        conditions.push("tenant = ?");
        values.push(Value::from(tenant.as_str().to_owned()));
    }
    let index = match filter.state {
        None => "",
        Some(StateFilter::Open) => {
            conditions.push("open = 1");
            "INDEXED BY entry_open"
        }
        Some(StateFilter::Unknown) => {
            conditions.push("open = 0 AND usage_source = 'unknown'");
            "INDEXED BY entry_unknown"
        }
        Some(StateFilter::Is(state)) => {
            values.push(Value::from(state.as_str().to_owned()));
            // In the words of the index.
            let (condition, index) = match state {
                State::Queued | State::Running | State::Streaming => {
                    ("open = 1 AND state = ?", "INDEXED BY entry_open")
                }
                State::Cancelled | State::Failed => (
                    "open = 0 AND state <> 'COMPLETED' AND state = ?",
                    "INDEXED BY entry_gone_wrong",
                ),
                State::Completed => ("state = ?", ""),
            };
            conditions.push(condition);
            index
        }
    };
    let (after, condition, direction) = match order {
        Order::Newest(after) => (after, "key < ?", "DESC"),
        Order::Oldest(after) => (after, "key > ?", "ASC"),
    };
    if let Some(after) = after {
        conditions.push(condition);
        values.push(Value::from(after));
    }
    values.push(Value::from(i64::try_from(limit).unwrap_or(i64::MAX)));
    let conditions = conditions.join(" AND ");
    let sql = format!(
        "SELECT {COLUMNS} FROM entry {index} WHERE {conditions} ORDER BY key {direction} LIMIT ?"
    );
    (sql, values)
}
