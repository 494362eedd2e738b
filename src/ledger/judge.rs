//! Which rule a write of the gateway falls under. Pure.

use super::entry::{Entry, Opened, Owner, RunId};
use super::rules::{self, Verdict};
use super::store::Write;
use crate::clock::Timestamp;
use crate::config::OnUnknown;

/// What a run's writes are judged by.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub run: RunId,
    pub policy: OnUnknown,
}

impl Judge {
    /// What a write does to the entry of its id, and what an opening is answered.
    pub fn judge(
        &self,
        old: Option<&Entry>,
        write: &Write,
        now: Timestamp,
    ) -> (Verdict, Option<Opened>) {
        let run = &*self.run;
        match write {
            Write::Open(opening, number) => {
                let (verdict, opened) = rules::open(old, opening, self.owner(*number));
                (verdict, Some(opened))
            }
            Write::Checkpoint(record) => (rules::checkpoint(old, record, run), None),
            Write::Settle(end) => (rules::settle(old, end, run, self.policy), None),
            Write::Abandon(abandon) => {
                let owner = self.owner(abandon.opening);
                (rules::abandon(old, &owner, abandon.why, now), None)
            }
        }
    }

    fn owner(&self, opening: i64) -> Owner {
        Owner {
            run: self.run.clone(),
            opening,
        }
    }
}
