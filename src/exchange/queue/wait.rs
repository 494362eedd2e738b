//! The mean wait of a queue, over the turns of the last seconds. Pure: the time is given.

use std::time::{Duration, Instant};

/// What is looked back on, in slices of a second.
const SLICES: usize = 5;

#[derive(Debug)]
pub(super) struct MeanWait {
    /// Waits and their number, of the current slice first.
    slices: [(Duration, u32); SLICES],
    began: Instant,
}

impl MeanWait {
    pub fn new(now: Instant) -> MeanWait {
        MeanWait {
            slices: Default::default(),
            began: now,
        }
    }

    /// A request got its turn after this wait.
    pub fn note(&mut self, wait: Duration, now: Instant) {
        self.go_on(now);
        if let Some((sum, n)) = self.slices.first_mut() {
            *sum = sum.saturating_add(wait);
            *n = n.saturating_add(1);
        }
    }

    pub fn mean(&mut self, now: Instant) -> Duration {
        self.go_on(now);
        let (sum, n) = self.slices.iter().fold((Duration::ZERO, 0_u32), |a, s| {
            (a.0.saturating_add(s.0), a.1.saturating_add(s.1))
        });
        sum.checked_div(n).unwrap_or_default()
    }

    fn go_on(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.began);
        let passed = elapsed.as_secs();
        let over = usize::try_from(passed).map_or(SLICES, |n| n.min(SLICES));
        self.slices.rotate_right(over);
        for slice in self.slices.iter_mut().take(over) {
            *slice = (Duration::ZERO, 0);
        }
        self.began += Duration::from_secs(passed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    #[test]
    fn the_mean_is_of_the_last_seconds() {
        let start = clock::instant();
        let at = |s| start + Duration::from_secs(s);
        let mut waits = MeanWait::new(start);
        assert_eq!(waits.mean(at(0)), Duration::ZERO);
        waits.note(Duration::from_secs(4), at(0));
        waits.note(Duration::from_secs(2), at(3));
        assert_eq!(waits.mean(at(3)), Duration::from_secs(3));
        assert_eq!(waits.mean(at(5)), Duration::from_secs(2));
        assert_eq!(waits.mean(at(500)), Duration::ZERO);
        waits.note(Duration::from_secs(1), at(400));
        assert_eq!(
            waits.mean(at(501)),
            Duration::from_secs(1),
            "a clock set back"
        );
    }
}
