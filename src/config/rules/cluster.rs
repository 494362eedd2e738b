//! Several gateways that share what they count.

use super::Secret;

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
