//! How a request ended: the state it ends in, who ended it, and why. Not an error: what to tell the client follows from it.

use crate::record::{EndedBy, State};

/// The end of a request after admission. Made only by the constructors below, one per way to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub state: State,
    pub by: EndedBy,
    /// What went wrong, in words for the record and the log; no addresses, no keys.
    pub why: Option<String>,
}

impl Ending {
    fn new(state: State, by: EndedBy, why: Option<String>) -> Ending {
        Ending { state, by, why }
    }

    /// The protocol's own end was sent to the client.
    pub fn completed() -> Ending {
        Ending::new(State::Completed, EndedBy::Upstream, None)
    }

    /// The client left.
    pub fn client_closed() -> Ending {
        Ending::new(State::Cancelled, EndedBy::ClientClosed, None)
    }

    /// Somebody cancelled by id.
    pub fn cancelled() -> Ending {
        Ending::new(State::Cancelled, EndedBy::CancelApi, None)
    }

    /// The client read nothing for as long as a write may stand still.
    pub fn slow_reader() -> Ending {
        let why = "the client read nothing for the whole write time-out";
        Ending::new(State::Cancelled, EndedBy::SlowReader, Some(why.to_owned()))
    }

    /// The process is going down and could not wait any longer.
    pub fn drained() -> Ending {
        let why = "the gateway is shutting down";
        Ending::new(State::Failed, EndedBy::Drain, Some(why.to_owned()))
    }

    /// A time-out of the upstream, by the name of its key.
    pub fn timed_out(which: &str) -> Ending {
        let why = format!("the upstream kept silent for the whole {which} time-out");
        Ending::new(State::Failed, EndedBy::Timeout, Some(why))
    }

    /// Its turn did not come in time.
    pub fn queue_timeout() -> Ending {
        let why = "no execution slot came free within the queue's max_wait";
        Ending::new(State::Failed, EndedBy::Timeout, Some(why.to_owned()))
    }

    /// The whole answer took longer than it may.
    pub fn too_long() -> Ending {
        let why = "the answer was not over within the total time-out";
        Ending::new(State::Failed, EndedBy::Timeout, Some(why.to_owned()))
    }

    /// The upstream failed: not reached, refused, broke off, or reported an error of its own.
    pub fn upstream(why: impl Into<String>) -> Ending {
        Ending::new(State::Failed, EndedBy::Upstream, Some(why.into()))
    }

    /// The gateway itself could not go on.
    pub fn gateway(why: impl Into<String>) -> Ending {
        Ending::new(State::Failed, EndedBy::Gateway, Some(why.into()))
    }
}
