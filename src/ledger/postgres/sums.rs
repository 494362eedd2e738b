//! The sums in their tables: changed in the transaction that changes the entries, and told to other processes.

use super::fault::Fault;
use super::link::{Session, Values, column};
use super::row::storable;
use crate::budget::Hour;
use crate::ledger::store::Standing;
use crate::ledger::sums::{Amounts, Change, Day, Posting, Usage, UsageKey};
use crate::tenant::TenantName;
use std::borrow::Cow;
use std::sync::LazyLock;
use tokio_postgres::{Row, Statement};

/// Where amounts are put, and what is done where some are there already.
pub(super) const TO_ACCOUNT: &str =
    "account AS old (tenant, hour, charged, held, reserved, open, unknown)";
pub(super) const ADD_AMOUNTS: &str = "ON CONFLICT (tenant, hour) DO UPDATE SET charged = old.charged + excluded.charged, \
     held = old.held + excluded.held, reserved = old.reserved + excluded.reserved, \
     open = old.open + excluded.open, unknown = old.unknown + excluded.unknown";
pub(super) const TO_POSTING: &str =
    "posting (run, tenant, hour, charged, held, reserved, open, unknown)";
/// The same of the usage.
pub(super) const TO_USAGE: &str = "usage AS old (day, tenant, model, requests, completed, cancelled, failed, unknown, \
     input_units, generated_units, delivered_units, charged_units)";
pub(super) const ADD_USAGE: &str = "ON CONFLICT (day, tenant, model) DO UPDATE SET requests = old.requests + excluded.requests, \
     completed = old.completed + excluded.completed, cancelled = old.cancelled + excluded.cancelled, \
     failed = old.failed + excluded.failed, unknown = old.unknown + excluded.unknown, \
     input_units = old.input_units + excluded.input_units, \
     generated_units = old.generated_units + excluded.generated_units, \
     delivered_units = old.delivered_units + excluded.delivered_units, \
     charged_units = old.charged_units + excluded.charged_units";

static ACCOUNTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO {TO_ACCOUNT} \
         SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], \
         $7::bigint[]) {ADD_AMOUNTS}"
    )
});

/// For the runs that listen, where there are any beside this one.
static POSTINGS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO {TO_POSTING} \
         SELECT $1, new.* FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
         $8::bigint[]) AS new WHERE EXISTS (SELECT FROM owner WHERE run <> $1)"
    )
});

static USAGE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "INSERT INTO {TO_USAGE} \
         SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], \
         $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[]) {ADD_USAGE}"
    )
});

/// The statements that change the sums, prepared.
pub(super) struct Statements {
    accounts: Statement,
    postings: Statement,
    usage: Statement,
}

impl Statements {
    pub async fn of(session: &Session) -> Result<Statements, Fault> {
        Ok(Statements {
            accounts: session.statement(&ACCOUNTS).await?,
            postings: session.statement(&POSTINGS).await?,
            usage: session.statement(&USAGE).await?,
        })
    }
}

/// Writes a change of the sums. `run` is who made it.
pub(super) async fn post(
    session: &Session,
    statements: &Statements,
    change: &Change,
    run: &str,
) -> Result<(), Fault> {
    let postings = change.postings();
    let (accounts, usage) = tokio::join!(
        biased;
        add_to_accounts(session, statements, &postings, run),
        add_to_usage(session, &statements.usage, change)
    );
    accounts.and(usage)
}

async fn add_to_accounts(
    session: &Session,
    statements: &Statements,
    postings: &[Posting],
    run: &str,
) -> Result<(), Fault> {
    if postings.is_empty() {
        return Ok(());
    }
    let tenants: Vec<Cow<'_, str>> = postings
        .iter()
        .map(|p| storable(p.tenant.as_str()))
        .collect();
    let numbers = |of: fn(&Posting) -> i64| -> Vec<i64> { postings.iter().map(of).collect() };
    let hour = numbers(|p| p.hour.0);
    let charged = numbers(|p| p.amounts.charged);
    let held = numbers(|p| p.amounts.held);
    let reserved = numbers(|p| p.amounts.reserved);
    let open = numbers(|p| p.amounts.open);
    let unknown = numbers(|p| p.amounts.unknown);
    let values: Values<'_> = &[&tenants, &hour, &charged, &held, &reserved, &open, &unknown];
    let told_values: Values<'_> = &[
        &run, &tenants, &hour, &charged, &held, &reserved, &open, &unknown,
    ];
    let client = &session.client;
    let (added, told) = tokio::join!(
        biased;
        client.execute(&statements.accounts, values),
        client.execute(&statements.postings, told_values)
    );
    added?;
    told?;
    Ok(())
}

async fn add_to_usage(
    session: &Session,
    statement: &Statement,
    change: &Change,
) -> Result<(), Fault> {
    let rows: Vec<(&UsageKey, &Usage)> = change.usages().collect();
    if rows.is_empty() {
        return Ok(());
    }
    let days: Vec<i64> = rows.iter().map(|(key, _)| key.day.0).collect();
    let tenants: Vec<Cow<'_, str>> = rows
        .iter()
        .map(|(key, _)| storable(key.tenant.as_str()))
        .collect();
    let models: Vec<Cow<'_, str>> = rows.iter().map(|(key, _)| storable(&key.model)).collect();
    let numbers = |of: fn(&Usage) -> i64| -> Vec<i64> { rows.iter().map(|(_, u)| of(u)).collect() };
    let client = &session.client;
    client
        .execute(
            statement,
            &[
                &days,
                &tenants,
                &models,
                &numbers(|u| u.requests),
                &numbers(|u| u.completed),
                &numbers(|u| u.cancelled),
                &numbers(|u| u.failed),
                &numbers(|u| u.unknown),
                &numbers(|u| u.input_units),
                &numbers(|u| u.generated_units),
                &numbers(|u| u.delivered_units),
                &numbers(|u| u.charged_units),
            ],
        )
        .await?;
    Ok(())
}

/// A row of the usage table, read with all its columns.
pub(super) fn usage_row(row: &Row) -> Result<(UsageKey, Usage), Fault> {
    let key = UsageKey {
        day: Day(column(row, "day")?),
        tenant: TenantName::new(column(row, "tenant")?),
        model: column(row, "model")?,
    };
    let usage = Usage {
        requests: column(row, "requests")?,
        completed: column(row, "completed")?,
        cancelled: column(row, "cancelled")?,
        failed: column(row, "failed")?,
        unknown: column(row, "unknown")?,
        input_units: column(row, "input_units")?,
        generated_units: column(row, "generated_units")?,
        delivered_units: column(row, "delivered_units")?,
        charged_units: column(row, "charged_units")?,
    };
    Ok((key, usage))
}

/// A posting of a row whose columns are tenant, hour and the amounts.
pub(super) fn posting(row: &Row) -> Result<Posting, Fault> {
    Ok(Posting {
        tenant: TenantName::new(column(row, "tenant")?),
        hour: Hour(column(row, "hour")?),
        amounts: amounts(row)?,
    })
}

fn amounts(row: &Row) -> Result<Amounts, Fault> {
    Ok(Amounts {
        charged: column(row, "charged")?,
        held: column(row, "held")?,
        reserved: column(row, "reserved")?,
        open: column(row, "open")?,
        unknown: column(row, "unknown")?,
    })
}

/// All accounts, what lies before `month` summed up at hour 0.
pub(super) async fn standing(session: &Session, month: Hour) -> Result<Standing, Fault> {
    let rows = session
        .rows(
            "SELECT tenant, CASE WHEN hour < $1 THEN 0 ELSE hour END AS hour, \
             sum(charged)::bigint AS charged, sum(held)::bigint AS held, sum(reserved)::bigint AS reserved, \
             sum(open)::bigint AS open, sum(unknown)::bigint AS unknown \
             FROM account GROUP BY 1, 2 ORDER BY 1, 2",
            &[&month.0],
        )
        .await?;
    let accounts: Vec<Posting> = rows.iter().map(posting).collect::<Result<_, _>>()?;
    let total = accounts
        .iter()
        .fold(Amounts::NONE, |sum, p| sum.plus(p.amounts));
    Ok(Standing { accounts, total })
}
