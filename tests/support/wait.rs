//! Waiting: poll until it is so, or fail saying what was awaited and what was seen last.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// Long enough for a loaded machine, short enough that a failure is told soon.
pub const PATIENCE: Duration = Duration::from_secs(10);

const PAUSE: Duration = Duration::from_millis(2);

/// Polls `look` until it finds a value; what it saw instead is told where it never does.
#[track_caller]
pub fn until<T>(what: impl Display, look: impl FnMut() -> Result<T, String>) -> T {
    within(PATIENCE, what, look)
}

/// As `until`, with its own limit.
#[track_caller]
pub fn within<T>(
    limit: Duration,
    what: impl Display,
    mut look: impl FnMut() -> Result<T, String>,
) -> T {
    let end = Instant::now() + limit;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if Instant::now() >= end => {
                panic!("waited {limit:?} for {what}; seen: {seen}")
            }
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Polls until the condition holds.
#[track_caller]
pub fn until_true(what: impl Display, mut condition: impl FnMut() -> bool) {
    until(what, || {
        if condition() {
            Ok(())
        } else {
            Err("not so".to_owned())
        }
    });
}

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}
