//! From a key to its tenant. Keys are known by their SHA-256 alone: the look-up's time says nothing of a key.

use super::holdings::{Holding, Holdings};
use super::{Rate, TenantName};
use crate::budget::Account;
use crate::clock;
use crate::config::{self, KeyHash, ModelSet};
use crate::slots::Slots;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};

/// One tenant: the rules in force, and what it holds.
#[derive(Debug)]
pub struct Tenant {
    pub rules: config::Tenant,
    holding: Arc<Holding>,
}

impl Tenant {
    pub fn name(&self) -> &TenantName {
        &self.rules.name
    }

    pub fn slots(&self) -> &Arc<Slots> {
        &self.holding.slots
    }

    /// Requests per minute.
    pub fn request_rate(&self) -> &Rate {
        &self.holding.requests
    }

    /// Units per minute.
    pub fn unit_rate(&self) -> &Rate {
        &self.holding.units
    }

    pub fn account(&self) -> MutexGuard<'_, Account> {
        self.holding.account()
    }

    pub fn may_use(&self, model: &str) -> bool {
        match &self.rules.models {
            ModelSet::All => true,
            ModelSet::Named(names) => names.iter().any(|n| n == model),
        }
    }
}

/// All tenants of one configuration.
#[derive(Debug)]
pub struct Directory {
    tenants: Vec<Arc<Tenant>>,
    by_key: HashMap<KeyHash, Arc<Tenant>>,
    anonymous: Option<Arc<Tenant>>,
}

impl Directory {
    pub fn new(rules: &[config::Tenant], holdings: &Holdings) -> Directory {
        let now = clock::now();
        let tenant = |rules: &config::Tenant| {
            Arc::new(Tenant {
                holding: holdings.of(rules, now),
                rules: rules.clone(),
            })
        };
        let tenants: Vec<_> = rules.iter().map(tenant).collect();
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

    pub fn all(&self) -> &[Arc<Tenant>] {
        &self.tenants
    }
}
