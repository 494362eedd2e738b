//! The calendar of budgets: hours, and the periods made of them, in UTC.

use crate::clock::Timestamp;
use crate::config::Period;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// An hour since the Unix epoch. Charges are summed by the hour their request was admitted in, so that every period
/// of a budget is a range of hours.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Hour(pub i64);

const MICROS: i64 = 3_600_000_000;

impl Hour {
    pub fn of(time: Timestamp) -> Hour {
        Hour(time.0.div_euclid(MICROS))
    }

    /// The moment the hour begins.
    pub fn begins(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(MICROS))
    }

    /// The first hour of the period that this hour lies in.
    pub fn period_start(self, period: Period) -> Hour {
        match period {
            Period::Hour => self,
            Period::Day => Hour(self.0.div_euclid(24) * 24),
            Period::Month => start_of_month(self.begins().date_time()),
            Period::Total => Hour(i64::MIN),
        }
    }

    /// When the period that this hour lies in is over; never for a total.
    pub fn period_end(self, period: Period) -> Option<Timestamp> {
        match period {
            Period::Hour => Some(Hour(self.0 + 1).begins()),
            Period::Day => Some(Hour(self.period_start(period).0 + 24).begins()),
            // no month has more than 31 days, so 32 days on is always in the next one
            Period::Month => {
                let start = self.period_start(period);
                Some(Hour(start.0 + 32 * 24).period_start(period).begins())
            }
            Period::Total => None,
        }
    }
}

fn start_of_month(t: OffsetDateTime) -> Hour {
    time::Date::from_calendar_date(t.year(), t.month(), 1)
        .map(|d| Hour(d.midnight().assume_utc().unix_timestamp().div_euclid(3600)))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Hour {
        Hour::of(text.parse().unwrap())
    }

    #[test]
    fn periods_begin_and_end_at_their_utc_borders() {
        let h = at("2024-02-29T13:59:59.999999Z");
        let start = |p| h.period_start(p).begins().to_string();
        let end = |p| h.period_end(p).map(|t| t.to_string());
        assert_eq!(start(Period::Hour), "2024-02-29T13:00:00.000000Z");
        assert_eq!(start(Period::Day), "2024-02-29T00:00:00.000000Z");
        assert_eq!(start(Period::Month), "2024-02-01T00:00:00.000000Z");
        assert_eq!(end(Period::Hour).unwrap(), "2024-02-29T14:00:00.000000Z");
        assert_eq!(end(Period::Day).unwrap(), "2024-03-01T00:00:00.000000Z");
        assert_eq!(end(Period::Month).unwrap(), "2024-03-01T00:00:00.000000Z");
        assert_eq!(end(Period::Total), None);
    }

    #[test]
    fn december_ends_with_the_year() {
        let h = at("2023-12-31T23:00:00Z");
        assert_eq!(
            h.period_end(Period::Month).unwrap().to_string(),
            "2024-01-01T00:00:00.000000Z"
        );
    }
}
