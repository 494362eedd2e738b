//! From a key to its tenant. Keys are known by their SHA-256 alone: the look-up's time says nothing of a key.

use super::TenantName;
use crate::budget::{Account, Change, Hour};
use crate::clock::{self, Timestamp};
use crate::config::{self, KeyHash, ModelSet};
use crate::slots::Slots;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One tenant: its rules, and what it holds.
#[derive(Debug)]
pub struct Tenant {
    pub rules: config::Tenant,
    /// Execution slots over all pools.
    pub slots: Arc<Slots>,
    account: Mutex<Account>,
}

impl Tenant {
    fn new(rules: config::Tenant, now: Timestamp) -> Tenant {
        Tenant {
            slots: Slots::new(rules.max_streams),
            account: Mutex::new(Account::new(rules.budget, now)),
            rules,
        }
    }

    pub fn name(&self) -> &TenantName {
        &self.rules.name
    }

    pub fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn may_use(&self, model: &str) -> bool {
        match &self.rules.models {
            ModelSet::All => true,
            ModelSet::Named(names) => names.iter().any(|n| n == model),
        }
    }
}

/// All tenants.
#[derive(Debug)]
pub struct Directory {
    tenants: Vec<Arc<Tenant>>,
    by_key: HashMap<KeyHash, Arc<Tenant>>,
    anonymous: Option<Arc<Tenant>>,
}

impl Directory {
    pub fn new(rules: &[config::Tenant]) -> Directory {
        let now = clock::now();
        let tenants: Vec<_> = rules
            .iter()
            .map(|r| Arc::new(Tenant::new(r.clone(), now)))
            .collect();
        let by_key = tenants
            .iter()
            .flat_map(|t| t.rules.keys.iter().map(|k| (*k, t.clone())))
            .collect();
        let anonymous = tenants.iter().find(|t| t.rules.anonymous).cloned();
        Directory {
            tenants,
            by_key,
            anonymous,
        }
    }

    /// The tenant of a key; of requests without one where `key` is `None`.
    pub fn find(&self, key: Option<&[u8]>) -> Option<&Arc<Tenant>> {
        match key {
            Some(key) => self.by_key.get(&KeyHash(Sha256::digest(key).into())),
            None => self.anonymous.as_ref(),
        }
    }

    pub fn by_name(&self, name: &TenantName) -> Option<&Arc<Tenant>> {
        self.tenants.iter().find(|t| t.name() == name)
    }

    pub fn all(&self) -> &[Arc<Tenant>] {
        &self.tenants
    }

    /// Brings what the ledger knows of an hour to a tenant's account. A tenant that is no longer configured has none.
    pub fn adjust(&self, name: &TenantName, hour: Hour, change: Change) {
        if let Some(tenant) = self.by_name(name) {
            tenant.account().adjust(hour, change);
        }
    }
}
