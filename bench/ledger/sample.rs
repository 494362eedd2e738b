//! The request that is measured with, and the ledgers it is written to.

use crate::support::database::Database;
use std::path::Path;
use std::time::Duration;
use streamgate::budget::Units;
use streamgate::clock;
use streamgate::config::{self, Durability, LedgerStore, OnError, OnUnknown, Secret};
use streamgate::ledger::{End, Fingerprint, Observer, Opening, Posting};
use streamgate::record::{
    Admitted, Api, Attempt, EndedBy, Outcome, Record, RequestId, State, UpstreamEnd, UsageSource,
};
use streamgate::tenant::TenantName;

pub fn sqlite(file: &Path, durability: Durability) -> config::Ledger {
    ledger(LedgerStore::Sqlite(file.to_owned()), durability)
}

pub fn postgres(database: &Database, durability: Durability) -> config::Ledger {
    ledger(
        LedgerStore::Postgres(Secret::new(database.url())),
        durability,
    )
}

fn ledger(store: LedgerStore, durability: Durability) -> config::Ledger {
    config::Ledger {
        store,
        durability,
        on_error: OnError::Refuse,
        on_unknown: OnUnknown::Hold,
        leftovers: std::env::temp_dir().join("streamgate-bench-unsettled"),
        retention: Duration::from_secs(100 * 365 * 86400),
    }
}

/// Does with what the ledger's thread tells nothing.
pub struct Nobody;

impl Observer for Nobody {
    fn committed(&self, _: Duration, _: usize) {}
    fn state(&self, _: u64, _: u64) {}
    fn adjusted(&self, _: &Posting) {}
}

/// A request that has just been admitted.
pub fn opening() -> Opening {
    let admitted = Admitted {
        request_id: RequestId::generate(),
        tenant: TenantName::new("acme"),
        api: Api::Chat,
        model: "llama-3.1-8b".into(),
        pool: "llama".into(),
        node: "gw-1".into(),
        at: clock::now(),
    };
    let record = Record {
        reserved_units: Units(1128),
        input_units: Units(128),
        ..Record::new(admitted)
    };
    Opening {
        fingerprint: Fingerprint::of(
            &record.tenant,
            "POST",
            "/v1/chat/completions",
            record.request_id.as_str().as_bytes(),
        ),
        record,
    }
}

/// The same request at its end.
pub fn ended(opening: Opening) -> End {
    let record = settled(opening.record);
    End {
        charge: record.charged_units,
        record,
        fingerprint: opening.fingerprint,
        shown: true,
    }
}

fn settled(record: Record) -> Record {
    let now = Some(clock::now());
    Record {
        state: State::Completed,
        ended_by: Some(EndedBy::Upstream),
        upstream_end: UpstreamEnd::Complete,
        backend: Some("10.0.0.1:8000".into()),
        upstream_request_id: Some("chatcmpl-0123456789abcdef".into()),
        started_at: now,
        first_output_at: now,
        upstream_ended_at: now,
        released_at: now,
        ended_at: now,
        generated_units: Units(300),
        delivered_units: Units(300),
        charged_units: Units(428),
        usage_source: UsageSource::Upstream,
        attempts: vec![Attempt {
            backend: "10.0.0.1:8000".into(),
            outcome: Outcome::Ok,
            status: Some(200),
        }],
        ..record
    }
}
