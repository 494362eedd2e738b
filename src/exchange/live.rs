//! A running request as others may see it: its record so far, and the means to ask it to stop.

use crate::clock;
use crate::record::Record;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Why a request is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Cancel,
    Drain,
}

const NONE: u8 = 0;
const CANCEL: u8 = 1;
const DRAIN: u8 = 2;

/// The shared view of one running request. Its owner writes it; everyone else reads, or asks for a stop.
#[derive(Debug)]
pub struct Live {
    record: Mutex<Record>,
    stop: AtomicU8,
    stopped: Notify,
}

impl Live {
    pub fn new(record: Record) -> Live {
        Live {
            record: Mutex::new(record),
            stop: AtomicU8::new(NONE),
            stopped: Notify::new(),
        }
    }

    /// The record as it stands.
    pub fn record(&self) -> Record {
        self.lock().clone()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id ran before, and its record goes on from there: attempts append and charges add up.
    pub fn reopen(&self, before: &Record) {
        let mut record = self.lock();
        record.attempts.clone_from(&before.attempts);
        record.charged_units = before.charged_units;
    }

    /// Asks to cancel. Asking and having stopped are two moments: the record says when each was.
    /// Returns the record as it then stands; asking again changes nothing.
    pub fn cancel(&self) -> Record {
        let record = {
            let mut record = self.lock();
            if !record.state.is_terminal() {
                record.cancel_requested_at.get_or_insert_with(clock::now);
            }
            record.clone()
        };
        self.ask(CANCEL);
        record
    }

    /// Asks to stop because the process is going down.
    pub fn drain(&self) {
        self.ask(DRAIN);
    }

    /// The first reason given stands.
    fn ask(&self, reason: u8) {
        let first = self
            .stop
            .compare_exchange(NONE, reason, Ordering::AcqRel, Ordering::Acquire);
        if first.is_ok() {
            self.stopped.notify_one();
        }
    }

    /// The reason to stop, where one was given.
    pub fn stop_asked(&self) -> Option<Stop> {
        match self.stop.load(Ordering::Acquire) {
            CANCEL => Some(Stop::Cancel),
            DRAIN => Some(Stop::Drain),
            _ => None,
        }
    }

    /// Waits until somebody asks to stop. Only the owner waits, so one stored wake-up is enough.
    pub async fn stopped(&self) -> Stop {
        loop {
            if let Some(stop) = self.stop_asked() {
                return stop;
            }
            self.stopped.notified().await;
        }
    }
}
