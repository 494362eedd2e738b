//! Where a pool's backends come from, as Pingora's `ServiceDiscovery`.

mod named;

pub use named::Named;
