//! Units taken from a tenant's account and rate that find their way back in every case.

use super::Tenant;
use super::rates::{Short, Taken};
use crate::budget::{Exhausted, Reservation, Units};
use crate::clock::{self, Timestamp};
use std::sync::Arc;
use std::time::Instant;

/// What a request may come to cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub input: Units,
    /// Over all choices.
    pub output: Units,
    /// How many answers the output is divided by.
    pub choices: u64,
}

/// Why nothing was taken.
#[derive(Debug, PartialEq, Eq)]
pub enum NotReserved {
    /// Too little in the account.
    Budget(Exhausted),
    /// Too little of the minute's units.
    Rate(Short),
}

/// A reservation with the account and the rate it lies on. Dropped unsettled (a refusal after it was taken), it is
/// void: nothing is charged.
#[derive(Debug)]
pub struct Reserved {
    tenant: Arc<Tenant>,
    reservation: Option<Reservation>,
    taken: Taken,
    units: Units,
    cap: Units,
    at: Timestamp,
}

impl Tenant {
    /// Takes units before they are spent, from the account and from the minute's units, from both or from neither. A
    /// tenant with `clamp` gets as much output as its budget has left, at least a unit for each choice.
    pub fn reserve(
        self: &Arc<Tenant>,
        wanted: &Wanted,
        now: Timestamp,
        at: Instant,
    ) -> Result<Reserved, NotReserved> {
        let choices = wanted.choices.max(1);
        let cap = Units(wanted.output.0 / choices);
        let mut account = self.account();
        let (reservation, cap) = if self.rules.clamp {
            account.reserve_clamped(wanted.input, cap, choices, now)
        } else {
            let all = wanted.input.plus(wanted.output);
            account.reserve(all, now).map(|r| (r, cap))
        }
        .map_err(NotReserved::Budget)?;
        let (units, at_of_account) = (reservation.units(), reservation.booked_at(now));
        match self.unit_rate().try_take(units.0, at) {
            Ok(taken) => Ok(Reserved {
                tenant: self.clone(),
                reservation: Some(reservation),
                taken,
                units,
                cap,
                at: at_of_account,
            }),
            Err(short) => {
                // the account is locked: nobody has seen the reservation
                account.settle(reservation, Units::ZERO);
                Err(NotReserved::Rate(short))
            }
        }
    }
}

impl Reserved {
    pub fn units(&self) -> Units {
        self.units
    }

    /// When the account takes the request for admitted: the ledger is to book it in the same hour.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The output that each choice may have.
    pub fn cap(&self) -> Units {
        self.cap
    }

    /// Gives the reservation back and takes the charge instead.
    pub fn settle(mut self, charge: Units) {
        self.finish(charge);
    }

    fn finish(&mut self, charge: Units) {
        if let Some(reservation) = self.reservation.take() {
            self.tenant.account().settle(reservation, charge);
            self.tenant
                .unit_rate()
                .settle(self.taken, charge.0, clock::instant());
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.finish(Units::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Hour;
    use crate::config;
    use crate::tenant::{Directory, Holdings};
    use std::time::Duration;

    fn tenant(lines: &str) -> Arc<Tenant> {
        let text = format!(
            "[[listen]]\naddr = \"127.0.0.1:1\"\n[[tenant]]\nname = \"t\"\nanonymous = true\n{lines}\n\
             [[pool]]\nname = \"p\"\nmodels = [\"m\"]\nbackends = [{{ addr = \"127.0.0.1:2\" }}]\n"
        );
        let config = config::parse(&text, std::path::Path::new("/x/t.toml")).unwrap();
        let directory = Directory::new(&config.tenants, &Holdings::default());
        directory.all()[0].clone()
    }

    fn wanted(input: u64, output: u64) -> Wanted {
        Wanted {
            input: Units(input),
            output: Units(output),
            choices: 1,
        }
    }

    #[test]
    fn both_are_taken_or_neither_and_the_difference_comes_back() {
        let tenant =
            tenant("budget = { units = 1000, period = \"total\" }\nunits_per_minute = 600");
        let (now, at) = (clock::now(), clock::instant() + Duration::from_secs(1));
        let left = || {
            let rate = tenant.unit_rate().state(at).unwrap().remaining;
            (tenant.account().remaining(now).unwrap().0, rate)
        };
        let first = tenant.reserve(&wanted(100, 400), now, at).unwrap();
        assert_eq!(
            (left(), first.units(), first.cap()),
            ((500, 100), Units(500), Units(400))
        );
        let short = tenant.reserve(&wanted(1, 100), now, at).unwrap_err();
        assert!(
            matches!(short, NotReserved::Rate(s) if s.retry_after == Some(Duration::from_millis(100)))
        );
        let exhausted = tenant.reserve(&wanted(1, 500), now, at).unwrap_err();
        assert!(matches!(exhausted, NotReserved::Budget(e) if e.remaining == Units(500)));
        assert_eq!(left(), (500, 100), "a refusal takes nothing");
        first.settle(Units(120));
        assert_eq!(left(), (880, 480));
        drop(tenant.reserve(&wanted(100, 100), now, at).unwrap());
        assert_eq!(left(), (880, 480), "dropped, it is void");
    }

    #[test]
    fn under_a_clock_set_back_the_ledger_is_told_the_hour_of_the_account() {
        let tenant = tenant("budget = { units = 1000, period = \"hour\" }");
        let (now, at) = (clock::now(), clock::instant());
        let back = Timestamp(now.0 - 2 * 3_600_000_000);
        let reserved = tenant.reserve(&wanted(1, 1), back, at).unwrap();
        assert_eq!(Hour::of(reserved.at()), Hour::of(now));
        let reserved = tenant.reserve(&wanted(1, 1), now, at).unwrap();
        assert_eq!(reserved.at(), now);
    }

    #[test]
    fn a_clamped_request_takes_what_it_gets() {
        let tenant = tenant("budget = { units = 100, period = \"total\" }\nclamp = true");
        let wanted = Wanted {
            choices: 2,
            ..wanted(20, 2000)
        };
        let reserved = tenant
            .reserve(&wanted, clock::now(), clock::instant())
            .unwrap();
        assert_eq!((reserved.units(), reserved.cap()), (Units(100), Units(40)));
    }
}
