//! Where clients and operators connect.

use super::Secret;
use std::fmt;
use std::path::PathBuf;

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
