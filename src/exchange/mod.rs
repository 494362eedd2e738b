//! The owner of a request. What was shown, what is running and what is owed are one state here: nothing else in the
//! program gives back a slot or settles units, and an exchange does it once, in every way it can end.

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
