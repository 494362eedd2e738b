//! The writes that wait for their commit: in which groups they go, and what becomes of them when a commit fails.

use super::error::LedgerError;
use super::queue::{Abandon, Job};
use super::store::Write;
use std::collections::VecDeque;

/// Writes of one transaction, at most.
pub(super) const GROUP_MAX: usize = 512;
/// After so many failed commits an opening is answered with the error.
const OPENING_FAILURES_MAX: u32 = 2;

#[derive(Debug)]
pub(super) struct Backlog {
    /// In the order they came.
    waiting: VecDeque<Job>,
    /// Those that failed alone while others succeeded.
    aside: Vec<Job>,
    /// Writes of the next group; one after a failure that one of them may have caused.
    group_max: usize,
}

impl Backlog {
    pub fn new() -> Backlog {
        Backlog {
            waiting: VecDeque::new(),
            aside: Vec::new(),
            group_max: GROUP_MAX,
        }
    }

    pub fn push(&mut self, job: Job) {
        self.waiting.push_back(job);
    }

    /// An opening that still waits and was never part of a failed commit is simply taken out.
    pub fn abandon(&mut self, abandon: Abandon) {
        let untried = |job: &Job| job.is_opening(abandon.opening) && job.failures == 0;
        match self.waiting.iter().position(untried) {
            Some(place) => drop(self.waiting.remove(place)),
            None => self.push(Job::new(Write::Abandon(abandon), None)),
        }
    }

    /// Takes out the openings that nobody waits for any more; their abandoning follows them.
    pub fn drop_deserted(&mut self) {
        self.waiting.retain(|job| !job.is_deserted());
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.aside.is_empty()
    }

    pub fn len(&self) -> usize {
        self.waiting.len() + self.aside.len()
    }

    /// The next writes, in their order.
    pub fn next_group(&mut self) -> Option<Vec<Job>> {
        let len = self.waiting.len().min(self.group_max);
        let group: Vec<Job> = self.waiting.drain(..len).collect();
        (!group.is_empty()).then_some(group)
    }

    /// The next writes that nobody waits for, and that must not be lost.
    pub fn next_settlements(&mut self) -> Option<Vec<Job>> {
        let (mut group, mut openings) = (Vec::new(), Vec::new());
        while group.len() < self.group_max
            && let Some(job) = self.waiting.pop_front()
        {
            match job.is_open() {
                true => openings.push(job),
                false => group.push(job),
            }
        }
        let passed_over = openings.into_iter().rev();
        passed_over.for_each(|job| self.waiting.push_front(job));
        (!group.is_empty()).then_some(group)
    }

    /// A group was committed: the next may be larger.
    pub fn went_well(&mut self) {
        self.group_max = self.group_max.saturating_mul(2).min(GROUP_MAX);
    }

    /// A group was not committed: it waits on, in its place. What may be left out is; an opening that failed before
    /// is answered with the error.
    pub fn take_back(&mut self, group: Vec<Job>, error: &LedgerError) {
        if error.may_be_of_one_entry() {
            self.group_max = 1;
        }
        for mut job in group.into_iter().rev() {
            job.failures += 1;
            if job.is_optional() {
                continue;
            }
            match job.reply.take_if(|_| job.failures >= OPENING_FAILURES_MAX) {
                // Who asked may have left: then nobody need be told.
                Some(reply) => drop(reply.send(Err(error.clone()))),
                None => self.waiting.push_front(job),
            }
        }
    }

    /// Writes that fail though others do not wait apart, so that they hold up nothing.
    pub fn set_aside(&mut self, group: Vec<Job>) {
        self.aside.extend(group);
    }

    /// How many were.
    pub fn aside(&self) -> usize {
        self.aside.len()
    }

    pub fn take_aside(&mut self) -> Vec<Job> {
        std::mem::take(&mut self.aside)
    }
}
