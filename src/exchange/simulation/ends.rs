//! What came of the lives of a simulation.

use std::collections::BTreeMap;

/// How lives ended, and what was refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ends(BTreeMap<String, u64>);

impl Ends {
    pub fn count(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }

    pub fn add(&mut self, more: Ends) {
        for (kind, n) in more.0 {
            *self.0.entry(kind).or_default() += n;
        }
    }

    /// A simulation that never comes to something shows nothing about it.
    pub fn assert_all_kinds_were_seen(&self) {
        for kind in [
            "admitted",
            "refused: too many requests",
            "refused: too many units",
            "refused: too little left",
            "refused: no room",
            "refused: no hope",
            "QUEUED CANCELLED client_closed",
            "QUEUED CANCELLED cancel_api",
            "QUEUED FAILED timeout",
            "QUEUED FAILED gateway",
            "RUNNING FAILED upstream",
            "STREAMING COMPLETED upstream",
            "STREAMING CANCELLED client_closed",
            "STREAMING CANCELLED cancel_api",
            "STREAMING CANCELLED slow_reader",
            "STREAMING FAILED timeout",
            "STREAMING FAILED upstream",
            "STREAMING FAILED gateway",
        ] {
            let seen = self.0.get(kind).copied().unwrap_or(0);
            assert!(seen > 0, "no {kind}: {:?}", self.0);
        }
    }
}
