//! The record of a request as clients, operators and the ledger see it (contract section 5).

mod id;
mod state;

pub use id::RequestId;
pub use state::{Api, EndedBy, Outcome, State, UpstreamEnd, UsageSource};

use crate::budget::Units;
use crate::clock::Timestamp;
use crate::tenant::TenantName;
use serde::{Deserialize, Serialize};

/// Everything that is known of one request. A terminal record never changes, but where its id is sent again after an
/// end with nothing shown: then it reopens, attempts append and charges add up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub request_id: RequestId,
    /// The client's own `X-Request-Id`: a trace name, never an identity.
    pub client_request_id: Option<String>,
    /// The upstream's own `x-request-id`, by which its bill names the request.
    pub upstream_request_id: Option<String>,
    pub tenant: TenantName,
    pub api: Api,
    /// The model's public name, as the client asked for it.
    pub model: String,
    pub pool: String,
    /// The address of the last backend tried.
    pub backend: Option<String>,
    pub node: String,
    pub state: State,
    pub ended_by: Option<EndedBy>,
    pub upstream_end: UpstreamEnd,
    /// What went wrong, in words, where something did.
    pub error: Option<String>,
    pub admitted_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub first_output_at: Option<Timestamp>,
    pub cancel_requested_at: Option<Timestamp>,
    pub client_gone_at: Option<Timestamp>,
    pub upstream_ended_at: Option<Timestamp>,
    pub released_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub reserved_units: Units,
    /// All input, cached parts included.
    pub input_units: Units,
    /// Of the input, what the upstream read from its cache, where it names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_cached_units: Option<Units>,
    /// Of the input, what the upstream wrote to its cache, where it names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_cache_write_units: Option<Units>,
    /// What the upstream made, as far as the gateway knows.
    pub generated_units: Units,
    /// What was written to the client.
    pub delivered_units: Units,
    pub charged_units: Units,
    pub usage_source: UsageSource,
    pub attempts: Vec<Attempt>,
}

/// Who asks what of whom, and when that was admitted.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub request_id: RequestId,
    pub tenant: TenantName,
    pub api: Api,
    pub model: String,
    pub pool: String,
    pub node: String,
    pub at: Timestamp,
}

impl Record {
    /// As clients and operators read it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|e| format!("{self:?} ({e})"))
    }

    /// The record of a request that was just admitted: queued, and nothing has happened yet.
    pub fn new(admitted: Admitted) -> Record {
        Record {
            request_id: admitted.request_id,
            client_request_id: None,
            upstream_request_id: None,
            tenant: admitted.tenant,
            api: admitted.api,
            model: admitted.model,
            pool: admitted.pool,
            backend: None,
            node: admitted.node,
            state: State::Queued,
            ended_by: None,
            upstream_end: UpstreamEnd::None,
            error: None,
            admitted_at: admitted.at,
            started_at: None,
            first_output_at: None,
            cancel_requested_at: None,
            client_gone_at: None,
            upstream_ended_at: None,
            released_at: None,
            ended_at: None,
            reserved_units: Units::ZERO,
            input_units: Units::ZERO,
            input_cached_units: None,
            input_cache_write_units: None,
            generated_units: Units::ZERO,
            delivered_units: Units::ZERO,
            charged_units: Units::ZERO,
            usage_source: UsageSource::Counted,
            attempts: Vec::new(),
        }
    }
}

/// One try of an upstream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    pub backend: String,
    pub outcome: Outcome,
    /// The upstream's HTTP status, where it answered with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}
