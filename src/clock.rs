//! The one place that reads a clock: wall time for records, monotonic time for durations.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// A moment of wall time in microseconds since the Unix epoch; written as RFC 3339 in UTC with microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// The wall clock, now.
#[allow(clippy::disallowed_methods, reason = "the clock's own home")]
pub fn now() -> Timestamp {
    #[cfg(test)]
    if let Some((now, _)) = still::read() {
        return now;
    }
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Timestamp(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// The monotonic clock, now.
#[allow(clippy::disallowed_methods, reason = "the clock's own home")]
pub fn instant() -> Instant {
    #[cfg(test)]
    if let Some((_, instant)) = still::read() {
        return instant;
    }
    Instant::now()
}

impl Timestamp {
    /// The time from `earlier` to `self`; zero where the wall clock was set back in between.
    pub fn since(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// `self` moved on by a duration.
    pub fn plus(self, by: Duration) -> Timestamp {
        Timestamp(
            self.0
                .saturating_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX)),
        )
    }

    /// Whole seconds since the Unix epoch.
    pub fn unix_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The calendar view, for period borders. The epoch where the time lies outside the calendar.
    pub fn date_time(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let t = self.date_time().to_offset(UtcOffset::UTC);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
            t.year(),
            u8::from(t.month()),
            t.day(),
            t.hour(),
            t.minute(),
            t.second(),
            t.microsecond()
        )
    }
}

impl std::str::FromStr for Timestamp {
    type Err = time::error::Parse;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let nanos = OffsetDateTime::parse(text, &Rfc3339)?.unix_timestamp_nanos();
        Ok(Timestamp(i64::try_from(nanos / 1000).unwrap_or(i64::MAX)))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A clock that stands still, for the tests of one thread, until it is moved.
#[cfg(test)]
pub mod still {
    use super::{Duration, Instant, Timestamp};
    use std::cell::Cell;

    thread_local! {
        static AT: Cell<Option<(Timestamp, Instant)>> = const { Cell::new(None) };
    }

    pub(super) fn read() -> Option<(Timestamp, Instant)> {
        AT.get()
    }

    /// Holds the clock. Dropped, it goes on by itself again.
    #[derive(Debug)]
    pub struct Still(());

    impl Still {
        pub fn at(now: Timestamp) -> Still {
            AT.set(Some((now, super::instant())));
            Still(())
        }

        pub fn advance(&self, by: Duration) {
            AT.set(AT.get().map(|(now, instant)| (now.plus(by), instant + by)));
        }
    }

    impl Drop for Still {
        fn drop(&mut self) {
            AT.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_written_with_microseconds_and_reads_back() {
        let t = Timestamp(1_700_000_000_000_007);
        assert_eq!(t.to_string(), "2023-11-14T22:13:20.000007Z");
        assert_eq!(t.to_string().parse::<Timestamp>().ok(), Some(t));
    }

    #[test]
    fn a_clock_set_back_gives_no_negative_duration() {
        assert_eq!(Timestamp(5).since(Timestamp(9)), Duration::ZERO);
    }
}
