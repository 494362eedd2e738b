//! What befalls the process: it is killed and starts anew, bills come in for what that left unknown, its config changes.

use super::super::ground;
use super::{POOL_SLOTS, What, World};
use crate::budget::{Change, Units};
use crate::clock;
use crate::exchange::PoolQueue;
use crate::slots::Slots;
use crate::tenant::{Directory, Holdings};
use std::sync::Arc;
use std::time::Duration;

impl World {
    /// Everything in memory is gone; the accounts start from the book.
    pub(super) fn crash(&mut self) {
        let after = Duration::from_secs(self.random.between(60, 600));
        self.note(after, What::Crash);
        let gone = std::mem::take(&mut self.lives);
        let old = (self.registry.clone(), self.slots.clone());
        self.book.crashed();
        let holdings = Holdings::default();
        self.tenants = Directory::new(&self.config.tenants, &holdings);
        self.slots = Slots::new(Some(POOL_SLOTS));
        self.services = ground::services(&self.config, self.services.ledger.clone());
        let rules = Some(self.rules.clone());
        self.queue = PoolQueue::new("p", self.slots.clone(), rules, &self.services.metrics);
        self.registry = Arc::default();
        (self.ended, self.began) = (0, clock::instant());
        for (page, tenant) in self.book.pages.iter().zip(self.tenants.all()) {
            for (hour, sums) in page.hours() {
                let change = |units: Units| i64::try_from(units.0).unwrap();
                let change = Change {
                    charged: change(sums.charged),
                    reserved: change(sums.reserved),
                    held: change(sums.held),
                };
                holdings.adjust(tenant.name(), *hour, change, clock::now());
            }
        }
        // what the dead process would still do is its own affair, and leaves nothing behind there either
        drop(gone);
        assert_eq!((old.0.len(), old.1.used()), (0, 0));
        let after = Duration::from_secs(self.random.below(100));
        self.note(after, What::Bill);
    }

    /// One of the unknown costs less than was held, or more.
    pub(super) fn bill(&mut self) {
        let Some(open) = self.book.unknown.pop() else {
            return;
        };
        let charge = Units(self.random.below(open.reserved.0 * 2));
        self.book.reconciled(open, charge);
        let change = Change {
            charged: i64::try_from(charge.0).unwrap(),
            reserved: 0,
            held: -i64::try_from(open.reserved.0).unwrap(),
        };
        let tenant = &self.tenants.all()[open.tenant];
        tenant.account().adjust(open.hour, change);
        let after = Duration::from_millis(self.random.below(5000));
        self.note(after, What::Bill);
    }

    /// The pool gets more slots, or again as many as it had.
    pub(super) fn reload(&mut self) {
        let max = POOL_SLOTS + usize::try_from(self.random.below(3)).unwrap();
        if self.slots.used() <= max {
            self.slots.set_max(Some(max));
        }
        let after = Duration::from_secs(self.random.between(5, 50));
        self.note(after, What::Reload);
    }
}
