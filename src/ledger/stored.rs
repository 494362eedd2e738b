//! An entry as the columns of its row, in whatever database.

use super::entry::{Entry, Fingerprint, Owner};
use super::sums::unsigned;
use crate::clock::Timestamp;
use crate::record::{Api, EndedBy, Record, RequestId, State, UpstreamEnd, UsageSource};
use crate::tenant::TenantName;
use std::fmt;

/// The columns of an entry that are read.
pub(super) const COLUMNS: &str = "key, tenant, request_id, fingerprint, shown, owner, opening, state, ended_by, \
     usage_source, api, model, pool, admitted_at, ended_at, reserved_units, input_units, generated_units, \
     delivered_units, charged_units, earlier_units, held_units, record";

/// A row as read.
#[derive(Debug)]
pub(super) struct Stored {
    pub key: i64,
    pub tenant: String,
    pub request_id: String,
    pub fingerprint: Vec<u8>,
    pub shown: bool,
    pub owner: Option<String>,
    pub opening: Option<i64>,
    pub state: String,
    pub ended_by: Option<String>,
    pub usage_source: String,
    pub api: String,
    pub model: String,
    pub pool: String,
    pub admitted_at: i64,
    pub ended_at: Option<i64>,
    pub reserved_units: i64,
    pub input_units: i64,
    pub generated_units: i64,
    pub delivered_units: i64,
    pub charged_units: i64,
    pub earlier_units: i64,
    pub held_units: i64,
    pub record: String,
}

/// A column that holds no word of ours.
#[derive(Debug)]
pub(super) struct Misread {
    column: &'static str,
    found: String,
}

impl fmt::Display for Misread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {} holds {:?}", self.column, self.found)
    }
}

impl std::error::Error for Misread {}

/// A row understood, its record not parsed yet.
#[derive(Debug)]
pub(super) struct Line {
    pub key: i64,
    entry: Entry,
    text: String,
}

impl Stored {
    pub fn line(self) -> Result<Line, Misread> {
        let fingerprint: Option<[u8; 32]> = self.fingerprint.as_slice().try_into().ok();
        let opening = self.opening.unwrap_or(0);
        let owner = self.owner.as_deref().map(|run| Owner {
            run: run.into(),
            opening,
        });
        Ok(Line {
            key: self.key,
            entry: Entry {
                record: self.bare_record()?,
                fingerprint: fingerprint.map_or(Fingerprint::UNKNOWN, Fingerprint),
                shown: self.shown,
                owner,
                earlier: unsigned(self.earlier_units),
                held: unsigned(self.held_units),
            },
            text: self.record,
        })
    }

    /// A record of what the columns hold alone.
    fn bare_record(&self) -> Result<Record, Misread> {
        let ended_by = self.ended_by.as_deref();
        Ok(Record {
            request_id: word("request_id", &self.request_id, RequestId::parse)?,
            client_request_id: None,
            upstream_request_id: None,
            tenant: TenantName::new(&self.tenant),
            api: word("api", &self.api, Api::from_word)?,
            model: self.model.clone(),
            pool: self.pool.clone(),
            backend: None,
            node: String::new(),
            state: word("state", &self.state, State::from_word)?,
            ended_by: ended_by
                .map(|text| word("ended_by", text, EndedBy::from_word))
                .transpose()?,
            upstream_end: UpstreamEnd::None,
            error: Some("the stored record cannot be read".into()),
            admitted_at: Timestamp(self.admitted_at),
            started_at: None,
            first_output_at: None,
            cancel_requested_at: None,
            client_gone_at: None,
            upstream_ended_at: None,
            released_at: None,
            ended_at: self.ended_at.map(Timestamp),
            reserved_units: unsigned(self.reserved_units),
            input_units: unsigned(self.input_units),
            input_cached_units: None,
            input_cache_write_units: None,
            generated_units: unsigned(self.generated_units),
            delivered_units: unsigned(self.delivered_units),
            charged_units: unsigned(self.charged_units),
            usage_source: word("usage_source", &self.usage_source, UsageSource::from_word)?,
            attempts: Vec::new(),
        })
    }
}

fn word<T>(column: &'static str, text: &str, parse: fn(&str) -> Option<T>) -> Result<T, Misread> {
    parse(text).ok_or_else(|| Misread {
        column,
        found: text.to_owned(),
    })
}

impl Line {
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
