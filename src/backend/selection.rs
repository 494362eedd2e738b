//! The order in which backends are tried, in the form Pingora's load balancer takes.

use super::member::Member;
use pingora_load_balancing::Backend;
use pingora_load_balancing::selection::{BackendIter, BackendSelection};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The backend with the fewest running streams for its weight comes first; equal ones take turns.
pub struct LeastStreams {
    backends: Vec<Backend>,
    turn: AtomicUsize,
}

/// The candidates, by how busy they were when the walk began.
pub struct ByLoad {
    of: Arc<LeastStreams>,
    order: std::vec::IntoIter<usize>,
}

impl BackendSelection for LeastStreams {
    type Iter = ByLoad;
    type Config = ();

    fn build(backends: &BTreeSet<Backend>) -> LeastStreams {
        LeastStreams {
            backends: backends.iter().cloned().collect(),
            turn: AtomicUsize::new(0),
        }
    }

    fn iter(self: &Arc<LeastStreams>, _key: &[u8]) -> ByLoad {
        let mut order: Vec<usize> = (0..self.backends.len()).collect();
        if !order.is_empty() {
            let turn = self.turn.fetch_add(1, Ordering::Relaxed) % order.len();
            order.rotate_left(turn);
        }
        // a stable sort leaves equal ones in turn
        order.sort_by_cached_key(|i| self.backends.get(*i).map(load));
        ByLoad {
            of: self.clone(),
            order: order.into_iter(),
        }
    }
}

impl BackendIter for ByLoad {
    fn next(&mut self) -> Option<&Backend> {
        let index = self.order.next()?;
        self.of.backends.get(index)
    }
}

/// Running streams per weight, in thousandths.
fn load(backend: &Backend) -> usize {
    backend.ext.get::<Arc<Member>>().map_or(0, |m| {
        let weight = usize::try_from(m.weight).unwrap_or(1).max(1);
        m.slots.used().saturating_mul(1000) / weight
    })
}
