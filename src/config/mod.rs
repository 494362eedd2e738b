//! The configuration, as needed: every value checked, every default filled in, relative paths resolved.
//!
//! `source` and `reader` give the file as written, with the place of each value; a module per section turns it into
//! these types, and every finding is reported at once. Nothing in here reads the network; secrets are resolved when
//! the file is checked.

mod address;
mod check;
mod cluster;
mod findings;
mod ledger;
mod listen;
mod logging;
mod models;
mod nearest;
mod pending;
mod pool;
mod reader;
mod route;
mod secrets;
mod server;
mod show;
mod source;
mod tenant;
mod unique;
mod upstream;
mod values;
mod words;

#[cfg(test)]
mod tests;

pub use check::{load, parse};
pub use findings::{Finding, Findings};
pub use show::show;
pub use words::Word;

use crate::budget::Units;
use crate::tenant::TenantName;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The whole configuration. Shapes, units and defaults are those of the commented file `conf/streamgate.toml`.
#[derive(Clone, Debug)]
pub struct Config {
    pub file: PathBuf,
    pub server: Server,
    pub listen: Vec<Listen>,
    pub admin: Option<Admin>,
    pub log: Log,
    pub ledger: Ledger,
    pub tenants: Vec<Tenant>,
    pub pools: Vec<Pool>,
    pub routes: Vec<Route>,
    pub shed: Option<Shed>,
    pub cluster: Option<Cluster>,
    /// Keys that stand in the file and whose work this build does not do yet, in words for the log at start.
    pub not_in_effect: Vec<String>,
    /// Those of the tenants' keys that do not stand in the file as hashes, and so are never shown.
    pub unlisted_keys: Vec<KeyHash>,
}

#[derive(Clone, Debug)]
pub struct Server {
    /// 0: one per core.
    pub threads: usize,
    pub pid_file: PathBuf,
    pub upgrade_sock: PathBuf,
    pub data_dir: PathBuf,
    pub drain_timeout: Duration,
    /// Bytes of one request body on an llm route.
    pub max_body: u64,
    /// Bytes of all bodies held at once.
    pub max_body_memory: u64,
    pub trusted_proxies: Vec<Network>,
    /// 0: what the descriptor limit allows.
    pub max_connections: usize,
    pub max_headers: MaxHeaders,
    /// Bytes.
    pub socket_buffer: u64,
    pub timeouts: ServerTimeouts,
}

#[derive(Clone, Debug)]
pub struct MaxHeaders {
    pub count: usize,
    /// Bytes of the whole head.
    pub size: u64,
}

#[derive(Clone, Debug)]
pub struct ServerTimeouts {
    pub header: Duration,
    pub body: Duration,
    pub keepalive: Duration,
}

/// An address range, `10.0.0.0/8`. A plain address is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    pub address: IpAddr,
    pub prefix: u8,
}

impl Network {
    pub fn contains(&self, ip: IpAddr) -> bool {
        let (ours, theirs) = match (self.address, ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits().into(), b.to_bits().into()),
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits()),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        let width = if ip.is_ipv4() { 32 } else { 128 };
        let shift = u32::from(width - self.prefix.min(width));
        // a range of everything shifts all bits out
        let network = |bits: u128| bits.checked_shr(shift).unwrap_or(0);
        network(ours) == network(theirs)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddr {
    Tcp(String),
    Unix(PathBuf),
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddr::Tcp(addr) => f.write_str(addr),
            ListenAddr::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Listen {
    pub addr: ListenAddr,
    pub tls: Vec<ServerCert>,
    pub tls_min: TlsVersion,
    pub client_ca: Option<PathBuf>,
    pub client_auth: ClientAuth,
    pub h2: bool,
    pub h2c: bool,
    pub proxy_protocol: bool,
}

#[derive(Clone, Debug)]
pub struct ServerCert {
    pub sni: Option<String>,
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    V1_2,
    V1_3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    Required,
    Optional,
}

#[derive(Clone, Debug)]
pub struct Admin {
    pub addr: String,
    pub token: Option<Secret>,
}

#[derive(Clone, Debug)]
pub struct Log {
    pub access: LogTarget,
    pub error: LogTarget,
    pub format: LogFormat,
    pub level: log::LevelFilter,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    Stdout,
    Stderr,
    Off,
    File(PathBuf),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Combined,
}

#[derive(Clone, Debug)]
pub struct Ledger {
    pub store: LedgerStore,
    pub durability: Durability,
    pub on_error: OnError,
    pub on_unknown: OnUnknown,
    pub retention: Duration,
}

#[derive(Clone, Debug)]
pub enum LedgerStore {
    Sqlite(PathBuf),
    /// The whole URL; it may hold a password.
    Postgres(Secret),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives the death of the process.
    Process,
    /// Also a power cut: each group commit is synced to disk.
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    Refuse,
    Serve,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnknown {
    Hold,
    ChargeReserved,
    ChargeCounted,
}

#[derive(Clone, Debug)]
pub struct Tenant {
    pub name: TenantName,
    /// SHA-256 of each key.
    pub keys: Vec<KeyHash>,
    pub anonymous: bool,
    pub priority: Priority,
    pub weight: u32,
    pub max_streams: Option<usize>,
    pub max_queued: Option<usize>,
    pub requests_per_minute: Option<u64>,
    pub units_per_minute: Option<Units>,
    pub budget: Option<Budget>,
    pub max_output_units: Option<Units>,
    pub clamp: bool,
    pub charge_cancelled: ChargeCancelled,
    pub models: ModelSet,
}

/// The SHA-256 of an API key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyHash(pub [u8; 32]);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    Batch,
    Normal,
    Core,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub units: Units,
    pub period: Period,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    Hour,
    Day,
    Month,
    Total,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeCancelled {
    Generated,
    Delivered,
}

/// `models = ["*"]`, or a list of public names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelSet {
    All,
    Named(Vec<String>),
}

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

#[derive(Clone, Debug)]
pub struct Route {
    pub scheme: Option<String>,
    pub host: Option<String>,
    pub path: String,
    pub kind: RouteKind,
    pub response_headers: HeaderEdits,
    pub cors: Option<Cors>,
    pub max_body: Option<u64>,
}

#[derive(Clone, Debug)]
pub enum RouteKind {
    Llm,
    Proxy(Box<ProxyRoute>),
    Static { root: PathBuf, index: String },
    Redirect { to: String, status: u16 },
}

#[derive(Clone, Debug)]
pub struct ProxyRoute {
    pub backends: Vec<Backend>,
    pub balance: Balance,
    pub tls: Option<UpstreamTls>,
    pub h2: bool,
    pub strip_prefix: Option<String>,
    pub request_headers: HeaderEdits,
    pub websocket: bool,
    pub timeouts: PoolTimeouts,
}

#[derive(Clone, Debug)]
pub struct Cors {
    pub origins: Vec<String>,
    pub max_age: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Shed {
    pub queue_wait: Duration,
    pub loop_lag: Duration,
    pub fd_headroom: f64,
}

#[derive(Clone, Debug)]
pub struct Cluster {
    pub redis: Secret,
    pub node: String,
    pub advertise: Option<String>,
    pub on_failure: OnClusterFailure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnClusterFailure {
    Local,
    Reject,
}

/// A value that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: String) -> Secret {
        Secret(value)
    }

    /// The value itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key hash]")
    }
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
