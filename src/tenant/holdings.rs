//! What tenants hold while the process lives: their slots, rates and accounts. It outlives every configuration, so that a
//! reload changes rules and bounds and nothing that was counted.

use super::{Rate, TenantName};
use crate::budget::{Account, Change, Hour};
use crate::clock::{self, Timestamp};
use crate::config;
use crate::slots::Slots;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What one tenant holds.
#[derive(Debug)]
pub struct Holding {
    /// Execution slots over all pools.
    pub slots: Arc<Slots>,
    /// Requests per minute.
    pub requests: Rate,
    /// Units per minute.
    pub units: Rate,
    account: Mutex<Account>,
}

impl Holding {
    pub fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What all tenants hold, by name: those configured now, those that were, and those that the ledger knows.
#[derive(Debug, Default)]
pub struct Holdings {
    all: Mutex<HashMap<TenantName, Arc<Holding>>>,
}

impl Holdings {
    /// What a tenant holds, with the bounds of its rules.
    pub fn of(&self, rules: &config::Tenant, now: Timestamp) -> Arc<Holding> {
        let holding = self.named(&rules.name, now);
        holding.slots.set_max(rules.max_streams);
        let at = clock::instant();
        holding.requests.set_limit(rules.requests_per_minute, at);
        let units = rules.units_per_minute.map(|u| u.0);
        holding.units.set_limit(units, at);
        holding.account().set_limit(rules.budget, now);
        holding
    }

    /// Brings what the ledger knows of an hour to a tenant's account.
    pub fn adjust(&self, name: &TenantName, hour: Hour, change: Change, now: Timestamp) {
        self.named(name, now).account().adjust(hour, change);
    }

    fn named(&self, name: &TenantName, now: Timestamp) -> Arc<Holding> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || {
            let at = clock::instant();
            Arc::new(Holding {
                slots: Slots::new(None),
                requests: Rate::new(None, at),
                units: Rate::new(None, at),
                account: Mutex::new(Account::new(None, now)),
            })
        };
        all.entry(name.clone()).or_insert_with(fresh).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Units;
    use crate::config::{Budget, Period};

    #[test]
    fn an_account_is_the_same_under_new_rules() {
        let text = "[[listen]]\naddr = \"127.0.0.1:1\"\n[[tenant]]\nname = \"t\"\nanonymous = true\n\
            [[pool]]\nname = \"p\"\nmodels = [\"m\"]\nbackends = [{ addr = \"127.0.0.1:2\" }]\n";
        let config = config::parse(text, std::path::Path::new("/x/t.toml")).unwrap();
        let mut rules = config.tenants[0].clone();
        let (holdings, now) = (Holdings::default(), clock::now());
        let budget = |units| {
            Some(Budget {
                units: Units(units),
                period: Period::Total,
            })
        };
        rules.budget = budget(100);
        let before = holdings.of(&rules, now);
        let reservation = before.account().reserve(Units(60), now).unwrap();
        rules.budget = budget(80);
        let after = holdings.of(&rules, now);
        assert_eq!(after.account().remaining(now), Some(Units(20)));
        before.account().settle(reservation, Units(10));
        assert_eq!(after.account().remaining(now), Some(Units(70)));
    }
}
