//! What is counted and measured, and how it is shown to Prometheus (contract section 7).

mod gaps;
mod table;

pub use gaps::Gaps;
pub use table::Table;

use crate::budget::Units;
use crate::clock::{self, Timestamp};
use crate::record::{Record, State};
use gaps::Longest;
use prometheus::{Encoder, IntGauge, Registry, TextEncoder};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What a refusal's tenant label says where no tenant is known.
const NO_TENANT: &str = "-";

pub struct Metrics {
    registry: Registry,
    pub table: Table,
    longest: Mutex<HashMap<String, Arc<Longest>>>,
}

impl Metrics {
    /// All metrics, registered.
    pub fn new() -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new();
        let table = Table::register(&registry)?;
        table
            .build_info
            .with_label_values(&[env!("CARGO_PKG_VERSION")])
            .set(1);
        for cause in ["client_closed", "cancel_api"] {
            table.release.with_label_values(&[cause]);
        }
        Ok(Metrics {
            registry,
            table,
            longest: Mutex::default(),
        })
    }

    /// A pool's series are there from the first scrape on, not from its first request.
    pub fn add_pool(&self, pool: &str) {
        let t = &self.table;
        t.heartbeats.with_label_values(&[pool]);
        for histogram in [&t.first_output, &t.inter_event, &t.queue_wait, &t.connect] {
            histogram.with_label_values(&[pool]);
        }
        t.slots.with_label_values(&[pool]);
        self.longest(pool);
    }

    pub fn rejected(&self, tenant: Option<&str>, code: &str) {
        self.table
            .rejected
            .with_label_values(&[tenant.unwrap_or(NO_TENANT), code])
            .inc();
    }

    pub(crate) fn entered(&self, record: &Record, state: State) {
        self.stream_gauge(record, state).inc();
    }

    pub(crate) fn left(&self, record: &Record, state: State) {
        self.stream_gauge(record, state).dec();
    }

    fn stream_gauge(&self, record: &Record, state: State) -> IntGauge {
        let labels = [record.tenant.as_str(), &record.pool, state.as_str()];
        self.table.streams.with_label_values(&labels)
    }

    pub(crate) fn first_output(&self, pool: &str, after: Duration) {
        self.table
            .first_output
            .with_label_values(&[pool])
            .observe(after.as_secs_f64());
    }

    /// The slots are free again: how long that took since somebody wanted it so.
    pub(crate) fn released(&self, record: &Record, now: Timestamp) {
        let causes = [
            ("cancel_api", record.cancel_requested_at),
            ("client_closed", record.client_gone_at),
        ];
        if let Some((cause, since)) = causes.into_iter().find_map(|(c, t)| Some((c, t?))) {
            self.table
                .release
                .with_label_values(&[cause])
                .observe(now.since(since).as_secs_f64());
        }
    }

    pub(crate) fn ended(&self, record: &Record, charge: Units, reserved: Units) {
        let tenant = record.tenant.as_str();
        let by = record.ended_by.map_or("", |e| e.as_str());
        let (api, state) = (record.api.as_str(), record.state.as_str());
        self.table
            .requests
            .with_label_values(&[tenant, &record.pool, api, state, by])
            .inc();
        let kinds = [
            ("input", record.input_units),
            ("generated", record.generated_units),
            ("delivered", record.delivered_units),
            ("charged", charge),
            ("overrun", charge.minus(reserved)),
        ];
        for (kind, units) in kinds {
            self.table
                .units
                .with_label_values(&[tenant, &record.pool, kind])
                .inc_by(units.0);
        }
    }

    pub fn retried(&self, pool: &str, reason: &str) {
        self.table.retries.with_label_values(&[pool, reason]).inc();
    }

    pub fn heartbeat(&self, pool: &str) {
        self.table.heartbeats.with_label_values(&[pool]).inc();
    }

    pub fn connected(&self, pool: &str, after: Duration) {
        self.table
            .connect
            .with_label_values(&[pool])
            .observe(after.as_secs_f64());
    }

    /// The gap meter of one stream.
    pub fn gaps(&self, pool: &str) -> Gaps {
        Gaps::new(
            self.table.inter_event.with_label_values(&[pool]),
            self.longest(pool),
        )
    }

    fn longest(&self, pool: &str) -> Arc<Longest> {
        let mut all = self.longest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(longest) = all.get(pool) {
            return longest.clone();
        }
        let longest = Longest::new();
        all.insert(pool.to_owned(), longest.clone());
        longest
    }

    /// Everything in Prometheus' text format.
    pub fn render(&self) -> Result<Vec<u8>, prometheus::Error> {
        let now = clock::instant();
        let all = self.longest.lock().unwrap_or_else(PoisonError::into_inner);
        for (pool, longest) in all.iter() {
            self.table
                .inter_event_max
                .with_label_values(&[pool])
                .set(longest.longest(now));
        }
        drop(all);
        let mut out = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut out)?;
        Ok(out)
    }
}
