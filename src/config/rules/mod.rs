//! What a configuration says once it is checked: plain types, one file a section.

mod cluster;
mod ledger;
mod listen;
mod pool;
mod route;
mod secret;
mod server;
mod tenant;

pub use cluster::*;
pub use ledger::*;
pub use listen::*;
pub use pool::*;
pub use route::*;
pub use secret::*;
pub use server::*;
pub use tenant::*;

use std::path::PathBuf;

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
