//! What is being answered, and going down without cutting it: requests in flight are counted from their head to their
//! last byte, so that the process can leave when the last has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub struct Drain {
    /// Signals are caught and everything is served.
    started: AtomicBool,
    draining: AtomicBool,
    in_flight: AtomicUsize,
    emptied: Notify,
}

/// One request being answered. Held until its last byte is written.
#[derive(Debug)]
pub struct InFlight {
    of: Arc<Drain>,
}

impl Drain {
    pub fn begin(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub fn note_started(&self) {
        self.started.store(true, Ordering::Release);
    }

    pub fn has_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub fn enter(self: &Arc<Drain>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::AcqRel);
        InFlight { of: self.clone() }
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Waits until nothing is in flight.
    pub async fn emptied(&self) {
        loop {
            let emptied = self.emptied.notified();
            tokio::pin!(emptied);
            // registered before the look, so that a last one leaving in between is not missed
            emptied.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.of.in_flight.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.of.emptied.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_drain_waits_for_the_last_answer() {
        let drain = Arc::new(Drain::default());
        drain.emptied().await;
        let one = drain.enter();
        let waiting = drain.emptied();
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            () = &mut waiting => panic!("a request is in flight"),
            () = std::future::ready(()) => {}
        }
        drop(one);
        waiting.await;
    }
}
