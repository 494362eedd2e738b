//! Where requests run: pools of backends, who is in them, and which one is next. Pingora's load balancer holds the
//! membership and walks the candidates; who is up, who has a free slot and who was tried already is decided here.

mod discovery;
mod member;
mod pool;
mod pools;
mod retry_budget;
mod selection;

pub use member::Member;
pub use pool::{NoPick, Picked, Pool};
pub use pools::Pools;
