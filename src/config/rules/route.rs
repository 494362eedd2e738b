//! What is served by host and path.

use super::{Backend, Balance, HeaderEdits, PoolTimeouts, UpstreamTls};
use std::path::PathBuf;
use std::time::Duration;

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
