//! Entries as rows of their table: read one by one, written many at once.

use super::fault::Fault;
use super::link::{Session, column};
use crate::ledger::entry::Entry;
use crate::ledger::stored::{Line, Stored};
use crate::ledger::sums::signed;
use crate::record::EndedBy;
use std::borrow::Cow;
use tokio_postgres::{Row, Statement};

/// Writes entries, each in place of the one of its id where there is one. The names of the columns stand twice: their
/// order is that of the values in `put`.
const PUT: &str = "INSERT INTO entry (tenant, request_id, fingerprint, shown, owner, opening, open, state, ended_by, \
     usage_source, api, model, pool, admitted_at, ended_at, reserved_units, input_units, generated_units, \
     delivered_units, charged_units, earlier_units, held_units, record) \
     SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::boolean[], $5::text[], $6::bigint[], \
     $7::boolean[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], \
     $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::bigint[], \
     $22::bigint[], $23::text[]) \
     ON CONFLICT (request_id, tenant) DO UPDATE SET (fingerprint, shown, owner, opening, open, state, ended_by, \
     usage_source, api, model, pool, admitted_at, ended_at, reserved_units, input_units, generated_units, \
     delivered_units, charged_units, earlier_units, held_units, record) = \
     (excluded.fingerprint, excluded.shown, excluded.owner, excluded.opening, excluded.open, excluded.state, \
     excluded.ended_by, excluded.usage_source, excluded.api, excluded.model, excluded.pool, excluded.admitted_at, \
     excluded.ended_at, excluded.reserved_units, excluded.input_units, excluded.generated_units, \
     excluded.delivered_units, excluded.charged_units, excluded.earlier_units, excluded.held_units, excluded.record)";

pub(super) async fn put_statement(session: &Session) -> Result<Statement, Fault> {
    session.statement(PUT).await
}

/// The records of entries as they are stored.
pub(super) fn records(entries: &[&Entry]) -> Result<Vec<String>, Fault> {
    let text = |entry: &&Entry| serde_json::to_string(&entry.record);
    let texts: Result<_, _> = entries.iter().map(text).collect();
    texts.map_err(Fault::Record)
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
