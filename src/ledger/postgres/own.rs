//! The entries that this run has open, as it wrote them last: what is found in the database as long as nobody else
//! touches them. Pure.

use crate::ledger::entry::Entry;
use crate::record::RequestId;
use crate::tenant::TenantName;
use std::collections::HashMap;

/// Never more than are open. Empty after whatever may have gone wrong: what is not known here is read.
#[derive(Debug, Default)]
pub(super) struct Own(HashMap<(TenantName, RequestId), Entry>);

impl Own {
    pub fn get(&self, (tenant, id): (&TenantName, &RequestId)) -> Option<&Entry> {
        self.0.get(&(tenant.clone(), id.clone()))
    }

    /// Notes how this run has written an entry.
    pub fn note(&mut self, entry: &Entry, run: &str) {
        let record = &entry.record;
        match entry.is_open() && entry.is_owned_by(run) {
            true => {
                let key = (record.tenant.clone(), record.request_id.clone());
                self.0.insert(key, entry.clone());
            }
            false => self.forget((&record.tenant, &record.request_id)),
        }
    }

    pub fn forget(&mut self, (tenant, id): (&TenantName, &RequestId)) {
        self.0.remove(&(tenant.clone(), id.clone()));
    }

    pub fn forget_all(&mut self) {
        self.0.clear();
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
