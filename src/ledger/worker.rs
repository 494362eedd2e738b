//! The ledger's thread: gathers what is sent into groups, commits them, answers, and keeps what cannot be written.

use super::error::LedgerError;
use super::handle::{Observer, counts};
use super::queue::{Command, Find, Job};
use super::store::{Applied, Committed, Store, Write};
use super::sums::{Amounts, Posting};
use super::trouble::Trouble;
use crate::clock;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Writes of one transaction, at most.
const GROUP_MAX: usize = 512;

/// How often the thread does what nobody asks for, and how patient it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clockwork {
    /// How long entries are kept after their end.
    pub retention: Duration,
    /// Between two looks at what other processes did.
    pub tick: Duration,
    /// Between two rounds of forgetting while more is left to forget.
    pub forget_pause: Duration,
    /// How long closing tries to write what waits.
    pub farewell: Duration,
}

impl Clockwork {
    pub fn of(retention: Duration) -> Clockwork {
        Clockwork {
            retention,
            tick: Duration::from_secs(1),
            forget_pause: Duration::from_millis(10),
            farewell: Duration::from_secs(10),
        }
    }
}

/// The thread's state.
pub(super) struct Worker {
    store: Box<dyn Store>,
    observer: Box<dyn Observer + Send>,
    clockwork: Clockwork,
    /// Writes in the order they came.
    waiting: VecDeque<Job>,
    /// Settlements that fail alone while others succeed: tried again at each tick.
    aside: Vec<Job>,
    finds: Vec<Find>,
    trouble: Option<Trouble>,
    down: Arc<AtomicBool>,
    /// Writes of the next transaction; small after a failure, to tell the bad from the good.
    group_max: usize,
    total: Amounts,
    told: Option<(u64, u64)>,
    tick_at: Instant,
    closing: Option<Instant>,
}

impl Worker {
    pub fn new(
        store: Box<dyn Store>,
        observer: Box<dyn Observer + Send>,
        total: Amounts,
        down: Arc<AtomicBool>,
        clockwork: Clockwork,
    ) -> Worker {
        Worker {
            store,
            observer,
            clockwork,
            waiting: VecDeque::new(),
            aside: Vec::new(),
            finds: Vec::new(),
            trouble: None,
            down,
            group_max: GROUP_MAX,
            total,
            told: None,
            tick_at: clock::instant(),
            closing: None,
        }
    }

    pub fn run(mut self, commands: &Receiver<Command>) {
        self.tell();
        while !self.is_done() {
            self.receive(commands);
            self.write();
            self.answer_finds();
            self.tick();
        }
        self.farewell();
    }

    fn is_done(&self) -> bool {
        let Some(since) = self.closing else {
            return false;
        };
        let nothing_waits = self.waiting.is_empty() && self.aside.is_empty();
        nothing_waits || clock::instant().saturating_duration_since(since) > self.clockwork.farewell
    }

    /// Waits for a command or for something to be due, then takes all that is there.
    fn receive(&mut self, commands: &Receiver<Command>) {
        match commands.recv_timeout(self.time_to_wait()) {
            Ok(command) => self.take(command),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.close(),
        }
        for _ in 0..GROUP_MAX {
            match commands.try_recv() {
                Ok(command) => self.take(command),
                Err(_) => return,
            }
        }
    }

    fn time_to_wait(&self) -> Duration {
        let due = match &self.trouble {
            Some(trouble) => trouble.retry_at(),
            None if self.waiting.is_empty() => self.tick_at,
            None => return Duration::ZERO,
        };
        let wait = due.saturating_duration_since(clock::instant());
        match self.closing {
            Some(_) => wait.min(Duration::from_millis(20)),
            None => wait,
        }
    }

    fn take(&mut self, command: Command) {
        let (write, reply) = match command {
            Command::Open(opening, number, reply) => (Write::Open(opening, number), Some(reply)),
            Command::Checkpoint(record) => (Write::Checkpoint(record), None),
            Command::Settle(record, shown) => (Write::Settle(record, shown), None),
            Command::Abandon(abandon) => return self.abandon(Write::Abandon(abandon)),
            Command::Find(find) => return self.finds.push(find),
            Command::Close => return self.close(),
        };
        let job = Job::new(write, reply);
        if self.trouble.is_none() || !job.is_optional() {
            self.waiting.push_back(job);
        }
    }

    /// An opening that still waits and was never part of a failed commit is simply taken out.
    fn abandon(&mut self, write: Write) {
        let Write::Abandon(abandon) = &write else {
            return;
        };
        let number = abandon.opening;
        let place = self.waiting.iter().position(|j| j.is_opening(number));
        if let Some(untried) = place.filter(|i| self.waiting.get(*i).is_some_and(|j| j.failures == 0)) {
            self.waiting.remove(untried);
            return;
        }
        self.waiting.push_back(Job::new(write, None));
    }

    fn close(&mut self) {
        self.closing.get_or_insert_with(clock::instant);
    }

    fn write(&mut self) {
        self.waiting.retain(|job| !job.is_deserted());
        if self.trouble.is_some() {
            return self.retry();
        }
        while self.trouble.is_none() && !self.waiting.is_empty() {
            let len = self.waiting.len().min(self.group_max);
            let group: Vec<Job> = self.waiting.drain(..len).collect();
            match self.commit(group) {
                Ok(()) => self.group_max = self.group_max.saturating_mul(2).min(GROUP_MAX),
                Err((group, error)) => self.fail(group, &error),
            }
        }
    }

    /// Commits a group and answers it, or gives it back.
    fn commit(&mut self, group: Vec<Job>) -> Result<(), (Vec<Job>, LedgerError)> {
        let (writes, replies): (Vec<_>, Vec<_>) =
            group.into_iter().map(|j| (j.write, (j.reply, j.failures))).unzip();
        let from = clock::instant();
        match self.store.commit(&writes, clock::now()) {
            Ok(committed) => {
                let took = clock::instant().saturating_duration_since(from);
                self.observer.committed(took, writes.len());
                let replies = replies.into_iter().map(|(reply, _)| reply);
                self.answer(committed, writes.iter().zip(replies));
                Ok(())
            }
            Err(error) => {
                let jobs = writes.into_iter().zip(replies);
                let jobs = jobs.map(|(write, (reply, failures))| Job {
                    write,
                    reply,
                    failures: failures.saturating_add(1),
                });
                Err((jobs.collect(), error))
            }
        }
    }

    fn answer<'a>(
        &mut self,
        committed: Committed,
        jobs: impl Iterator<Item = (&'a Write, Option<super::queue::Reply<super::Opened>>)>,
    ) {
        for (applied, (write, reply)) in committed.applied.into_iter().zip(jobs) {
            let answer = match applied {
                Applied::Opened(opened) => Ok(opened),
                Applied::Done => continue,
                Applied::Broken(why) => {
                    log::error!("ledger: not written, since {why}: {write:?}");
                    continue;
                }
                Applied::Failed(error) => {
                    log::error!("{error}: not written: {write:?}");
                    Err(error)
                }
            };
            if let Some(reply) = reply {
                // Who asked may have left by now: then its abandoning is on the way.
                drop(reply.send(answer));
            }
        }
        self.note(&committed.postings);
    }

    /// Takes a failed group back and waits a while. An opening that failed twice is answered with the error.
    fn fail(&mut self, group: Vec<Job>, error: &LedgerError) {
        for mut job in group.into_iter().rev() {
            if job.is_optional() {
                continue;
            }
            match job.reply.take_if(|_| job.failures > 1) {
                Some(reply) => drop(reply.send(Err(error.clone()))),
                None => self.waiting.push_front(job),
            }
        }
        self.group_max = 1;
        self.suffer(error);
    }

    fn suffer(&mut self, error: &LedgerError) {
        self.observer.failed(error);
        let trouble = self.trouble.get_or_insert_with(Trouble::new);
        trouble.again(error, self.waiting.len());
        if trouble.is_lasting() {
            self.down.store(true, Ordering::Relaxed);
        }
    }

    /// In trouble: once the ledger takes a write again, first writes what must not be lost, then goes on as usual.
    fn retry(&mut self) {
        let Some(trouble) = self.trouble.as_ref().filter(|t| t.is_due()) else {
            return;
        };
        if trouble.asks_for_reopening()
            && let Err(error) = self.store.reopen()
        {
            return self.suffer(&error);
        }
        if let Err(error) = self.store.probe(clock::now()) {
            return self.suffer(&error);
        }
        while let Some(group) = self.next_settlements() {
            match self.commit(group) {
                Ok(()) => self.group_max = self.group_max.saturating_mul(2).min(GROUP_MAX),
                Err((group, error)) if group.len() > 1 || self.store.probe(clock::now()).is_err() => {
                    return self.fail(group, &error);
                }
                Err((group, _)) => self.aside.extend(group),
            }
        }
        self.recover();
    }

    /// Takes the next group of writes that nobody waits for out of the queue.
    fn next_settlements(&mut self) -> Option<Vec<Job>> {
        let mut group = Vec::new();
        let mut rest = VecDeque::with_capacity(self.waiting.len());
        for job in self.waiting.drain(..) {
            match !job.is_open() && group.len() < self.group_max {
                true => group.push(job),
                false => rest.push_back(job),
            }
        }
        self.waiting = rest;
        (!group.is_empty()).then_some(group)
    }

    fn recover(&mut self) {
        if let Some(trouble) = self.trouble.take() {
            trouble.over();
            self.observer.recovered_writes();
        }
        self.down.store(false, Ordering::Relaxed);
    }

    fn answer_finds(&mut self) {
        for find in std::mem::take(&mut self.finds) {
            let found = self.store.find(&find.tenant, &find.id);
            let pending = self.waiting.iter().chain(&self.aside);
            let newest = pending.filter_map(|j| j.settles(&find.tenant, &find.id)).last();
            let answer = match newest {
                Some((record, shown)) => Ok(Some(super::Known {
                    record: record.clone(),
                    fingerprint: found.ok().flatten().map_or(super::Fingerprint::UNKNOWN, |k| k.fingerprint),
                    shown,
                })),
                None => found,
            };
            drop(find.reply.send(answer));
        }
    }

    /// Once a tick: what other processes did, what is old enough to forget, what was set aside.
    fn tick(&mut self) {
        let now = clock::instant();
        if now < self.tick_at || self.trouble.is_some() {
            return;
        }
        self.tick_at = now + self.clockwork.tick;
        match self.store.follow(clock::now()) {
            Ok(postings) => {
                postings.iter().for_each(|p| self.observer.adjusted(p));
                self.note(&postings);
            }
            Err(error) => return self.suffer(&error),
        }
        self.forget(now);
        for job in std::mem::take(&mut self.aside) {
            if let Err((group, _)) = self.commit(vec![job]) {
                self.aside.extend(group);
            }
        }
    }

    fn forget(&mut self, now: Instant) {
        let retention = i64::try_from(self.clockwork.retention.as_micros()).unwrap_or(i64::MAX);
        let before = clock::Timestamp(clock::now().0.saturating_sub(retention));
        match self.store.forget(before) {
            Ok(true) => self.tick_at = now + self.clockwork.forget_pause,
            Ok(false) => {}
            Err(error) => log::warn!("old entries stay for now: {error}"),
        }
    }

    fn note(&mut self, postings: &[Posting]) {
        for posting in postings {
            self.total = self.total.plus(posting.amounts);
        }
        self.tell();
    }

    /// Tells the observer the counts, where they have changed.
    fn tell(&mut self) {
        let now = counts(&self.total);
        if self.told != Some(now) {
            self.told = Some(now);
            self.observer.state(now.0, now.1);
        }
    }

    /// What could not be written stands in the log, so that an operator can still book it; its entries are open and
    /// will be found crashed.
    fn farewell(mut self) {
        for job in self.waiting.iter().chain(&self.aside) {
            if let Write::Settle(record, _) = &job.write {
                log::error!("ledger: not settled before the end: {}", text(record));
            }
        }
        self.store.close();
    }
}

fn text(record: &crate::exchange::Record) -> String {
    serde_json::to_string(record).unwrap_or_else(|e| format!("{record:?} ({e})"))
}
