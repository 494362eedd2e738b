//! Who runs now: every id that is claimed, per tenant, so that no id runs twice at once and each can be found.

use super::live::Live;
use crate::ledger::Fingerprint;
use crate::record::{Record, RequestId};
use crate::tenant::TenantName;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

type Key = (TenantName, RequestId);

#[derive(Debug)]
struct Entry {
    fingerprint: Fingerprint,
    /// Set once all is known of the request that its record says.
    live: OnceLock<Arc<Live>>,
}

/// All claimed ids.
#[derive(Debug, Default)]
pub struct Registry {
    entries: Mutex<HashMap<Key, Arc<Entry>>>,
    count: AtomicUsize,
}

/// The claim on an id. Dropping it gives the id up.
#[derive(Debug)]
pub struct Claim {
    registry: Arc<Registry>,
    key: Key,
    entry: Arc<Entry>,
}

/// The id is claimed by a request of this fingerprint.
#[derive(Debug)]
pub struct Taken(pub Fingerprint);

impl Claim {
    /// Of the request that claimed the id.
    pub fn fingerprint(&self) -> Fingerprint {
        self.entry.fingerprint
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims an id for one request.
    pub fn claim(
        self: &Arc<Registry>,
        tenant: &TenantName,
        id: &RequestId,
        fingerprint: Fingerprint,
    ) -> Result<Claim, Taken> {
        let key = (tenant.clone(), id.clone());
        let mut entries = self.lock();
        if let Some(taken) = entries.get(&key) {
            return Err(Taken(taken.fingerprint));
        }
        let entry = Arc::new(Entry {
            fingerprint,
            live: OnceLock::new(),
        });
        entries.insert(key.clone(), entry.clone());
        self.count.store(entries.len(), Ordering::Relaxed);
        Ok(Claim {
            registry: self.clone(),
            key,
            entry,
        })
    }

    /// The running request of an id.
    pub fn find(&self, tenant: &TenantName, id: &RequestId) -> Option<Arc<Live>> {
        self.lock()
            .get(&(tenant.clone(), id.clone()))
            .and_then(|e| e.live.get().cloned())
    }

    /// Everything that runs now.
    pub fn all(&self) -> Vec<Arc<Live>> {
        self.lock()
            .values()
            .filter_map(|e| e.live.get().cloned())
            .collect()
    }

    /// How many ids are claimed.
    pub fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Claim {
    /// Makes the request findable by its id, before anything durable says that it is there: from then on it can be
    /// cancelled, whether or not its exchange exists yet. Shown once; a second time changes nothing.
    pub fn show(&self, record: Record) -> Arc<Live> {
        let live = self.entry.live.get_or_init(|| Arc::new(Live::new(record)));
        live.clone()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut entries = self.registry.lock();
        entries.remove(&self.key);
        self.registry.count.store(entries.len(), Ordering::Relaxed);
    }
}
