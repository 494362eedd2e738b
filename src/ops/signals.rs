//! Signals, and the way down: TERM and QUIT drain, INT stops at once, HUP reloads, USR1 reopens log files.

use super::drain::Drain;
use super::log_file::LogFile;
use crate::exchange::{Live, Registry};
use crate::record::State;
use async_trait::async_trait;
use pingora_core::server::{ShutdownSignal, ShutdownSignalWatch};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How long running streams get to write their last event when they are ended by us.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The same for INT, which stops at once.
const LAST_WORDS_AT_ONCE: Duration = Duration::from_millis(300);

/// How often late comers are looked for when everything is to end.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// Waits for the signal that ends the process, and ends what runs in the way the signal asks for.
pub struct Signals {
    pub drain: Arc<Drain>,
    pub drain_timeout: Duration,
    pub registry: Arc<Registry>,
    /// Set to true to close the public listeners.
    pub closed: watch::Sender<bool>,
    pub logs: Vec<LogFile>,
    /// Called once signals are caught: from then on the process can be told to stop.
    pub ready: Mutex<Option<Ready>>,
    pub reload: Arc<dyn Reloading>,
    pub hang_up: HangUp,
}

/// What HUP means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HangUp {
    /// To a daemon: read the config file anew.
    Reload,
    /// To what belongs to a terminal: it is closed.
    Stop,
}

/// What HUP does, and whoever else may ask for it.
#[async_trait]
pub trait Reloading: Send + Sync {
    /// Puts the config file in force as it now stands, and logs how that went. The findings, where nothing has changed.
    async fn reload(&self) -> Result<(), Vec<String>>;
}

pub type Ready = Box<dyn FnOnce() + Send>;

struct Caught {
    term: Signal,
    quit: Signal,
    int: Signal,
    hup: Signal,
    usr1: Signal,
}

/// A reload under way.
type Reload<'a> = Pin<Box<dyn Future<Output = Result<(), Vec<String>>> + Send + 'a>>;

/// The end of the reload that is under way, where there is one.
async fn finished(reload: &mut Option<Reload<'_>>) -> Result<(), Vec<String>> {
    match reload {
        Some(reload) => reload.await,
        None => std::future::pending().await,
    }
}

enum Way {
    Drain,
    AtOnce,
}

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        match Caught::install() {
            Ok(mut caught) => {
                self.tell_ready();
                self.run(&mut caught).await;
            }
            Err(e) => log::error!("signals cannot be caught: {e}; stopping"),
        }
        // everything has ended by now: Pingora need not wait for anything
        ShutdownSignal::FastShutdown
    }
}

impl Caught {
    fn install() -> std::io::Result<Caught> {
        Ok(Caught {
            term: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            usr1: signal(SignalKind::user_defined1())?,
        })
    }
}

impl Signals {
    fn tell_ready(&self) {
        self.drain.note_started();
        let ready = self
            .ready
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(ready) = ready {
            ready();
        }
    }

    async fn run(&self, caught: &mut Caught) {
        let way = self.wait(caught).await;
        self.drain.begin();
        // nobody may be left to hear it: then there is nothing to close
        self.closed.send_replace(true);
        let last_words = match way {
            Way::Drain => self.wait_for_the_last(caught).await,
            Way::AtOnce => Some(LAST_WORDS_AT_ONCE),
        };
        if let Some(time) = last_words {
            self.end_all(time).await;
        }
    }

    /// Waits until nothing runs any more; else the time that what still runs gets for its last event.
    async fn wait_for_the_last(&self, caught: &mut Caught) -> Option<Duration> {
        log::info!(
            "draining: {} requests in flight, at most {:?}",
            self.drain.in_flight(),
            self.drain_timeout
        );
        let mut over = std::pin::pin!(tokio::time::sleep(self.drain_timeout));
        loop {
            tokio::select! {
                () = self.drain.emptied() => return None,
                () = over.as_mut() => {
                    log::warn!("drain_timeout is over: ending what still runs");
                    return Some(LAST_WORDS);
                }
                _ = caught.int.recv() => return Some(LAST_WORDS_AT_ONCE),
                _ = caught.usr1.recv() => self.reopen(),
                _ = caught.hup.recv() => log::warn!("SIGHUP: not reloaded, the process is draining"),
            }
        }
    }

    /// Waits for the signal that ends the process. A reload looks names up, which may take long: nothing waits for it but
    /// the next one.
    async fn wait(&self, caught: &mut Caught) -> Way {
        let mut reload: Option<Reload<'_>> = None;
        loop {
            tokio::select! {
                _ = caught.term.recv() => return Way::Drain,
                _ = caught.quit.recv() => return Way::Drain,
                _ = caught.int.recv() => return Way::AtOnce,
                _ = caught.hup.recv(), if reload.is_none() => match self.hang_up {
                    HangUp::Reload => reload = Some(self.reload.reload()),
                    HangUp::Stop => return Way::AtOnce,
                },
                // what it found is in the log
                _ = finished(&mut reload) => reload = None,
                _ = caught.usr1.recv() => self.reopen(),
            }
        }
    }

    fn reopen(&self) {
        for log in &self.logs {
            if let Err(e) = log.reopen() {
                log::error!("a log file cannot be reopened: {e}; the old one stays in use");
            }
        }
    }

    /// Asks every running request to end and gives them time for their last event; also one that is admitted meanwhile.
    async fn end_all(&self, last_words: Duration) {
        let asking = async {
            loop {
                self.ask_all();
                tokio::time::sleep(ASK_AGAIN).await;
            }
        };
        let ended = async {
            tokio::select! {
                () = self.drain.emptied() => {}
                () = asking => {}
            }
        };
        let ended = tokio::time::timeout(last_words, ended).await;
        if ended.is_err() {
            log::warn!("{} requests did not end in time", self.drain.in_flight());
        }
    }

    /// Those that wait for a slot are asked first: else they would be given the slots of the others, and run for nothing.
    fn ask_all(&self) {
        let is_queued = |live: &Arc<Live>| live.record().state == State::Queued;
        let (waiting, running): (Vec<_>, Vec<_>) =
            self.registry.all().into_iter().partition(is_queued);
        for live in waiting.iter().chain(&running) {
            live.drain();
        }
    }
}
