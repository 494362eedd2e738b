//! The amount that budgets, rates and the ledger count in.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A number of units: tokens where the upstream reports them, else what the gateway estimates or counts.
/// Arithmetic saturates: a figure that is too large stays large and never wraps into credit.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Units(pub u64);

impl Units {
    pub const ZERO: Units = Units(0);
    /// The largest figure believed, from a client or an upstream (contract section 5).
    pub const BELIEVABLE_MAX: Units = Units(1_000_000_000);

    #[must_use]
    pub const fn plus(self, other: Units) -> Units {
        Units(self.0.saturating_add(other.0))
    }

    #[must_use]
    pub const fn minus(self, other: Units) -> Units {
        Units(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Units {
    fn sum<I: Iterator<Item = Units>>(iter: I) -> Units {
        iter.fold(Units::ZERO, Units::plus)
    }
}

impl fmt::Display for Units {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
