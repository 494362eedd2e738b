//! Who asks: keys, bounds, budget.

use crate::budget::Units;
use crate::tenant::TenantName;
use std::fmt;

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

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key hash]")
    }
}
