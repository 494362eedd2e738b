//! The sums in their tables: changed in the transaction that changes the entries, and told to other processes.

use crate::budget::Hour;
use crate::ledger::store::Standing;
use crate::ledger::sums::{Amounts, Change, Day, Posting, Usage, UsageKey};
use crate::tenant::TenantName;
use rusqlite::{Connection, Error, OptionalExtension, Row};
use std::collections::BTreeMap;

/// Writes a change of the sums. `run` is who made it.
pub(super) fn post(db: &Connection, change: &Change, run: &str) -> Result<(), Error> {
    let postings = change.postings();
    let others = !postings.is_empty() && others_listen(db, run)?;
    for posting in &postings {
        add_to_account(db, posting)?;
        if others {
            tell(db, posting, run)?;
        }
    }
    for (key, usage) in change.usages() {
        add_to_usage(db, key, *usage)?;
    }
    Ok(())
}

fn others_listen(db: &Connection, run: &str) -> Result<bool, Error> {
    db.prepare_cached("SELECT EXISTS (SELECT 1 FROM owner WHERE run <> ?1)")?
        .query_row((run,), |row| row.get(0))
}

fn add_to_account(db: &Connection, posting: &Posting) -> Result<(), Error> {
    let key = (posting.tenant.as_str(), posting.hour.0);
    let before = db
        .prepare_cached(
            "SELECT charged, held, reserved, open, unknown FROM account WHERE tenant = ?1 AND hour = ?2",
        )?
        .query_row(key, |row| amounts(row, 0))
        .optional()?;
    let now = before.unwrap_or(Amounts::NONE).plus(posting.amounts);
    db.prepare_cached("INSERT OR REPLACE INTO account VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
        .execute((
            key.0,
            key.1,
            now.charged,
            now.held,
            now.reserved,
            now.open,
            now.unknown,
        ))?;
    Ok(())
}

fn tell(db: &Connection, posting: &Posting, run: &str) -> Result<(), Error> {
    let a = posting.amounts;
    db.prepare_cached(
        "INSERT INTO posting (run, tenant, hour, charged, held, reserved, open, unknown) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute((
        run,
        posting.tenant.as_str(),
        posting.hour.0,
        a.charged,
        a.held,
        a.reserved,
        a.open,
        a.unknown,
    ))?;
    Ok(())
}

fn add_to_usage(db: &Connection, key: &UsageKey, added: Usage) -> Result<(), Error> {
    let before = db
        .prepare_cached("SELECT * FROM usage WHERE day = ?1 AND tenant = ?2 AND model = ?3")?
        .query_row((key.day.0, key.tenant.as_str(), &key.model), |row| {
            usage_row(row).map(|(_, usage)| usage)
        })
        .optional()?;
    let now = before.unwrap_or_default().plus(added);
    db.prepare_cached(
        "INSERT OR REPLACE INTO usage VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?
    .execute((
        key.day.0,
        key.tenant.as_str(),
        &key.model,
        now.requests,
        now.completed,
        now.cancelled,
        now.failed,
        now.unknown,
        now.input_units,
        now.generated_units,
        now.delivered_units,
        now.charged_units,
    ))?;
    Ok(())
}

/// A row of the usage table, read with all its columns.
pub(super) fn usage_row(row: &Row<'_>) -> Result<(UsageKey, Usage), Error> {
    let tenant: String = row.get("tenant")?;
    let key = UsageKey {
        day: Day(row.get("day")?),
        tenant: TenantName::new(&tenant),
        model: row.get("model")?,
    };
    let usage = Usage {
        requests: row.get("requests")?,
        completed: row.get("completed")?,
        cancelled: row.get("cancelled")?,
        failed: row.get("failed")?,
        unknown: row.get("unknown")?,
        input_units: row.get("input_units")?,
        generated_units: row.get("generated_units")?,
        delivered_units: row.get("delivered_units")?,
        charged_units: row.get("charged_units")?,
    };
    Ok((key, usage))
}

/// A posting of a row whose columns are tenant, hour and the amounts.
pub(super) fn posting(row: &Row<'_>) -> Result<Posting, Error> {
    let tenant: String = row.get(0)?;
    Ok(Posting {
        tenant: TenantName::new(&tenant),
        hour: Hour(row.get(1)?),
        amounts: amounts(row, 2)?,
    })
}

fn amounts(row: &Row<'_>, from: usize) -> Result<Amounts, Error> {
    Ok(Amounts {
        charged: row.get(from)?,
        held: row.get(from + 1)?,
        reserved: row.get(from + 2)?,
        open: row.get(from + 3)?,
        unknown: row.get(from + 4)?,
    })
}

/// What all accounts come to, less what others did since this run last looked. One statement sees one moment.
pub(super) fn total(db: &Connection, run: &str, followed: i64) -> Result<Amounts, Error> {
    db.prepare_cached(
        "SELECT coalesce(sum(charged), 0), coalesce(sum(held), 0), coalesce(sum(reserved), 0), \
         coalesce(sum(open), 0), coalesce(sum(unknown), 0) FROM ( \
         SELECT charged, held, reserved, open, unknown FROM account UNION ALL \
         SELECT -charged, -held, -reserved, -open, -unknown FROM posting WHERE key > ?1 AND run <> ?2)",
    )?
    .query_row((followed, run), |row| amounts(row, 0))
}

/// All accounts, what lies before `month` summed up at hour 0.
pub(super) fn standing(db: &Connection, month: Hour) -> Result<Standing, Error> {
    let mut accounts: BTreeMap<(TenantName, Hour), Amounts> = BTreeMap::new();
    let mut total = Amounts::NONE;
    let mut statement =
        db.prepare("SELECT tenant, hour, charged, held, reserved, open, unknown FROM account")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let read = posting(row)?;
        let hour = if read.hour < month {
            Hour(0)
        } else {
            read.hour
        };
        let sum = accounts.entry((read.tenant, hour)).or_default();
        *sum = sum.plus(read.amounts);
        total = total.plus(read.amounts);
    }
    let accounts = accounts
        .into_iter()
        .map(|((tenant, hour), amounts)| Posting {
            tenant,
            hour,
            amounts,
        });
    Ok(Standing {
        accounts: accounts.collect(),
        total,
    })
}
