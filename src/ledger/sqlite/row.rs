//! An entry as a row of its table.

use crate::budget::Units;
use crate::clock::Timestamp;
use crate::exchange::{Api, EndedBy, Record, RequestId, State, UpstreamEnd, UsageSource};
use crate::ledger::entry::{Entry, Fingerprint, Owner};
use crate::ledger::sums::{signed, unsigned};
use crate::tenant::TenantName;
use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension, Row, named_params};

/// The columns of an entry, after its key, in the order they are read in.
pub(super) const COLUMNS: &str = "key, tenant, request_id, fingerprint, shown, owner, opening, state, ended_by, \
     usage_source, api, model, pool, admitted_at, ended_at, reserved_units, input_units, generated_units, \
     delivered_units, charged_units, earlier_units, held_units, record";

const INSERT: &str = "INSERT INTO entry (tenant, request_id, fingerprint, shown, owner, opening, open, state, ended_by, \
     usage_source, api, model, pool, admitted_at, ended_at, reserved_units, input_units, generated_units, \
     delivered_units, charged_units, earlier_units, held_units, record) \
     VALUES (:tenant, :request_id, :fingerprint, :shown, :owner, :opening, :open, :state, :ended_by, :usage_source, \
     :api, :model, :pool, :admitted_at, :ended_at, :reserved, :input, :generated, :delivered, :charged, :earlier, \
     :held, :record)";

const UPDATE: &str = "UPDATE entry SET fingerprint = :fingerprint, shown = :shown, owner = :owner, opening = :opening, \
     open = :open, state = :state, ended_by = :ended_by, usage_source = :usage_source, api = :api, model = :model, \
     pool = :pool, admitted_at = :admitted_at, ended_at = :ended_at, reserved_units = :reserved, \
     input_units = :input, generated_units = :generated, delivered_units = :delivered, charged_units = :charged, \
     earlier_units = :earlier, held_units = :held, record = :record \
     WHERE request_id = :request_id AND tenant = :tenant";

/// A row as read, its record not parsed yet.
pub(super) struct Line {
    pub key: i64,
    entry: Entry,
    text: String,
}

impl Line {
    pub fn read(row: &Row<'_>) -> Result<Line, Error> {
        let fingerprint: Option<[u8; 32]> = row.get_ref("fingerprint")?.as_blob()?.try_into().ok();
        let run: Option<String> = row.get("owner")?;
        let owner = match run {
            Some(run) => Some(Owner {
                run: run.into(),
                opening: row.get::<_, Option<i64>>("opening")?.unwrap_or(0),
            }),
            None => None,
        };
        Ok(Line {
            key: row.get("key")?,
            entry: Entry {
                record: bare_record(row)?,
                fingerprint: fingerprint.map_or(Fingerprint::UNKNOWN, Fingerprint),
                shown: row.get("shown")?,
                owner,
                earlier: units(row, "earlier_units")?,
                held: units(row, "held_units")?,
            },
            text: row.get("record")?,
        })
    }

    /// The entry, or why its record cannot be read.
    pub fn entry(self) -> Result<Entry, serde_json::Error> {
        let full: Record = serde_json::from_str(&self.text)?;
        Ok(Entry {
            record: believed(full, self.entry.record),
            ..self.entry
        })
    }

    /// The entry; where its record cannot be read, what the columns say.
    pub fn entry_at_least(self) -> Entry {
        match serde_json::from_str::<Record>(&self.text) {
            Ok(full) => Entry {
                record: believed(full, self.entry.record),
                ..self.entry
            },
            Err(e) => {
                let id = &self.entry.record.request_id;
                log::error!(
                    "ledger: the stored record of {id} cannot be read, its columns stand in: {e}"
                );
                self.entry
            }
        }
    }
}

/// The stored record, with the columns' word for what they hold.
fn believed(full: Record, columns: Record) -> Record {
    Record {
        request_id: columns.request_id,
        tenant: columns.tenant,
        api: columns.api,
        model: columns.model,
        pool: columns.pool,
        state: columns.state,
        ended_by: columns.ended_by,
        usage_source: columns.usage_source,
        admitted_at: columns.admitted_at,
        ended_at: columns.ended_at,
        reserved_units: columns.reserved_units,
        input_units: columns.input_units,
        generated_units: columns.generated_units,
        delivered_units: columns.delivered_units,
        charged_units: columns.charged_units,
        ..full
    }
}

/// A record of what the columns hold alone.
fn bare_record(row: &Row<'_>) -> Result<Record, Error> {
    let tenant: String = row.get("tenant")?;
    Ok(Record {
        request_id: word(row, "request_id", RequestId::parse)?,
        client_request_id: None,
        upstream_request_id: None,
        tenant: TenantName::new(&tenant),
        api: word(row, "api", Api::from_word)?,
        model: row.get("model")?,
        pool: row.get("pool")?,
        backend: None,
        node: String::new(),
        state: word(row, "state", State::from_word)?,
        ended_by: optional_word(row, "ended_by", EndedBy::from_word)?,
        upstream_end: UpstreamEnd::None,
        error: Some("the stored record cannot be read".into()),
        admitted_at: Timestamp(row.get("admitted_at")?),
        started_at: None,
        first_output_at: None,
        cancel_requested_at: None,
        client_gone_at: None,
        upstream_ended_at: None,
        released_at: None,
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(Timestamp),
        reserved_units: units(row, "reserved_units")?,
        input_units: units(row, "input_units")?,
        input_cached_units: None,
        input_cache_write_units: None,
        generated_units: units(row, "generated_units")?,
        delivered_units: units(row, "delivered_units")?,
        charged_units: units(row, "charged_units")?,
        usage_source: word(row, "usage_source", UsageSource::from_word)?,
        attempts: Vec::new(),
    })
}

fn units(row: &Row<'_>, column: &str) -> Result<Units, Error> {
    row.get(column).map(unsigned)
}

fn word<T>(row: &Row<'_>, column: &str, parse: fn(&str) -> Option<T>) -> Result<T, Error> {
    optional_word(row, column, parse)?.ok_or_else(|| unreadable(row, column, "nothing"))
}

fn optional_word<T>(
    row: &Row<'_>,
    column: &str,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<T>, Error> {
    let Some(text) = row.get_ref(column)?.as_str_or_null()? else {
        return Ok(None);
    };
    match parse(text) {
        Some(value) => Ok(Some(value)),
        None => Err(unreadable(row, column, text)),
    }
}

fn unreadable(row: &Row<'_>, column: &str, found: &str) -> Error {
    let index = row.as_ref().column_index(column).unwrap_or(0);
    let cause = format!("column {column} holds {found:?}");
    Error::FromSqlConversionFailure(index, Type::Text, cause.into())
}

/// The row of an id.
pub(super) fn find(db: &Connection, tenant: &str, id: &str) -> Result<Option<Line>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM entry WHERE request_id = ?1 AND tenant = ?2");
    db.prepare_cached(&sql)?
        .query_row((id, tenant), Line::read)
        .optional()
}

/// Writes an entry, in place of the one of its id where there is one. One statement: it happens or it does not.
pub(super) fn put(db: &Connection, entry: &Entry, is_new: bool) -> Result<(), Error> {
    let record = &entry.record;
    let text =
        serde_json::to_string(record).map_err(|e| Error::ToSqlConversionFailure(e.into()))?;
    let sql = if is_new { INSERT } else { UPDATE };
    db.prepare_cached(sql)?.execute(named_params! {
        ":tenant": record.tenant.as_str(),
        ":request_id": record.request_id.as_str(),
        ":fingerprint": entry.fingerprint.0.as_slice(),
        ":shown": entry.shown,
        ":owner": entry.owner.as_ref().map(|o| &*o.run),
        ":opening": entry.owner.as_ref().map(|o| o.opening),
        ":open": entry.is_open(),
        ":state": record.state.as_str(),
        ":ended_by": record.ended_by.map(EndedBy::as_str),
        ":usage_source": record.usage_source.as_str(),
        ":api": record.api.as_str(),
        ":model": record.model,
        ":pool": record.pool,
        ":admitted_at": record.admitted_at.0,
        ":ended_at": record.ended_at.map(|t| t.0),
        ":reserved": signed(record.reserved_units),
        ":input": signed(record.input_units),
        ":generated": signed(record.generated_units),
        ":delivered": signed(record.delivered_units),
        ":charged": signed(record.charged_units),
        ":earlier": signed(entry.earlier),
        ":held": signed(entry.held),
        ":record": text,
    })?;
    Ok(())
}
