//! The process as a whole: its limits, its logs, what it sheds.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

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

#[derive(Clone, Debug, PartialEq)]
pub struct Shed {
    pub queue_wait: Duration,
    pub loop_lag: Duration,
    pub fd_headroom: f64,
}
