//! A tenant's name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A tenant's name, as configured. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantName(Arc<str>);

impl TenantName {
    pub fn new(name: &str) -> TenantName {
        TenantName(Arc::from(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
