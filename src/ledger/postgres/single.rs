//! One entry and what it changes in the sums, written by one statement: all of it where the entry is as presumed, and
//! nothing where it is not. A statement of one row takes the server half the time of one that takes rows as arrays.

use super::fault::Fault;
use super::link::{Session, Value, column};
use super::row::{self, storable};
use super::sums::{ADD_AMOUNTS, ADD_USAGE, TO_ACCOUNT, TO_POSTING, TO_USAGE};
use crate::ledger::entry::Entry;
use crate::ledger::sums::{Posting, Usage, UsageKey};
use crate::record::State;
use std::sync::LazyLock;
use tokio_postgres::Statement;

/// What is presumed of an entry before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Missing,
    /// Open, by this opening of this run, and in this state.
    Own(i64, State),
}

pub(super) struct Single<'a> {
    pub before: Before,
    pub entry: &'a Entry,
    pub posting: Option<&'a Posting>,
    /// Nothing where the entry is new.
    pub usage: Option<&'a (UsageKey, Usage)>,
    pub run: &'a str,
}

/// `$24` is the run, `$25` the hour where there is something to post.
const ACCOUNT: &str = "told AS (INSERT INTO @POSTING SELECT $24::text, $1::text, $25::bigint, $26::bigint, $27::bigint, \
     $28::bigint, $29::bigint, $30::bigint FROM put WHERE $25::bigint IS NOT NULL \
     AND EXISTS (SELECT FROM owner WHERE run <> $24::text)), \
     added AS (INSERT INTO @ACCOUNT SELECT $1::text, $25::bigint, $26::bigint, $27::bigint, $28::bigint, $29::bigint, \
     $30::bigint FROM put WHERE $25::bigint IS NOT NULL @ADD)";

/// `$32` is the day where the usage changes.
const USAGE: &str = "used AS (INSERT INTO @USAGE SELECT $32::bigint, $1::text, $33::text, $34::bigint, $35::bigint, \
     $36::bigint, $37::bigint, $38::bigint, $39::bigint, $40::bigint, $41::bigint, $42::bigint FROM put \
     WHERE $32::bigint IS NOT NULL @ADD)";

/// The lock gives a transaction its number. Where none had begun, it has neither here, and nothing is written.
const LOCKED: &str = "txid_current_if_assigned() IS NOT NULL";

/// It is found by its id: by its owner, all that the run has open would be looked through.
const OWN: &str =
    "open AND (owner = $24::text) IS TRUE AND opening = $31::bigint AND state = $43::text";

static OPEN: LazyLock<String> = LazyLock::new(|| {
    let put = row::insert_sql(LOCKED);
    format!(
        "WITH put AS ({put}), {} SELECT count(*) FROM put",
        account()
    )
});

pub(super) static MOVE: LazyLock<String> = LazyLock::new(|| {
    let put = row::update_sql(&format!("{OWN} AND {LOCKED}"));
    let used = USAGE.replace("@USAGE", TO_USAGE).replace("@ADD", ADD_USAGE);
    format!(
        "WITH put AS ({put}), {}, {used} SELECT count(*) FROM put",
        account()
    )
});

fn account() -> String {
    ACCOUNT
        .replace("@POSTING", TO_POSTING)
        .replace("@ACCOUNT", TO_ACCOUNT)
        .replace("@ADD", ADD_AMOUNTS)
}

impl Single<'_> {
    fn sql(&self) -> &'static str {
        match self.before {
            Before::Missing => &OPEN,
            Before::Own(..) => &MOVE,
        }
    }

    pub async fn statement(&self, session: &Session) -> Result<Statement, Fault> {
        session.statement(self.sql()).await
    }

    /// Within a transaction that has the lock. Whether the entry was as presumed.
    pub async fn write(
        &self,
        session: &Session,
        statement: &Statement,
        record: &str,
    ) -> Result<bool, Fault> {
        let mut values = row::values(self.entry, record);
        values.push(Box::new(self.run));
        values.extend(amounts(self.posting));
        if let Before::Own(opening, state) = self.before {
            values.push(Box::new(opening));
            values.extend(usage(self.usage));
            values.push(Box::new(state.as_str()));
        }
        let values: Vec<_> = values.iter().map(|value| &**value as _).collect();
        let answer = session.client.query_one(statement, &values).await?;
        Ok(column::<_, i64>(&answer, 0)? == 1)
    }
}

fn amounts<'a>(posting: Option<&Posting>) -> [Value<'a>; 6] {
    let amounts = posting.map(|p| p.amounts).unwrap_or_default();
    [
        Box::new(posting.map(|p| p.hour.0)),
        Box::new(amounts.charged),
        Box::new(amounts.held),
        Box::new(amounts.reserved),
        Box::new(amounts.open),
        Box::new(amounts.unknown),
    ]
}

fn usage(change: Option<&(UsageKey, Usage)>) -> [Value<'_>; 11] {
    let usage = change.map(|(_, usage)| *usage).unwrap_or_default();
    let key = change.map(|(key, _)| key);
    [
        Box::new(key.map(|key| key.day.0)),
        Box::new(key.map(|key| storable(&key.model))),
        Box::new(usage.requests),
        Box::new(usage.completed),
        Box::new(usage.cancelled),
        Box::new(usage.failed),
        Box::new(usage.unknown),
        Box::new(usage.input_units),
        Box::new(usage.generated_units),
        Box::new(usage.delivered_units),
        Box::new(usage.charged_units),
    ]
}
