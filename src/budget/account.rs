//! A tenant's account: reserve before the upstream is called, settle once at the end.
//!
//! All sums are kept by the hour a request was admitted in. What a request reserves, costs or leaves held belongs to
//! that hour for good, so a period that rolls over while requests run loses nothing and counts nothing twice, and a
//! reload may change the period without asking the ledger again.

use super::{Hour, Units};
use crate::clock::Timestamp;
use crate::config::{Budget, Period};
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);
/// Over two months of hours; what is older only counts for a total.
const HOURS_KEPT: usize = 1500;

/// What lies on an account, over some hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// Settled.
    pub charged: Units,
    /// Taken by running requests.
    pub reserved: Units,
    /// Kept back for requests whose cost nobody knows yet.
    pub held: Units,
}

/// A change of the sums that did not come by a request of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub charged: i64,
    pub reserved: i64,
    pub held: i64,
}

/// A running request's claim on an account. It must be settled: the exchange that owns it does so in every way it can end.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a reservation that is not settled stays on the account for good"]
pub struct Reservation {
    hour: Hour,
    units: Units,
}

impl Reservation {
    pub fn units(&self) -> Units {
        self.units
    }

    /// The moment; where the clock was set back, one of the hour that it is booked in, another one for each.
    pub fn booked_at(&self, now: Timestamp) -> Timestamp {
        let set_back_by = self.hour.0.saturating_sub(Hour::of(now).0);
        now.plus(HOUR * u32::try_from(set_back_by).unwrap_or(0))
    }
}

/// The account has less than was asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Exhausted {
    pub remaining: Units,
    /// When the next period begins; never for a total.
    pub until: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub struct Account {
    limit: Option<Budget>,
    hours: BTreeMap<Hour, Sums>,
    /// What lies before `kept_from`, added up.
    older: Sums,
    kept_from: Option<Hour>,
    /// The first hour of the current period and the sums since then, kept beside `hours` so that admission adds nothing up.
    start: Hour,
    current: Sums,
}

impl Account {
    /// An account with what the ledger knows of earlier runs.
    pub fn new(limit: Option<Budget>, now: Timestamp) -> Account {
        let mut account = Account::default();
        account.set_limit(limit, now);
        account
    }

    /// Sets or changes the budget; everything on the account stays.
    pub fn set_limit(&mut self, limit: Option<Budget>, now: Timestamp) {
        self.limit = limit;
        self.start = Hour::of(now).period_start(self.period());
        self.add_up();
    }

    fn period(&self) -> Period {
        self.limit.map_or(Period::Total, |b| b.period)
    }

    /// Takes units out before they are spent.
    pub fn reserve(&mut self, units: Units, now: Timestamp) -> Result<Reservation, Exhausted> {
        self.roll(now);
        // a clock set back books in the current period, not in one that is over
        let hour = Hour::of(now).max(self.start);
        if let Some(remaining) = self.remaining_now().filter(|r| *r < units) {
            return Err(Exhausted {
                remaining,
                until: hour.period_end(self.period()),
            });
        }
        self.apply(hour, |s| s.reserved = s.reserved.plus(units));
        Ok(Reservation { hour, units })
    }

    /// Takes the input and as much of the output as fits: `cap` units for each of `choices`, or fewer, at least one.
    /// Returns what each may have.
    pub fn reserve_clamped(
        &mut self,
        input: Units,
        cap: Units,
        choices: u64,
        now: Timestamp,
    ) -> Result<(Reservation, Units), Exhausted> {
        self.roll(now);
        let choices = choices.max(1);
        let cap = match self.remaining_now() {
            // what has no output, or cannot have any, is reserved as it is
            Some(left) if cap > Units::ZERO => {
                Units((left.minus(input).0 / choices).clamp(1, cap.0))
            }
            _ => cap,
        };
        let output = Units(cap.0.saturating_mul(choices));
        Ok((self.reserve(input.plus(output), now)?, cap))
    }

    /// Gives a reservation back and takes what was spent instead.
    pub fn settle(&mut self, reservation: Reservation, charge: Units) {
        self.apply(reservation.hour, |s| {
            s.reserved = s.reserved.minus(reservation.units);
            s.charged = s.charged.plus(charge);
        });
    }

    /// Brings in what the ledger holds of an hour, or what changed in it elsewhere.
    pub fn adjust(&mut self, hour: Hour, change: Change) {
        self.apply(hour, |s| {
            s.charged = moved(s.charged, change.charged);
            s.reserved = moved(s.reserved, change.reserved);
            s.held = moved(s.held, change.held);
        });
    }

    /// What may still be reserved; nothing where there is no budget.
    pub fn remaining(&mut self, now: Timestamp) -> Option<Units> {
        self.roll(now);
        self.remaining_now()
    }

    /// The sums of the current period.
    pub fn sums(&mut self, now: Timestamp) -> Sums {
        self.roll(now);
        self.current
    }

    /// What requests that run have reserved, and what is held for those whose cost nobody knows, in whatever period they
    /// were admitted.
    pub fn taken(&self) -> (Units, Units) {
        let hours = self.hours.values().map(|s| (s.reserved, s.held));
        let older = (self.older.reserved, self.older.held);
        hours.fold(older, |(reserved, held), hour| {
            (reserved.plus(hour.0), held.plus(hour.1))
        })
    }

    pub fn limit(&self) -> Option<Budget> {
        self.limit
    }

    fn remaining_now(&self) -> Option<Units> {
        let taken = self
            .current
            .charged
            .plus(self.current.reserved)
            .plus(self.current.held);
        self.limit.map(|b| b.units.minus(taken))
    }

    /// Goes on to the period of `now`. A clock set back does not reopen a period that is over.
    fn roll(&mut self, now: Timestamp) {
        let start = Hour::of(now).period_start(self.period());
        if start > self.start {
            self.start = start;
            self.add_up();
        }
    }

    fn add_up(&mut self) {
        let since = self.start;
        let from = if self.period() == Period::Total {
            self.older
        } else {
            Sums::default()
        };
        self.current = self.hours.range(since..).fold(from, |a, (_, s)| Sums {
            charged: a.charged.plus(s.charged),
            reserved: a.reserved.plus(s.reserved),
            held: a.held.plus(s.held),
        });
    }

    fn apply(&mut self, hour: Hour, change: impl Fn(&mut Sums)) {
        if self.kept_from.is_some_and(|from| hour < from) {
            change(&mut self.older);
        } else {
            change(self.hours.entry(hour).or_default());
        }
        if hour >= self.start {
            change(&mut self.current);
        }
        while self.hours.len() > HOURS_KEPT {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((hour, s)) = self.hours.pop_first() {
            self.kept_from = Some(Hour(hour.0 + 1));
            self.older.charged = self.older.charged.plus(s.charged);
            self.older.reserved = self.older.reserved.plus(s.reserved);
            self.older.held = self.older.held.plus(s.held);
        }
    }
}

fn moved(units: Units, by: i64) -> Units {
    let amount = Units(by.unsigned_abs());
    if by < 0 {
        units.minus(amount)
    } else {
        units.plus(amount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Timestamp {
        "2024-05-05T10:30:00Z".parse().unwrap()
    }

    fn budget(units: u64, period: Period) -> Option<Budget> {
        Some(Budget {
            units: Units(units),
            period,
        })
    }

    #[test]
    fn what_is_reserved_is_not_given_twice_and_what_is_not_spent_comes_back() {
        let mut a = Account::new(budget(100, Period::Day), start());
        let r = a.reserve(Units(60), start()).unwrap();
        assert_eq!(
            a.reserve(Units(41), start()).unwrap_err().remaining,
            Units(40)
        );
        a.settle(r, Units(10));
        assert_eq!(a.remaining(start()), Some(Units(90)));
    }

    #[test]
    fn an_overrun_is_charged_in_full_and_the_account_stays_at_zero() {
        let mut a = Account::new(budget(100, Period::Total), start());
        let r = a.reserve(Units(100), start()).unwrap();
        a.settle(r, Units(250));
        assert_eq!(a.remaining(start()), Some(Units(0)));
        assert_eq!(
            a.reserve(Units(1), start()).unwrap_err(),
            Exhausted {
                remaining: Units(0),
                until: None
            }
        );
    }

    #[test]
    fn a_period_that_rolls_over_with_a_reservation_open_starts_full_and_charges_the_old_one() {
        let mut a = Account::new(budget(100, Period::Hour), start());
        let r = a.reserve(Units(80), start()).unwrap();
        let later = start().plus(HOUR);
        assert_eq!(a.remaining(later), Some(Units(100)));
        assert_eq!((a.sums(later).reserved, a.taken().0), (Units(0), Units(80)));
        a.settle(r, Units(70));
        assert_eq!(a.taken().0, Units(0));
        assert_eq!(a.remaining(later), Some(Units(100)));
        a.set_limit(budget(100, Period::Day), later);
        assert_eq!(a.remaining(later), Some(Units(30)));
    }

    #[test]
    fn a_clamped_request_gets_what_is_left_and_at_least_a_unit_for_each_choice() {
        let mut a = Account::new(budget(100, Period::Total), start());
        let mut clamped = |input, cap, choices| {
            a.reserve_clamped(Units(input), Units(cap), choices, start())
                .map(|(r, cap)| {
                    let reserved = r.units().0;
                    a.settle(r, Units::ZERO);
                    (reserved, cap.0)
                })
                .map_err(|e| e.remaining.0)
        };
        assert_eq!(clamped(20, 50, 1), Ok((70, 50)));
        assert_eq!(clamped(20, 1000, 1), Ok((100, 80)));
        assert_eq!(clamped(20, 1000, 3), Ok((98, 26)));
        assert_eq!(clamped(99, 1000, 1), Ok((100, 1)));
        assert_eq!(clamped(100, 1000, 1), Err(100));
        assert_eq!(clamped(98, 1000, 3), Err(100));
        assert_eq!(clamped(100, 0, 1), Ok((100, 0)));
        assert_eq!(clamped(101, 0, 1), Err(100));
        assert_eq!(clamped(1, 5, 0), Ok((6, 5)));
        a.set_limit(None, start());
        let (r, cap) = a
            .reserve_clamped(Units(7), Units(1000), 2, start())
            .unwrap();
        assert_eq!((r.units(), cap), (Units(2007), Units(1000)));
        a.settle(r, Units::ZERO);
    }

    #[test]
    fn a_clock_set_back_gives_no_free_period() {
        let mut a = Account::new(budget(100, Period::Hour), start());
        let r = a.reserve(Units(100), start()).unwrap();
        a.settle(r, Units(100));
        assert!(a.reserve(Units(1), Timestamp(start().0 - 1)).is_err());
    }

    #[test]
    fn what_is_reserved_under_a_clock_set_back_counts_too() {
        let mut a = Account::new(budget(100, Period::Hour), start());
        let back = Timestamp(start().0 - 3_600_000_000);
        let first = a.reserve(Units(60), back).unwrap();
        let booked = first.booked_at(back);
        assert_eq!(Hour::of(booked), Hour::of(start()));
        assert_ne!(first.booked_at(Timestamp(back.0 + 1)), booked);
        assert!(a.reserve(Units(60), back).is_err());
        a.settle(first, Units(60));
        assert_eq!(a.remaining(start()), Some(Units(40)));
    }

    #[test]
    fn held_units_are_out_of_reach_until_they_are_reconciled() {
        let mut a = Account::new(budget(500, Period::Total), start());
        let change = |charged, held| Change {
            charged,
            held,
            reserved: 0,
        };
        a.adjust(Hour::of(start()), change(0, 403));
        assert!(a.reserve(Units(98), start()).is_err());
        a.adjust(Hour::of(start()), change(20, -403));
        assert_eq!(a.remaining(start()), Some(Units(480)));
    }

    #[test]
    fn hours_that_are_forgotten_still_count_for_a_total() {
        let mut a = Account::new(budget(1_000_000, Period::Total), start());
        for n in 0..HOURS_KEPT as u64 + 50 {
            let t = start().plus(HOUR * u32::try_from(n).unwrap());
            let r = a.reserve(Units(1), t).unwrap();
            a.settle(r, Units(1));
        }
        let end = start().plus(HOUR * 5000);
        assert_eq!(a.hours.len(), HOURS_KEPT);
        assert_eq!(
            a.remaining(end),
            Some(Units(1_000_000 - HOURS_KEPT as u64 - 50))
        );
    }

    #[test]
    fn without_a_budget_everything_is_counted_and_nothing_refused() {
        let mut a = Account::new(None, start());
        let r = a.reserve(Units(1 << 40), start()).unwrap();
        assert_eq!(a.sums(start()).reserved, Units(1 << 40));
        a.settle(r, Units(5));
        assert_eq!(a.sums(start()).charged, Units(5));
        assert_eq!(a.remaining(start()), None);
    }
}
