//! An entry as a row of its table.

use crate::ledger::entry::Entry;
use crate::ledger::stored::{COLUMNS, Line, Stored};
use crate::ledger::sums::signed;
use crate::record::EndedBy;
use rusqlite::types::Type;
use rusqlite::{Connection, Error, OptionalExtension, Row, named_params};

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

/// Reads a row with all its columns.
pub(super) fn read(row: &Row<'_>) -> Result<Line, Error> {
    let stored = Stored {
        key: row.get("key")?,
        tenant: row.get("tenant")?,
        request_id: row.get("request_id")?,
        fingerprint: row.get("fingerprint")?,
        shown: row.get("shown")?,
        owner: row.get("owner")?,
        opening: row.get("opening")?,
        state: row.get("state")?,
        ended_by: row.get("ended_by")?,
        usage_source: row.get("usage_source")?,
        api: row.get("api")?,
        model: row.get("model")?,
        pool: row.get("pool")?,
        admitted_at: row.get("admitted_at")?,
        ended_at: row.get("ended_at")?,
        reserved_units: row.get("reserved_units")?,
        input_units: row.get("input_units")?,
        generated_units: row.get("generated_units")?,
        delivered_units: row.get("delivered_units")?,
        charged_units: row.get("charged_units")?,
        earlier_units: row.get("earlier_units")?,
        held_units: row.get("held_units")?,
        record: row.get("record")?,
    };
    let unreadable = |e| Error::FromSqlConversionFailure(0, Type::Text, Box::new(e));
    stored.line().map_err(unreadable)
}

/// The row of an id.
pub(super) fn find(db: &Connection, tenant: &str, id: &str) -> Result<Option<Line>, Error> {
    let sql = format!("SELECT {COLUMNS} FROM entry WHERE request_id = ?1 AND tenant = ?2");
    db.prepare_cached(&sql)?
        .query_row((id, tenant), read)
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
