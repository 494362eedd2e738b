//! The ends of requests that are not known to be written yet. An id is looked for here before it is in the ledger: one
//! whose end waits, for a moment or because the ledger hangs or cannot be written, is as well known as any other.

use super::entry::{End, Known};
use crate::record::RequestId;
use crate::tenant::TenantName;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many wait while requests are served that the ledger cannot take: some hundred megabytes.
const MAX: usize = 100_000;

/// Shared by the handle and its thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Unwritten(Arc<Mutex<Ends>>);

#[derive(Debug, Default)]
struct Ends {
    /// Of each id its lives, the last one last.
    by_name: HashMap<(TenantName, RequestId), Vec<Arc<End>>>,
    count: usize,
}

impl Unwritten {
    fn lock(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn add(&self, end: &Arc<End>) {
        let mut ends = self.lock();
        ends.count += 1;
        ends.by_name
            .entry(end.name())
            .or_default()
            .push(end.clone());
    }

    /// An end is in the ledger, or will never be.
    pub fn remove(&self, end: &Arc<End>) {
        let mut ends = self.lock();
        let Entry::Occupied(mut lives) = ends.by_name.entry(end.name()) else {
            return;
        };
        let before = lives.get().len();
        lives.get_mut().retain(|life| !Arc::ptr_eq(life, end));
        let removed = before - lives.get().len();
        if lives.get().is_empty() {
            lives.remove();
        }
        ends.count -= removed;
    }

    pub fn find(&self, tenant: &TenantName, id: &RequestId) -> Option<Known> {
        let name = (tenant.clone(), id.clone());
        let ends = self.lock();
        Some(ends.by_name.get(&name)?.last()?.known())
    }

    /// All of them, in no order.
    pub fn all(&self) -> Vec<Arc<End>> {
        self.lock().by_name.values().flatten().cloned().collect()
    }

    pub fn count(&self) -> usize {
        self.lock().count
    }

    /// Whether no more should wait.
    pub fn is_full(&self) -> bool {
        self.count() >= MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Units;
    use crate::ledger::tests::{acme, complete, ended, failed, id, running};

    #[test]
    fn an_end_is_found_until_it_is_written() {
        let unwritten = Unwritten::default();
        let end = Arc::new(ended(complete(&running("r"))));
        unwritten.add(&end);
        assert_eq!(unwritten.find(&acme(), &id("r")), Some(end.known()));
        assert_eq!(unwritten.find(&TenantName::new("other"), &id("r")), None);
        unwritten.remove(&end);
        assert_eq!(unwritten.find(&acme(), &id("r")), None);
    }

    #[test]
    fn the_last_of_an_id_is_the_one_that_is_found() {
        let unwritten = Unwritten::default();
        let first = Arc::new(ended(failed(&running("r"), 7)));
        let second = Arc::new(ended(complete(&running("r"))));
        unwritten.add(&first);
        unwritten.add(&second);
        unwritten.remove(&first);
        let found = unwritten.find(&acme(), &id("r")).unwrap();
        assert_eq!(found.record.charged_units, Units(40));
    }

    #[test]
    fn those_of_one_id_are_counted_one_by_one() {
        let unwritten = Unwritten::default();
        let ends: Vec<_> = (0..MAX)
            .map(|n| Arc::new(ended(failed(&running("r"), n as u64))))
            .collect();
        ends.iter().for_each(|end| unwritten.add(end));
        assert!(unwritten.is_full());
        unwritten.remove(&ends[0]);
        assert!(!unwritten.is_full());
    }
}
