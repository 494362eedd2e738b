//! What tenants may spend: units, and the accounts that reserve and settle them. Pure: no clock, no I/O.

mod account;
mod period;
mod units;

pub use account::{Account, Change, Exhausted, Reservation, Sums};
pub use period::Hour;
pub use units::Units;
