//! What the metrics say of a tenant's requests and units, before and after something.

use super::gateway::Gateway;
use super::metrics;
use serde_json::Value;

/// What the metrics say of the tenant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Books {
    pub requests: f64,
    /// Those of this API that ended so.
    pub ended_so: f64,
    pub charged: f64,
    pub remaining: f64,
}

impl Books {
    #[track_caller]
    pub fn of(gateway: &Gateway, api: &str, state: &str, ended_by: &str) -> Books {
        let text = gateway.scrape();
        let sum = |name: &str, labels: &[(&str, &str)]| -> f64 {
            metrics::parse(&text)
                .filter(|s| s.name == name && s.has(labels))
                .map(|s| s.value)
                .sum()
        };
        let so = [("api", api), ("state", state), ("ended_by", ended_by)];
        Books {
            requests: sum("streamgate_requests_total", &[]),
            ended_so: sum("streamgate_requests_total", &so),
            charged: sum("streamgate_units_total", &[("kind", "charged")]),
            remaining: sum("streamgate_budget_remaining_units", &[("tenant", "acme")]),
        }
    }

    /// Fails unless one request more has ended, so as was asked for, and what its record says it cost was taken once.
    #[track_caller]
    pub fn must_be_one_more_than(&self, before: &Books, record: &Value) {
        let charged = record["charged_units"].as_f64().unwrap_or(f64::NAN);
        let expected = Books {
            requests: before.requests + 1.0,
            ended_so: before.ended_so + 1.0,
            charged: before.charged + charged,
            remaining: before.remaining - charged,
        };
        assert_eq!(*self, expected, "{record}");
    }
}
