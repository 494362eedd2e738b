//! What must hold after every step, whatever has happened.

use super::book::Page;
use super::world::World;
use crate::clock;

impl World {
    pub fn check(&self) {
        self.check_slots();
        self.check_line();
        self.check_accounts();
        assert_eq!(self.registry.len(), self.lives.len(), "claimed ids");
        assert_eq!(self.book.open.len(), self.lives.len(), "open entries");
    }

    /// As many slots are taken as requests run, and never more than there are.
    fn check_slots(&self) {
        let running = |tenant: Option<usize>| {
            self.lives
                .values()
                .filter(|l| !l.is_waiting() && tenant.is_none_or(|t| l.tenant == t))
                .count()
        };
        assert_eq!(self.slots.used(), running(None), "slots of the pool");
        assert!(self.slots.max().is_none_or(|max| self.slots.used() <= max));
        for (n, tenant) in self.tenants.all().iter().enumerate() {
            let used = tenant.slots().used();
            assert_eq!(used, running(Some(n)), "slots of {}", tenant.name());
            assert!(tenant.slots().max().is_none_or(|max| used <= max));
        }
    }

    /// The line is as long as requests wait, within its bounds, and nobody waits for a slot that is free.
    fn check_line(&self) {
        let waiting = self.lives.values().filter(|l| l.is_waiting()).count();
        assert_eq!(self.queue.len(), waiting, "the line");
        assert!(waiting <= self.rules.max_len, "the line is too long");
        for (n, tenant) in self.tenants.all().iter().enumerate() {
            let mine = self.queue.len_of(tenant.name());
            let lives = self.lives.values().filter(|l| l.is_waiting());
            assert_eq!(mine, lives.filter(|l| l.tenant == n).count());
            assert!(tenant.rules.max_queued.is_none_or(|max| mine <= max));
            assert!(
                mine == 0 || self.slots.is_full() || tenant.slots().is_full(),
                "{} waits for a slot that is free",
                tenant.name()
            );
        }
    }

    /// Every account says what the book says, and no rate has given more than time filled in.
    fn check_accounts(&self) {
        let now = clock::now();
        for (page, tenant) in self.book.pages.iter().zip(self.tenants.all()) {
            let mut account = tenant.account();
            let period = account.limit().map(|b| b.period);
            let right = page.sums(now, period.unwrap_or(crate::config::Period::Total));
            assert_eq!(account.sums(now), right, "the account of {}", tenant.name());
            if let Some(limit) = tenant.rules.units_per_minute {
                let since = clock::instant().duration_since(self.began);
                let most = Page::drawable(limit.0, since);
                assert!(
                    u128::from(page.drawn) <= most,
                    "{} of {most} drawn",
                    page.drawn
                );
            }
        }
    }
}
