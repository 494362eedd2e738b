//! The accounts as a run sees them: as they were when it joined, and what it and the others have done since. One that
//! was taken for dead was told nothing for a while, and learns from this what it missed. Pure.

use super::doubt::Doubt;
use crate::budget::Hour;
use crate::ledger::entry::Entry;
use crate::ledger::store::Standing;
use crate::ledger::sums::{Amounts, Posting, signed};
use crate::record::RequestId;
use crate::tenant::TenantName;
use std::collections::{BTreeMap, BTreeSet};

type Key = (TenantName, Hour);

#[derive(Clone, Debug, Default)]
pub(super) struct Mirror {
    /// Hours before this one are one sum, at hour 0.
    pub month: Hour,
    sums: BTreeMap<Key, Amounts>,
    /// Own entries that others took for crashed, and of which this run has not been told: it runs them still.
    excused: BTreeSet<(TenantName, RequestId)>,
    pub doubt: Option<Doubt>,
}

impl Mirror {
    pub fn of(standing: &Standing, month: Hour) -> Mirror {
        let mut mirror = Mirror {
            month,
            ..Mirror::default()
        };
        mirror.note(&standing.accounts);
        mirror
    }

    /// Notes what this run did, or was told.
    pub fn note(&mut self, postings: &[Posting]) {
        for posting in postings {
            let sum = self.sums.entry(self.key(posting)).or_default();
            *sum = sum.plus(posting.amounts);
        }
    }

    pub fn total(&self) -> Amounts {
        self.sums
            .values()
            .fold(Amounts::NONE, |sum, a| sum.plus(*a))
    }

    /// A month has begun: what was of hours before it is of hour 0.
    pub fn turn_to(&mut self, month: Hour) {
        if month <= self.month {
            return;
        }
        self.month = month;
        let hour = |key: &Key| if key.1 < month { Hour(0) } else { key.1 };
        for (key, amounts) in std::mem::take(&mut self.sums) {
            let sum = self.sums.entry((key.0.clone(), hour(&key))).or_default();
            *sum = sum.plus(amounts);
        }
    }

    /// Takes over what the accounts are now, where this run was told all that the others did, or is about to be.
    pub fn see(&mut self, accounts: &[Posting]) {
        self.doubt = None;
        self.sums.clear();
        self.note(accounts);
    }

    /// The commit in doubt came through, or did not.
    pub fn resolve(&mut self, came_through: bool) {
        if let Some(doubt) = self.doubt.take().filter(|_| came_through) {
            self.note(&doubt.postings);
        }
    }

    /// Takes over what the accounts are now. What of that is news is returned, without what `crashed`, the entries of
    /// this run that others took for crashed, have moved: on this side of the wire those still run.
    pub fn catch_up(&mut self, accounts: &[Posting], crashed: &[Entry]) -> Vec<Posting> {
        let mut news = BTreeMap::new();
        for (key, amounts) in &self.sums {
            let change: &mut Amounts = news.entry(key.clone()).or_default();
            *change = change.minus(*amounts);
        }
        self.see(accounts);
        for (key, amounts) in &self.sums {
            let change = news.entry(key.clone()).or_default();
            *change = change.plus(*amounts);
        }
        for entry in crashed {
            let (key, moved) = self.moved_by_crash(entry);
            if !self.excused.contains(&name(entry)) {
                let change = news.entry(key).or_default();
                *change = change.minus(moved);
            }
        }
        self.excused = crashed.iter().map(name).collect();
        news.retain(|_, amounts| *amounts != Amounts::NONE);
        let posting = |((tenant, hour), amounts)| Posting {
            tenant,
            hour,
            amounts,
        };
        news.into_iter().map(posting).collect()
    }

    /// What taking an entry for crashed did to its account.
    fn moved_by_crash(&self, entry: &Entry) -> (Key, Amounts) {
        let open = Amounts {
            reserved: signed(entry.record.reserved_units),
            open: 1,
            ..Amounts::NONE
        };
        let posting = Posting {
            tenant: entry.record.tenant.clone(),
            hour: Hour::of(entry.record.admitted_at),
            amounts: Amounts::of(entry).minus(open),
        };
        (self.key(&posting), posting.amounts)
    }

    fn key(&self, posting: &Posting) -> Key {
        let hour = match posting.hour < self.month {
            true => Hour(0),
            false => posting.hour,
        };
        (posting.tenant.clone(), hour)
    }
}

fn name(entry: &Entry) -> (TenantName, RequestId) {
    let record = &entry.record;
    (record.tenant.clone(), record.request_id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::OnUnknown;
    use crate::ledger::entry::{Fingerprint, Owner};
    use crate::ledger::tests::{ADMITTED, acme, running};
    use crate::ledger::unknown;
    use std::time::Duration;

    fn posting(hour: i64, charged: i64) -> Posting {
        Posting {
            tenant: acme(),
            hour: Hour(hour),
            amounts: Amounts {
                charged,
                ..Amounts::NONE
            },
        }
    }

    fn mirror(accounts: Vec<Posting>) -> Mirror {
        let standing = Standing {
            accounts,
            total: Amounts::NONE,
        };
        Mirror::of(&standing, Hour(100))
    }

    #[test]
    fn what_was_missed_is_the_difference_in_each_hour() {
        let mut mirror = mirror(vec![posting(0, 5), posting(100, 1)]);
        mirror.note(&[posting(101, 10), posting(7, 1)]);
        let now = [
            posting(0, 6),
            posting(100, 4),
            posting(101, 10),
            posting(102, 2),
        ];
        let news = mirror.catch_up(&now, &[]);
        assert_eq!(news, [posting(100, 3), posting(102, 2)]);
        assert_eq!(mirror.total().charged, 22);
        assert_eq!(mirror.catch_up(&now, &[]), []);
    }

    #[test]
    fn what_lies_before_a_new_month_becomes_one_sum_and_no_news() {
        let mut mirror = mirror(vec![posting(0, 5), posting(100, 1)]);
        mirror.note(&[posting(101, 10), posting(200, 3)]);
        mirror.turn_to(Hour(200));
        mirror.turn_to(Hour(150));
        assert_eq!((mirror.month, mirror.sums.len()), (Hour(200), 2));
        assert_eq!(mirror.total().charged, 19);
        mirror.note(&[posting(102, 2)]);
        assert_eq!(mirror.sums.len(), 2, "an hour of the month before");
        let now = [posting(0, 20), posting(200, 3)];
        assert_eq!(mirror.catch_up(&now, &[]), [posting(0, 2)]);
    }

    #[test]
    fn an_account_that_is_gone_is_news_too() {
        let mut mirror = mirror(vec![posting(100, 5)]);
        assert_eq!(mirror.catch_up(&[], &[]), [posting(100, -5)]);
    }

    #[test]
    fn an_own_request_that_others_took_for_crashed_is_no_news_then_or_later() {
        let mut mirror = mirror(vec![]);
        let open = Entry {
            record: running("r"),
            fingerprint: Fingerprint::UNKNOWN,
            shown: false,
            owner: Some(Owner {
                run: "me".into(),
                opening: 1,
            }),
            earlier: crate::budget::Units::ZERO,
            held: crate::budget::Units::ZERO,
        };
        let at = |amounts| Posting {
            hour: Hour::of(ADMITTED),
            amounts,
            ..posting(0, 0)
        };
        mirror.note(&[at(Amounts::of(&open))]);
        let crashed = unknown::crash(
            &open,
            OnUnknown::Hold,
            ADMITTED.plus(Duration::from_secs(1)),
        );
        let accounts = [at(Amounts::of(&crashed))];
        let own = std::slice::from_ref(&crashed);
        assert_eq!(mirror.catch_up(&accounts, own), []);
        assert_eq!(mirror.catch_up(&accounts, own), []);
        let settled = Amounts {
            charged: 40,
            ..Amounts::NONE
        };
        mirror.note(&[at(settled.minus(Amounts::of(&crashed)))]);
        assert_eq!(mirror.catch_up(&[at(settled)], &[]), []);
    }
}
