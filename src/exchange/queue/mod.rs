//! The queue of a pool: who waits for a slot, and whose turn it is.
//!
//! - `fair` the order (pure): tenants take turns by weight and by what their requests cost, first in first out within
//!   a tenant; `flow` one tenant's part of it, `bounds` what is refused at the door
//! - `pool` the queue as requests use it, `place` what a request holds of it
//! - `wait` the mean wait, which shedding looks at
//!
//! Weights alone say whose turn it is. A priority says who is shed first, and orders nothing: a tenant that is to get
//! more of a contended pool has a larger weight.

mod bounds;
mod fair;
mod flow;
mod place;
mod pool;
mod wait;

#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;

pub use bounds::Bound;
pub use place::{Granted, Place, TimedOut};
pub use pool::{PoolQueue, Refused};
