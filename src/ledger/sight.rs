//! What the handle sees of the thread behind it without asking.

use super::error::{Kind, LedgerError};
use super::pulse::Pulse;
use super::trouble::Down;
use super::unwritten::Unwritten;
use std::time::Duration;

/// How long an answer is waited for. A thread that has waited as long for its database hangs.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// Shared by the handle and its thread.
#[derive(Clone, Debug)]
pub(super) struct Sight {
    pub down: Down,
    pub pulse: Pulse,
    pub unwritten: Unwritten,
}

impl Sight {
    pub fn new() -> Sight {
        Sight {
            down: Down::default(),
            pulse: Pulse::new(),
            unwritten: Unwritten::default(),
        }
    }

    /// Why no answer is to be expected in time.
    pub fn hangs(&self, place: &str) -> Option<LedgerError> {
        let waits = self.pulse.waits();
        let cause = || format!("no answer from its database for {waits:.1?}");
        (waits >= PATIENCE).then(|| LedgerError::new(place, Kind::Late, cause()))
    }
}
