//! Entries as rows of their table: read one by one, written many at once or alone.

use super::fault::Fault;
use super::link::{Session, Value, column};
use crate::ledger::entry::Entry;
use crate::ledger::stored::{Line, Stored};
use crate::ledger::sums::signed;
use crate::record::EndedBy;
use std::borrow::Cow;
use std::sync::LazyLock;
use tokio_postgres::{Row, Statement};

/// What names an entry, and what else it has, in the order of the values.
const NAMES: &str = "tenant, request_id";
const REST: &str = "fingerprint, shown, owner, opening, open, state, ended_by, usage_source, api, model, pool, \
     admitted_at, ended_at, reserved_units, input_units, generated_units, delivered_units, charged_units, \
     earlier_units, held_units, record";
/// The values' types.
const TYPES: [&str; 23] = [
    "text", "text", "bytea", "boolean", "text", "bigint", "boolean", "text", "text", "text",
    "text", "text", "text", "bigint", "bigint", "bigint", "bigint", "bigint", "bigint", "bigint",
    "bigint", "bigint", "text",
];

/// Writes entries, each in place of the one of its id where there is one.
static PUT: LazyLock<String> = LazyLock::new(|| {
    let (arrays, excluded) = (places(0, "[]"), REST.replace(", ", ", excluded."));
    format!(
        "INSERT INTO entry ({NAMES}, {REST}) SELECT * FROM unnest({arrays}) \
         ON CONFLICT (request_id, tenant) DO UPDATE SET ({REST}) = (excluded.{excluded})"
    )
});

/// Writes the values `$1` to `$23` as a new entry on a condition, unless there is one of its id. Returns a row where it
/// did.
pub(super) fn insert_sql(condition: &str) -> String {
    let values = places(0, "");
    format!(
        "INSERT INTO entry ({NAMES}, {REST}) SELECT {values} WHERE {condition} \
         ON CONFLICT (request_id, tenant) DO NOTHING RETURNING key"
    )
}

/// Writes them in place of an entry that fulfils a condition.
pub(super) fn update_sql(condition: &str) -> String {
    let rest = places(2, "");
    format!(
        "UPDATE entry SET ({REST}) = ({rest}) WHERE tenant = $1::text AND request_id = $2::text AND {condition} \
         RETURNING key"
    )
}

/// The places of the values after so many, with their types.
fn places(skipped: usize, suffix: &str) -> String {
    let types = TYPES.iter().enumerate().skip(skipped);
    let places: Vec<String> = types
        .map(|(i, name)| format!("${}::{name}{suffix}", i + 1))
        .collect();
    places.join(", ")
}

pub(super) async fn put_statement(session: &Session) -> Result<Statement, Fault> {
    session.statement(&PUT).await
}

/// The record of an entry as it is stored.
pub(super) fn record(entry: &Entry) -> Result<String, Fault> {
    serde_json::to_string(&entry.record).map_err(Fault::Record)
}

pub(super) fn records(entries: &[&Entry]) -> Result<Vec<String>, Fault> {
    entries.iter().map(|entry| record(entry)).collect()
}

/// Writes entries of different ids, with their records. One statement: all of them are written, or none.
pub(super) async fn put(
    session: &Session,
    statement: &Statement,
    entries: &[&Entry],
    records: &[String],
) -> Result<(), Fault> {
    if entries.is_empty() {
        return Ok(());
    }
    let texts = |of: fn(&Entry) -> &str| -> Vec<Cow<'_, str>> {
        entries.iter().map(|e| storable(of(e))).collect()
    };
    let words = |of: fn(&Entry) -> Option<&str>| -> Vec<Option<&str>> {
        entries.iter().map(|e| of(e)).collect()
    };
    let flags = |of: fn(&Entry) -> bool| -> Vec<bool> { entries.iter().map(|e| of(e)).collect() };
    let numbers = |of: fn(&Entry) -> i64| -> Vec<i64> { entries.iter().map(|e| of(e)).collect() };
    let moments = |of: fn(&Entry) -> Option<i64>| -> Vec<Option<i64>> {
        entries.iter().map(|e| of(e)).collect()
    };
    let prints: Vec<&[u8]> = entries.iter().map(|e| e.fingerprint.0.as_slice()).collect();
    let client = &session.client;
    client
        .execute(
            statement,
            &[
                &texts(|e| e.record.tenant.as_str()),
                &texts(|e| e.record.request_id.as_str()),
                &prints,
                &flags(|e| e.shown),
                &words(|e| e.owner.as_ref().map(|o| &*o.run)),
                &moments(|e| e.owner.as_ref().map(|o| o.opening)),
                &flags(Entry::is_open),
                &words(|e| Some(e.record.state.as_str())),
                &words(|e| e.record.ended_by.map(EndedBy::as_str)),
                &words(|e| Some(e.record.usage_source.as_str())),
                &words(|e| Some(e.record.api.as_str())),
                &texts(|e| &e.record.model),
                &texts(|e| &e.record.pool),
                &numbers(|e| e.record.admitted_at.0),
                &moments(|e| e.record.ended_at.map(|t| t.0)),
                &numbers(|e| signed(e.record.reserved_units)),
                &numbers(|e| signed(e.record.input_units)),
                &numbers(|e| signed(e.record.generated_units)),
                &numbers(|e| signed(e.record.delivered_units)),
                &numbers(|e| signed(e.record.charged_units)),
                &numbers(|e| signed(e.earlier)),
                &numbers(|e| signed(e.held)),
                &records,
            ],
        )
        .await?;
    Ok(())
}

/// An entry's values, with its record.
pub(super) fn values<'a>(entry: &'a Entry, record: &'a str) -> Vec<Value<'a>> {
    let (r, owner) = (&entry.record, entry.owner.as_ref());
    vec![
        Box::new(storable(r.tenant.as_str())),
        Box::new(r.request_id.as_str()),
        Box::new(entry.fingerprint.0.as_slice()),
        Box::new(entry.shown),
        Box::new(owner.map(|o| &*o.run)),
        Box::new(owner.map(|o| o.opening)),
        Box::new(entry.is_open()),
        Box::new(r.state.as_str()),
        Box::new(r.ended_by.map(EndedBy::as_str)),
        Box::new(r.usage_source.as_str()),
        Box::new(r.api.as_str()),
        Box::new(storable(&r.model)),
        Box::new(storable(&r.pool)),
        Box::new(r.admitted_at.0),
        Box::new(r.ended_at.map(|t| t.0)),
        Box::new(signed(r.reserved_units)),
        Box::new(signed(r.input_units)),
        Box::new(signed(r.generated_units)),
        Box::new(signed(r.delivered_units)),
        Box::new(signed(r.charged_units)),
        Box::new(signed(entry.earlier)),
        Box::new(signed(entry.held)),
        Box::new(record),
    ]
}

/// A text without the one character that PostgreSQL's texts cannot hold. In a record it is escaped, as JSON has it.
pub(super) fn storable(text: &str) -> Cow<'_, str> {
    match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Reads a row with all its columns.
pub(super) fn read(row: &Row) -> Result<Line, Fault> {
    let stored = Stored {
        key: column(row, "key")?,
        tenant: column(row, "tenant")?,
        request_id: column(row, "request_id")?,
        fingerprint: column(row, "fingerprint")?,
        shown: column(row, "shown")?,
        owner: column(row, "owner")?,
        opening: column(row, "opening")?,
        state: column(row, "state")?,
        ended_by: column(row, "ended_by")?,
        usage_source: column(row, "usage_source")?,
        api: column(row, "api")?,
        model: column(row, "model")?,
        pool: column(row, "pool")?,
        admitted_at: column(row, "admitted_at")?,
        ended_at: column(row, "ended_at")?,
        reserved_units: column(row, "reserved_units")?,
        input_units: column(row, "input_units")?,
        generated_units: column(row, "generated_units")?,
        delivered_units: column(row, "delivered_units")?,
        charged_units: column(row, "charged_units")?,
        earlier_units: column(row, "earlier_units")?,
        held_units: column(row, "held_units")?,
        record: column(row, "record")?,
    };
    Ok(stored.line()?)
}
