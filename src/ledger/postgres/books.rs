//! A PostgreSQL ledger as the ledger command reads and reconciles it.

use super::address::Address;
use super::fault::Fault;
use super::group::Group;
use super::link::{Link, Session};
use super::settings::{self, Settings};
use super::write::{self, Writing};
use super::{row, schema, sums};
use crate::config::Secret;
use crate::ledger::error::{Kind, LedgerError};
use crate::ledger::store::{BillLine, Books, Filter, Order, Row, Settlement, StateFilter};
use crate::ledger::stored::{COLUMNS, Line};
use crate::ledger::sums::{Change, Usage, UsageKey};
use crate::ledger::unknown::{self, Billed};
use crate::record::{RequestId, State};
use crate::tenant::TenantName;
use std::cell::RefCell;
use tokio_postgres::types::ToSql;

/// Lines of a bill that are looked up at once.
const CHUNK: usize = 1000;

/// Who a reconciliation is by, in the list of what others did to the accounts.
const COMMAND: &str = "command";

pub(in crate::ledger) struct PostgresBooks {
    place: String,
    link: RefCell<Link>,
}

impl PostgresBooks {
    pub fn to_read(url: &Secret) -> Result<PostgresBooks, LedgerError> {
        PostgresBooks::open(url, settings::reading())
    }

    pub fn to_reconcile(url: &Secret) -> Result<PostgresBooks, LedgerError> {
        PostgresBooks::open(url, settings::editing())
    }

    fn open(url: &Secret, settings: Settings) -> Result<PostgresBooks, LedgerError> {
        let address = Address::of(url)?;
        let place = address.place.clone();
        let mut link = Link::open(address, settings)?;
        link.run(async |session| schema::must_be_current(session, &place).await)?;
        Ok(PostgresBooks {
            place,
            link: RefCell::new(link),
        })
    }

    fn run<T>(
        &self,
        work: impl AsyncFnOnce(&Session) -> Result<T, Fault>,
    ) -> Result<T, LedgerError> {
        self.link.borrow_mut().run(work)
    }

    /// Rows as a reader gets them.
    fn rows(&self, rows: &[tokio_postgres::Row]) -> Result<Vec<Row>, LedgerError> {
        let row = |row| {
            let line = row::read(row).map_err(|fault| fault.at(&self.place))?;
            Ok(self.row(line))
        };
        rows.iter().map(row).collect()
    }

    fn row(&self, line: Line) -> Row {
        let key = line.key;
        let entry = line.entry().map_err(|e| {
            let cause = format!("the record of entry {key} cannot be read: {e}");
            LedgerError::new(self.place.as_str(), Kind::BadEntry, cause)
        });
        (key, entry.map(|entry| entry.record))
    }

    /// Adds the entries that lines name to what is known.
    fn learn<'a>(
        &self,
        group: &mut Group,
        lines: impl Iterator<Item = &'a BillLine>,
    ) -> Result<(), LedgerError> {
        let ids: Vec<&str> = lines.map(|line| line.id.as_str()).collect();
        for ids in ids.chunks(CHUNK) {
            let rows = self.run(async |session| write::find(session, ids).await)?;
            group.learn(&rows, &self.place);
        }
        Ok(())
    }

    /// What becomes of the lines that settle nothing. The others have nothing yet.
    fn look_through(&self, bill: &[BillLine]) -> Result<Vec<Option<Settlement>>, LedgerError> {
        let mut settlements = Vec::with_capacity(bill.len());
        for lines in bill.chunks(CHUNK) {
            let mut group = Group::default();
            self.learn(&mut group, lines.iter())?;
            settlements.extend(lines.iter().map(|line| settle(&group, line).err()));
        }
        Ok(settlements)
    }

    fn write(&self, group: &Group) -> Result<(), LedgerError> {
        let none = Change::default();
        for entries in group.to_write().chunks(CHUNK) {
            let writing = Writing {
                entries: entries.to_vec(),
                change: &none,
                run: COMMAND,
            };
            self.run(async |session| writing.put(session).await)?;
        }
        let sums = Writing {
            entries: Vec::new(),
            change: &group.change,
            run: COMMAND,
        };
        self.run(async |session| sums.commit(session).await)
    }
}

impl Books for PostgresBooks {
    fn page(&self, filter: &Filter, order: Order, limit: usize) -> Result<Vec<Row>, LedgerError> {
        let (sql, values) = paged(filter, order, limit);
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|v| &**v as _).collect();
        let rows = self.run(async |session| Ok(session.client.query(&sql, &values).await?))?;
        self.rows(&rows)
    }

    fn named(&self, id: &RequestId, tenant: Option<&TenantName>) -> Result<Vec<Row>, LedgerError> {
        let mut rows = self.run(async |session| write::find(session, &[id.as_str()]).await)?;
        if let Some(tenant) = tenant {
            rows.retain(|row| {
                row.try_get("tenant")
                    .is_ok_and(|t: &str| t == tenant.as_str())
            });
        }
        self.rows(&rows)
    }

    fn usage(&self, tenant: Option<&TenantName>) -> Result<Vec<(UsageKey, Usage)>, LedgerError> {
        let tenant = tenant.map(TenantName::as_str);
        self.run(async |session| {
            let rows = session
                .rows(
                    "SELECT * FROM usage WHERE tenant = coalesce($1, tenant) ORDER BY day, tenant, model",
                    &[&tenant],
                )
                .await?;
            rows.iter().map(sums::usage_row).collect()
        })
    }

    /// Most lines of a bill settle nothing. They are looked up without a lock, so that gateways wait only for the rest.
    fn reconcile(&mut self, bill: &[BillLine], dry: bool) -> Result<Vec<Settlement>, LedgerError> {
        let known = self.look_through(bill)?;
        if known.iter().all(Option::is_some) {
            return Ok(known.into_iter().flatten().collect());
        }
        let rest = || bill.iter().zip(&known).filter(|(_, known)| known.is_none());
        if !dry {
            self.run(async |session| write::begin(session).await)?;
        }
        let mut group = Group::default();
        self.learn(&mut group, rest().map(|(line, _)| line))?;
        let mut settlements = Vec::with_capacity(bill.len());
        for (line, known) in bill.iter().zip(known) {
            settlements.push(match known {
                Some(settlement) => settlement,
                None => book(&mut group, line),
            });
        }
        if !dry {
            self.write(&group)?;
        }
        Ok(settlements)
    }
}

/// What a line settles, or why it settles nothing.
fn settle(group: &Group, line: &BillLine) -> Result<Billed, Settlement> {
    let found = group.named(&line.id, line.tenant.as_ref());
    unknown::reconcile(found.map_err(Settlement::Unreadable)?, line.units)
}

/// Settles what a line settles.
fn book(group: &mut Group, line: &BillLine) -> Settlement {
    match settle(group, line) {
        Ok(billed) => {
            let settlement = billed.settlement();
            group.replace(*billed.new);
            settlement
        }
        Err(settlement) => settlement,
    }
}

type Value = Box<dyn ToSql + Sync>;

fn paged(filter: &Filter, order: Order, limit: usize) -> (String, Vec<Value>) {
    let mut conditions = vec!["true".to_owned()];
    let mut values: Vec<Value> = Vec::new();
    let mut with = |condition: &str, value: Value| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("${}", values.len())));
    };
    if let Some(tenant) = &filter.tenant {
        with("tenant = ?", Box::new(tenant.as_str().to_owned()));
    }
    if let Some(StateFilter::Is(state)) = filter.state {
        // In the words of the index that serves it.
        let condition = match state {
            State::Queued | State::Running | State::Streaming => "open AND state = ?",
            State::Cancelled | State::Failed => "NOT open AND state <> 'COMPLETED' AND state = ?",
            State::Completed => "state = ?",
        };
        with(condition, Box::new(state.as_str()));
    }
    let (after, condition, direction) = match order {
        Order::Newest(after) => (after, "key < ?", "DESC"),
        Order::Oldest(after) => (after, "key > ?", "ASC"),
    };
    if let Some(after) = after {
        with(condition, Box::new(after));
    }
    match filter.state {
        Some(StateFilter::Open) => conditions.push("open".into()),
        Some(StateFilter::Unknown) => {
            conditions.push("NOT open AND usage_source = 'unknown'".into());
        }
        Some(StateFilter::Is(_)) | None => {}
    }
    let conditions = conditions.join(" AND ");
    let sql = format!(
        "SELECT {COLUMNS} FROM entry WHERE {conditions} ORDER BY key {direction} LIMIT {limit}"
    );
    (sql, values)
}
