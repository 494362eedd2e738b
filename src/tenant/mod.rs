//! Who asks: tenants, their keys and what each of them holds while it runs.

mod directory;
mod holdings;
mod name;
mod rates;
mod reserved;

pub use directory::{Directory, Tenant};
pub use holdings::Holdings;
pub use name::TenantName;
pub use rates::{Rate, RateState, Short, Taken};
pub use reserved::{NotReserved, Reserved, Wanted};
