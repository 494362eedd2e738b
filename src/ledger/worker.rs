//! The ledger's thread: gathers what is sent into groups, commits them, and answers. `outage` is what it does
//! while the ledger cannot be written, `upkeep` what it does unasked.

mod outage;
mod upkeep;

pub(super) use upkeep::Clockwork;

use super::backlog::{Backlog, GROUP_MAX};
use super::entry::Opened;
use super::error::LedgerError;
use super::handle::{Observer, counts};
use super::queue::{Command, Find, Job, Reply};
use super::sight::{PATIENCE, Sight};
use super::store::{Applied, Store, Write};
use super::sums::{Amounts, Posting};
use super::trouble::Trouble;
use crate::clock;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The thread's state.
pub(super) struct Worker {
    store: Box<dyn Store>,
    observer: Box<dyn Observer + Send>,
    clockwork: Clockwork,
    backlog: Backlog,
    finds: Vec<Find>,
    trouble: Option<Trouble>,
    sight: Sight,
    total: Amounts,
    /// Why the writes that were set aside failed.
    aside_error: Option<LedgerError>,
    /// Whether the log says of a trouble, and not yet that it is over.
    is_told: bool,
    /// Whether a trouble may have left the total wrong.
    is_unsure: bool,
    told: Option<(u64, u64)>,
    logged_at: Option<Instant>,
    tick_at: Instant,
    forget_at: Instant,
    closing: Option<Instant>,
}

impl Worker {
    pub fn new(
        store: Box<dyn Store>,
        observer: Box<dyn Observer + Send>,
        total: Amounts,
        sight: Sight,
        clockwork: Clockwork,
    ) -> Worker {
        let now = clock::instant();
        Worker {
            store,
            observer,
            clockwork,
            backlog: Backlog::new(),
            finds: Vec::new(),
            trouble: None,
            sight,
            total,
            aside_error: None,
            is_told: false,
            is_unsure: false,
            told: None,
            logged_at: None,
            tick_at: now,
            forget_at: now,
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
        self.farewell(commands);
    }

    fn is_done(&self) -> bool {
        self.closing.is_some_and(|since| {
            let tried = clock::instant().saturating_duration_since(since);
            self.backlog.is_empty() || tried > self.clockwork.farewell
        })
    }

    /// Waits for a command or for something to be due, then takes all that is there.
    fn receive(&mut self, commands: &Receiver<Command>) {
        self.sight.pulse.rests();
        match commands.recv_timeout(self.time_to_wait()) {
            Ok(command) => self.take(command),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                self.close();
                std::thread::park_timeout(self.time_to_wait());
            }
        }
        self.take_all(commands);
    }

    fn take_all(&mut self, commands: &Receiver<Command>) {
        let there = std::iter::from_fn(|| commands.try_recv().ok());
        there.take(GROUP_MAX).for_each(|command| self.take(command));
    }

    fn time_to_wait(&self) -> Duration {
        let due = match &self.trouble {
            Some(trouble) => trouble.retry_at(),
            None => self.tick_at.min(self.forget_at),
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
            Command::Settle(end) => (Write::Settle(end), None),
            Command::Abandon(abandon) => return self.backlog.abandon(abandon),
            Command::Find(find) => return self.finds.push(find),
            Command::Close => return self.close(),
            Command::Configure(config) => {
                self.clockwork.retention = config.retention;
                self.sight.pulse.asks();
                return self.store.configure(&config);
            }
        };
        let job = Job::new(write, reply);
        if self.trouble.is_none() || !job.is_optional() {
            self.backlog.push(job);
        }
    }

    fn close(&mut self) {
        self.closing.get_or_insert_with(clock::instant);
    }

    fn write(&mut self) {
        self.backlog.drop_deserted();
        if self.trouble.is_some() {
            self.retry();
        }
        while self.trouble.is_none()
            && let Some(group) = self.backlog.next_group()
        {
            if let Err((group, error)) = self.commit(group) {
                self.fail(group, &error);
            }
        }
    }

    /// Commits a group and answers it, or gives it back.
    fn commit(&mut self, group: Vec<Job>) -> Result<(), (Vec<Job>, LedgerError)> {
        let (mut writes, mut others) = (Vec::new(), Vec::new());
        for job in group {
            writes.push(job.write);
            others.push((job.reply, job.failures));
        }
        self.sight.pulse.asks();
        let from = clock::instant();
        let committed = match self.store.commit(&writes, clock::now()) {
            Ok(committed) => committed,
            Err(error) => {
                let jobs = writes.into_iter().zip(others);
                let jobs = jobs.map(|(write, (reply, failures))| Job {
                    write,
                    reply,
                    failures,
                });
                return Err((jobs.collect(), error));
            }
        };
        let took = clock::instant().saturating_duration_since(from);
        self.observer.committed(took, writes.len());
        if took >= PATIENCE {
            log::warn!("ledger {}: a commit took {took:.1?}", self.store.place());
        }
        for ((applied, write), (reply, _)) in committed.applied.into_iter().zip(&writes).zip(others)
        {
            answer(applied, write, reply);
            if let Write::Settle(end) = write {
                self.sight.unwritten.remove(end);
            }
        }
        self.backlog.went_well();
        self.note(&committed.postings);
        Ok(())
    }

    fn answer_finds(&mut self) {
        for find in std::mem::take(&mut self.finds) {
            self.sight.pulse.asks();
            let found = self.store.find(&find.tenant, &find.id);
            if self.trouble.is_none() {
                self.sight.down.reads(found.is_ok());
            }
            if let Err(error) = &found {
                self.observer.failed(error);
                self.complain(&format!("{error}; an id cannot be looked up"));
            }
            drop(find.reply.send(found));
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

    /// What came after the close is written too.
    fn farewell(mut self, commands: &Receiver<Command>) {
        while let Ok(command) = commands.try_recv() {
            self.take(command);
        }
        self.write();
        self.sight.pulse.asks();
        self.store.close();
    }
}

/// Tells who waits for a write what became of it, or the log.
fn answer(applied: Applied, write: &Write, reply: Option<Reply<Opened>>) {
    let answer = match applied {
        Applied::Done => return,
        Applied::Opened(opened) => Ok(opened),
        Applied::Broken(why) => {
            return log::error!("ledger: not written, since {why}: {}", write.text());
        }
        Applied::Failed(error) => {
            log::error!("{error}; not written: {}", write.text());
            Err(error)
        }
    };
    if let Some(reply) = reply {
        // Who asked may have left: then its abandoning is on the way.
        drop(reply.send(answer));
    }
}
