//! What one request holds of a queue: a place in line, then its slots. Dropping it gives either back.

use super::fair::Ticket;
use super::pool::PoolQueue;
use crate::slots::Slot;
use crate::tenant::Tenant;
use prometheus::IntGauge;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The slots a request runs by.
#[derive(Debug)]
pub struct Granted {
    pub tenant: Slot,
    pub pool: Slot,
}

/// The wait was over before the turn came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut {
    /// How long another try would wait, by what is known now.
    pub retry_after: Duration,
}

/// A request's place: slots it was given, or a place in line for them.
#[derive(Debug)]
pub struct Place {
    granted: Option<Granted>,
    waiting: Option<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    queue: Arc<PoolQueue>,
    tenant: Arc<Tenant>,
    ticket: Ticket,
    granted: oneshot::Receiver<Granted>,
    deadline: Instant,
    length: IntGauge,
}

impl Place {
    pub(super) fn granted_at_once(granted: Granted) -> Place {
        Place {
            granted: Some(granted),
            waiting: None,
        }
    }

    pub(super) fn waiting(
        queue: &Arc<PoolQueue>,
        tenant: &Arc<Tenant>,
        ticket: Ticket,
        (granted, deadline): (oneshot::Receiver<Granted>, Instant),
    ) -> Place {
        let length = queue.length_gauge(tenant.name());
        length.inc();
        Place {
            granted: None,
            waiting: Some(Waiting {
                queue: queue.clone(),
                tenant: tenant.clone(),
                ticket,
                granted,
                deadline,
                length,
            }),
        }
    }

    /// Whether the slots were there at once.
    pub fn is_granted(&self) -> bool {
        self.granted.is_some()
    }

    /// The slots, where they are there already.
    pub fn take_now(&mut self) -> Option<Granted> {
        if let Some(waiting) = &mut self.waiting {
            self.granted = waiting.granted.try_recv().ok();
        }
        let granted = self.granted.take()?;
        self.waiting = None;
        Some(granted)
    }

    /// Waits for the slots, at most for the queue's `max_wait` since the place was taken. They are given once. Dropping
    /// the future loses nothing: the place stays, and another call waits on.
    pub async fn granted(&mut self) -> Result<Granted, TimedOut> {
        if let Some(granted) = self.granted.take() {
            return Ok(granted);
        }
        let Some(waiting) = &mut self.waiting else {
            return Err(TimedOut {
                retry_after: Duration::ZERO,
            });
        };
        let result = waiting.granted().await;
        self.waiting = None;
        result
    }
}

impl Waiting {
    async fn granted(&mut self) -> Result<Granted, TimedOut> {
        tokio::select! {
            biased;
            Ok(granted) = &mut self.granted => Ok(granted),
            () = tokio::time::sleep_until(self.deadline.into()) => Err(TimedOut {
                retry_after: self.queue.expected(&self.tenant),
            }),
        }
    }
}

impl Drop for Waiting {
    /// Leaves the line. Slots that were given in the meantime lie in the channel and go back with it.
    fn drop(&mut self) {
        self.length.dec();
        self.queue.leave(&self.ticket);
    }
}
