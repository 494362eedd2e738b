//! When something is due in a stream: a heartbeat, a time-out. One timer per stream: events move a mark, not the timer.

use crate::clock;
use crate::config;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::time::Sleep;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    Heartbeat,
    /// The upstream was silent between its bytes for too long.
    Idle,
    /// The whole answer took too long.
    Total,
    /// The protocol's end was read and the upstream's close did not follow.
    CloseWait,
    /// A write stood still for too long.
    Write,
}

pub struct Pace {
    /// The interval of heartbeats, and whether they are written at present.
    interval: Option<Duration>,
    beating: bool,
    /// The idle time-out, and whether an answer is being read.
    idle: Option<Duration>,
    reading: bool,
    write_timeout: Duration,
    total: Option<Duration>,
    total_at: Option<Instant>,
    close_at: Option<Instant>,
    /// When the upstream last sent a byte.
    heard_at: Instant,
    /// When the client was last sent one.
    sent_at: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Pace {
    /// Starts when the request is admitted. Time-outs of zero are none. With `early` heartbeats are written before the
    /// upstream has answered.
    pub fn new(rules: &config::Pool, early: bool) -> Pace {
        let some = |d: Duration| (!d.is_zero()).then_some(d);
        let now = clock::instant();
        let mut pace = Pace {
            interval: some(rules.stream.heartbeat),
            beating: early,
            idle: some(rules.timeouts.idle),
            reading: false,
            write_timeout: rules.stream.write_timeout,
            total: some(rules.timeouts.total),
            total_at: None,
            close_at: None,
            heard_at: now,
            sent_at: now,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
        };
        pace.reset();
        pace
    }

    /// The request's turn has come: the time for its whole answer begins.
    pub fn request_starts(&mut self) {
        self.total_at = self.total.map(|d| clock::instant() + d);
        self.reset();
    }

    /// The upstream sent something.
    pub fn upstream_spoke(&mut self) {
        self.heard_at = clock::instant();
    }

    /// When the upstream last sent something.
    pub fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// The client was sent something.
    pub fn client_was_sent(&mut self) {
        self.sent_at = clock::instant();
    }

    /// An answer's head has come. Heartbeats belong to event streams alone.
    pub fn answer_begins(&mut self, events: bool) {
        self.heard_at = clock::instant();
        if events && !self.beating {
            // the silence that heartbeats fill begins with the head
            self.sent_at = self.heard_at;
        }
        self.reading = true;
        self.beating = events;
        self.reset();
    }

    /// The answer is given up, and another upstream is tried.
    pub fn answer_failed(&mut self, early: bool) {
        self.reading = false;
        self.beating = early;
        self.reset();
    }

    pub fn write_timeout(&self) -> Duration {
        self.write_timeout
    }

    /// The protocol's end was read: from now on only the upstream's close is waited for.
    pub fn close_within(&mut self, wait: Duration) {
        if self.close_at.is_none() {
            self.close_at = Some(clock::instant() + wait);
            self.beating = false;
            self.reset();
        }
    }

    /// Waits until something is due. May be dropped and called again.
    pub async fn due(&mut self) -> Due {
        loop {
            self.timer.as_mut().await;
            let now = clock::instant();
            if let Some((due, _)) = self
                .marks()
                .filter(|(_, at)| *at <= now)
                .min_by_key(|m| m.1)
            {
                return due;
            }
            self.reset();
        }
    }

    fn marks(&self) -> impl Iterator<Item = (Due, Instant)> {
        let idle = self.idle.filter(|_| self.reading);
        let heartbeat = self.interval.filter(|_| self.beating);
        [
            (Due::CloseWait, self.close_at),
            (Due::Total, self.total_at),
            (Due::Idle, idle.map(|d| self.heard_at + d)),
            (Due::Heartbeat, heartbeat.map(|d| self.sent_at + d)),
        ]
        .into_iter()
        .filter_map(|(due, at)| Some((due, at?)))
    }

    /// Sets the timer to the nearest mark as it now stands; far off where there is none.
    fn reset(&mut self) {
        const FAR: Duration = Duration::from_secs(86_400);
        let next = self.marks().map(|m| m.1).min();
        let next = next.unwrap_or_else(|| clock::instant() + FAR);
        self.timer.as_mut().reset(next.into());
    }
}

/// Runs a future for at most a time; zero is for ever.
pub async fn within<F: Future>(time: Duration, future: F) -> Option<F::Output> {
    if time.is_zero() {
        return Some(future.await);
    }
    tokio::time::timeout(time, future).await.ok()
}
