//! The ledger's thread as seen from outside: started, and waited for at its end, but not for ever.

use super::queue::Command;
use super::worker::Worker;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How much longer than it should take the thread's end is waited for.
const LENIENCE: Duration = Duration::from_secs(5);

/// A thread that runs.
#[derive(Debug)]
pub(super) struct Running {
    handle: JoinHandle<()>,
    /// Ends with the thread.
    over: Receiver<()>,
    /// How long its farewell may take.
    farewell: Duration,
}

impl Running {
    pub fn start(
        worker: Worker,
        commands: Receiver<Command>,
        farewell: Duration,
    ) -> io::Result<Running> {
        let (ends, over) = mpsc::channel::<()>();
        let body = move || {
            let _ends = ends;
            worker.run(&commands);
        };
        let handle = std::thread::Builder::new()
            .name("ledger".into())
            .spawn(body)?;
        Ok(Running {
            handle,
            over,
            farewell,
        })
    }

    /// Waits for the end of one that was told to close. A database that hangs is left alone.
    pub fn wait(self, place: &str) {
        let limit = self.farewell + LENIENCE;
        if self.over.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            log::error!("ledger {place}: its database does not answer; left as it is");
        } else if self.handle.join().is_err() {
            log::error!("ledger {place}: its thread panicked");
        }
    }
}
