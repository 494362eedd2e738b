//! The backends of some models, and how requests reach them.

use super::Secret;
use crate::budget::Units;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Pool {
    pub name: String,
    pub protocol: Protocol,
    pub models: Vec<Model>,
    pub balance: Balance,
    pub affinity: Affinity,
    pub max_streams: Option<usize>,
    pub queue: Option<Queue>,
    pub api_key: Option<Secret>,
    pub fallback: Vec<String>,
    /// Static backends. Empty where `discovery` names them.
    pub backends: Vec<Backend>,
    pub discovery: Option<Discovery>,
    pub tls: Option<UpstreamTls>,
    pub headers: HeaderEdits,
    pub bytes_per_unit: u64,
    pub h2: bool,
    pub timeouts: PoolTimeouts,
    pub default_output_units: Units,
    pub cap_member: CapMember,
    pub retry: Retry,
    pub health: Option<Health>,
    pub breaker: Option<Breaker>,
    pub stream: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    OpenAi,
    Anthropic,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    pub public: String,
    pub upstream: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    RoundRobin,
    LeastStreams,
    Hash,
    Affinity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    Session,
    Prefix,
}

#[derive(Clone, Debug)]
pub struct Queue {
    pub max_wait: Duration,
    pub max_len: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// `host:port`.
    pub addr: String,
    pub weight: u32,
    pub max_streams: Option<usize>,
}

#[derive(Clone, Debug)]
pub enum Discovery {
    File(PathBuf),
    Dns {
        name: String,
        interval: Duration,
    },
    Etcd {
        endpoints: Vec<String>,
        prefix: String,
    },
}

#[derive(Clone, Debug)]
pub struct UpstreamTls {
    pub sni: Option<String>,
    pub verify: bool,
    pub ca: Option<PathBuf>,
    pub cert: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

#[derive(Clone, Default)]
pub struct HeaderEdits {
    pub set: Vec<(String, String)>,
    pub remove: Vec<String>,
}

/// Zero: no limit.
#[derive(Clone, Debug)]
pub struct PoolTimeouts {
    pub connect: Duration,
    pub first_byte: Duration,
    pub idle: Duration,
    pub total: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapMember {
    MaxTokens,
    MaxCompletionTokens,
}

#[derive(Clone, Debug)]
pub struct Retry {
    /// All tries of one request, over retries and fallbacks; at least 1.
    pub attempts: usize,
    pub statuses: Vec<u16>,
    pub accept_duplicate_cost: bool,
    /// Retries per request of the last minute, pool-wide.
    pub budget: f64,
}

#[derive(Clone, Debug)]
pub struct Health {
    pub path: String,
    pub interval: Duration,
    pub rise: u32,
    pub fall: u32,
}

#[derive(Clone, Debug)]
pub struct Breaker {
    pub errors: u32,
    pub window: Duration,
    pub open_for: Duration,
}

#[derive(Clone, Debug)]
pub struct Stream {
    /// Zero: none.
    pub heartbeat: Duration,
    pub early_headers: bool,
    pub write_timeout: Duration,
    pub half_close: HalfClose,
    pub usage: UsageMode,
    pub line_ends: LineEnds,
    pub hold_preamble: bool,
    pub resumable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfClose {
    Abort,
    Continue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageMode {
    /// Ask the upstream for usage and hide the extra chunk from a client that did not ask.
    Inject,
    /// Leave the request as it came.
    Keep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnds {
    Keep,
    Lf,
}

/// A header's value may open something, so only the names are printed.
impl fmt::Debug for HeaderEdits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<&String> = self.set.iter().map(|(name, _)| name).collect();
        let edits = &mut f.debug_struct("HeaderEdits");
        edits
            .field("set", &set)
            .field("remove", &self.remove)
            .finish()
    }
}
