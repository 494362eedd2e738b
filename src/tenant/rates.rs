//! A tenant's rates: how many requests, and how many units, within a minute. Pure: the time is given.
//!
//! A token bucket of one minute's amount that fills evenly. Own, and not a crate's: a request takes the units it
//! reserves and gives back what it did not use, which no bucket on crates.io allows, and what is told to clients
//! (remaining, reset, retry after) is exact to the nanosecond because the level is an integer: units × nanoseconds.
//!
//! Over any time, what was taken and not given back is at most one full bucket and what that time filled in.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const MINUTE_NS: u128 = 60_000_000_000;

/// One rate of one tenant.
#[derive(Debug)]
pub struct Rate {
    bucket: Mutex<Bucket>,
}

#[derive(Debug)]
struct Bucket {
    /// A minute's amount; `None`: unlimited.
    limit: Option<u64>,
    /// What is taken and has not been filled in again, times a minute's nanoseconds: each nanosecond fills in `limit`.
    taken: u128,
    /// When that was so.
    at: Instant,
}

/// What was taken of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    amount: u64,
}

/// There is less in the bucket than was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Short {
    pub limit: u64,
    pub remaining: u64,
    /// When there will be enough, in whole milliseconds, rounded up; `None`: never, it is more than a minute's amount.
    pub retry_after: Option<Duration>,
}

/// What clients are told of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateState {
    pub limit: u64,
    pub remaining: u64,
    /// When the bucket is full again, in whole milliseconds, rounded up.
    pub reset: Duration,
}

impl Rate {
    /// A full bucket. `None`: unlimited.
    pub fn new(limit: Option<u64>, now: Instant) -> Rate {
        Rate {
            bucket: Mutex::new(Bucket {
                limit,
                taken: 0,
                at: now,
            }),
        }
    }

    /// Changes the limit. What was taken stays taken.
    pub fn set_limit(&self, limit: Option<u64>, now: Instant) {
        let mut bucket = self.at(now);
        bucket.limit = limit;
        bucket.taken = bucket.taken.min(bucket.full());
    }

    /// Takes an amount, whole or not at all.
    pub fn try_take(&self, amount: u64, now: Instant) -> Result<Taken, Short> {
        let mut bucket = self.at(now);
        let Some(limit) = bucket.limit else {
            // nothing to give back, should there be a limit by then
            return Ok(Taken::default());
        };
        let wanted = u128::from(amount) * MINUTE_NS;
        let after = bucket.taken + wanted;
        if after <= bucket.full() {
            bucket.taken = after;
            return Ok(Taken { amount });
        }
        Err(Short {
            limit,
            remaining: bucket.remaining(limit),
            retry_after: (wanted <= bucket.full()).then(|| filled_in(after - bucket.full(), limit)),
        })
    }

    /// Gives back what was taken and takes what was used instead. What was used over that empties the bucket at most:
    /// the budget has it all, and the next request does not wait longer than for a full minute's amount.
    pub fn settle(&self, taken: Taken, used: u64, now: Instant) {
        let mut bucket = self.at(now);
        let amount = |n: u64| u128::from(n) * MINUTE_NS;
        bucket.taken = if used <= taken.amount {
            bucket.taken.saturating_sub(amount(taken.amount - used))
        } else {
            (bucket.taken + amount(used - taken.amount)).min(bucket.full())
        };
    }

    /// What is to be told; nothing where there is no limit.
    pub fn state(&self, now: Instant) -> Option<RateState> {
        let bucket = self.at(now);
        let limit = bucket.limit?;
        Some(RateState {
            limit,
            remaining: bucket.remaining(limit),
            reset: filled_in(bucket.taken, limit),
        })
    }

    /// The bucket as it stands at a moment. A moment before the last one fills in nothing.
    fn at(&self, now: Instant) -> MutexGuard<'_, Bucket> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        if now > bucket.at {
            let ns = now.duration_since(bucket.at).as_nanos();
            let filled = ns.saturating_mul(u128::from(bucket.limit.unwrap_or(0)));
            bucket.taken = bucket.taken.saturating_sub(filled);
            bucket.at = now;
        }
        bucket
    }
}

impl Bucket {
    fn full(&self) -> u128 {
        u128::from(self.limit.unwrap_or(0)) * MINUTE_NS
    }

    fn remaining(&self, limit: u64) -> u64 {
        let whole = self.taken.div_ceil(MINUTE_NS);
        limit.saturating_sub(u64::try_from(whole).unwrap_or(u64::MAX))
    }
}

/// How long it takes until so much is filled in, rounded up to milliseconds.
fn filled_in(amount: u128, limit: u64) -> Duration {
    let ns = amount.div_ceil(u128::from(limit.max(1)));
    Duration::from_millis(u64::try_from(ns.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn short(limit: u64, remaining: u64, ms: Option<u64>) -> Short {
        Short {
            limit,
            remaining,
            retry_after: ms.map(MS),
        }
    }

    #[test]
    fn a_minutes_amount_is_there_at_once_and_comes_back_evenly() {
        let start = clock::instant();
        let rate = Rate::new(Some(10), start);
        for _ in 0..10 {
            assert!(rate.try_take(1, start).is_ok());
        }
        assert_eq!(rate.try_take(1, start), Err(short(10, 0, Some(6000))));
        assert_eq!(
            rate.try_take(1, start + MS(5999)),
            Err(short(10, 0, Some(1)))
        );
        assert!(rate.try_take(1, start + MS(6000)).is_ok());
        assert_eq!(
            rate.try_take(3, start + MS(6000)),
            Err(short(10, 0, Some(18_000)))
        );
    }

    #[test]
    fn who_waits_as_long_as_told_is_served_whatever_the_limit() {
        for limit in [1, 7, 60, 997, 200_000, u64::MAX] {
            let mut now = clock::instant();
            let rate = Rate::new(Some(limit), now);
            assert!(rate.try_take(limit, now).is_ok());
            for amount in [1, limit / 3 + 1, limit] {
                let short = rate.try_take(amount, now).unwrap_err();
                now += short.retry_after.unwrap();
                assert!(rate.try_take(amount, now).is_ok(), "{amount} of {limit}");
            }
        }
    }

    #[test]
    fn more_than_a_minutes_amount_never_comes() {
        let now = clock::instant();
        let rate = Rate::new(Some(100), now);
        assert_eq!(rate.try_take(101, now), Err(short(100, 100, None)));
        assert!(rate.try_take(100, now).is_ok());
    }

    #[test]
    fn what_is_not_used_comes_back_and_never_more_than_there_was() {
        let now = clock::instant();
        let rate = Rate::new(Some(600), now);
        let remaining = |now| rate.state(now).unwrap().remaining;
        let taken = rate.try_take(500, now).unwrap();
        assert_eq!(remaining(now), 100);
        rate.settle(taken, 20, now);
        assert_eq!(remaining(now), 580);
        let taken = rate.try_take(500, now).unwrap();
        rate.settle(taken, 0, now + MS(59_000));
        assert_eq!(remaining(now + MS(59_000)), 600);
    }

    #[test]
    fn what_is_used_over_the_reservation_empties_the_bucket_at_most() {
        let now = clock::instant();
        let rate = Rate::new(Some(600), now);
        let taken = rate.try_take(100, now).unwrap();
        rate.settle(taken, 150, now);
        assert_eq!(rate.state(now).unwrap().remaining, 450);
        rate.settle(Taken::default(), 1_000_000_000, now);
        assert_eq!(rate.try_take(1, now), Err(short(600, 0, Some(100))));
    }

    #[test]
    fn the_state_tells_when_the_bucket_is_full_again() {
        let now = clock::instant();
        let rate = Rate::new(Some(10), now);
        let full = RateState {
            limit: 10,
            remaining: 10,
            reset: Duration::ZERO,
        };
        assert_eq!(rate.state(now), Some(full));
        assert!(rate.try_take(1, now).is_ok());
        let state = rate.state(now + MS(1)).unwrap();
        assert_eq!((state.remaining, state.reset), (9, MS(5999)));
        assert_eq!(Rate::new(None, now).state(now), None);
    }

    #[test]
    fn a_limit_that_changes_keeps_what_was_taken() {
        let now = clock::instant();
        let rate = Rate::new(Some(2), now);
        assert!(rate.try_take(2, now).is_ok());
        rate.set_limit(Some(6000), now);
        assert_eq!(rate.state(now).unwrap().remaining, 5998);
        rate.set_limit(Some(1), now);
        assert_eq!(rate.try_take(1, now), Err(short(1, 0, Some(60_000))));
        rate.set_limit(None, now);
        assert!(rate.try_take(u64::MAX, now).is_ok());
    }

    #[test]
    fn what_was_taken_before_there_was_a_limit_gives_nothing_back() {
        let now = clock::instant();
        let rate = Rate::new(None, now);
        let before = rate.try_take(500, now).unwrap();
        rate.set_limit(Some(600), now);
        assert!(rate.try_take(600, now).is_ok());
        rate.settle(before, 20, now);
        assert_eq!(rate.try_take(1, now), Err(short(600, 0, Some(100))));
    }

    #[test]
    fn a_clock_set_back_fills_in_nothing() {
        let now = clock::instant() + MS(60_000);
        let rate = Rate::new(Some(1), now);
        assert!(rate.try_take(1, now).is_ok());
        assert!(rate.try_take(1, now - MS(60_000)).is_err());
        assert!(rate.try_take(1, now + MS(59_999)).is_err());
        assert!(rate.try_take(1, now + MS(60_000)).is_ok());
    }

    #[test]
    fn many_at_once_get_exactly_what_there_is() {
        let now = clock::instant();
        let rate = Rate::new(Some(1000), now);
        let taken: usize = std::thread::scope(|threads| {
            let crowd: Vec<_> = (0..8)
                .map(|_| {
                    threads.spawn(|| (0..500).filter(|_| rate.try_take(1, now).is_ok()).count())
                })
                .collect();
            crowd.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(taken, 1000);
    }
}
