//! The owner of a request. What was shown, what is running and what is owed are one state here: from admission on nothing
//! else in the program gives back a slot or settles units, and an exchange does it once, in every way it can end.
//!
//! - `owner` the exchange, `usage` what it charges, `ending` how it ended
//! - `live` what others see of a request that runs, `registry` who runs
//! - `queue` who waits for a slot and whose turn it is, `shed` who is turned away

mod checkpoints;
mod ending;
mod live;
mod owner;
mod queue;
mod registry;
mod shed;
#[cfg(test)]
mod simulation;
mod usage;

#[cfg(test)]
mod tests;

pub use ending::Ending;
pub use live::{Live, Stop};
pub use owner::{Admission, Exchange, Services};
pub use queue::{Bound, Granted, Place, PoolQueue, Refused, TimedOut};
pub use registry::{Claim, Registry, Taken};
pub use shed::{Readings, Shed};
pub use usage::Usage;
