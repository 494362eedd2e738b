//! How the pump found a request to end: the ending for the record, and what is told the client where it is owed an error.

use super::pace::Due;
use super::refuse::Refusal;
use super::wait::Interrupt;
use crate::api::{Call, Code};
use crate::exchange::{Ending, Stop};
use crate::record::{EndedBy, Outcome, State, UpstreamEnd};
use std::time::Duration;

/// The end of a relay, in all that follows from it.
#[derive(Debug)]
pub struct Fate {
    pub ending: Ending,
    /// What the client is told, where it is there to hear it.
    pub fault: Option<Refusal>,
    /// The upstream's status, where it refused by one.
    pub status: Option<u16>,
    upstream: UpstreamEnd,
    outcome: Outcome,
    /// No backend was tried.
    untried: bool,
    /// The client is left in the middle of a write: nothing can be told it any more.
    torn: bool,
}

impl Fate {
    fn new(ending: Ending, upstream: UpstreamEnd, outcome: Outcome) -> Fate {
        Fate {
            ending,
            fault: None,
            status: None,
            upstream,
            outcome,
            untried: false,
            torn: false,
        }
    }

    fn telling(mut self, code: Code) -> Fate {
        let message = self.ending.why.clone().unwrap_or_default();
        self.fault = Some(Refusal::new(code, message));
        self
    }

    pub fn completed() -> Fate {
        Fate::new(Ending::completed(), UpstreamEnd::Complete, Outcome::Ok)
    }

    /// The upstream's own error answer was passed on.
    pub fn passed_refusal() -> Fate {
        let ending = Ending::upstream("the upstream refused the request");
        Fate::new(ending, UpstreamEnd::Complete, Outcome::Refused)
    }

    /// The upstream refused by status, after the client was sent a head of ours.
    pub fn refused_late(status: u16) -> Fate {
        let ending = Ending::upstream(format!("the upstream answered with status {status}"));
        Fate::new(ending, UpstreamEnd::Complete, Outcome::Refused)
            .telling(Code::UpstreamBroken)
            .refused(status)
    }

    pub fn client_gone() -> Fate {
        Fate::new(
            Ending::client_closed(),
            UpstreamEnd::Aborted,
            Outcome::Aborted,
        )
    }

    pub fn slow_reader() -> Fate {
        Fate::new(
            Ending::slow_reader(),
            UpstreamEnd::Aborted,
            Outcome::Aborted,
        )
    }

    pub fn stopped(stop: Stop) -> Fate {
        match stop {
            Stop::Cancel => {
                let mut fate =
                    Fate::new(Ending::cancelled(), UpstreamEnd::Aborted, Outcome::Aborted);
                fate.fault = Some(Refusal::new(Code::Cancelled, "the request was cancelled"));
                fate
            }
            Stop::Drain => {
                let mut fate = Fate::new(Ending::drained(), UpstreamEnd::Aborted, Outcome::Aborted);
                let why = "the gateway is shutting down; try again shortly";
                fate.fault = Some(Refusal::new(Code::Draining, why).after(Duration::from_secs(1)));
                fate
            }
        }
    }

    /// The write that was under way did not come to its end.
    pub fn tearing(mut self) -> Fate {
        self.torn = true;
        self
    }

    /// The upstream broke off, or ended without the protocol's end.
    pub fn broken(why: impl Into<String>) -> Fate {
        Fate::new(Ending::upstream(why), UpstreamEnd::Error, Outcome::Reset)
            .telling(Code::UpstreamBroken)
    }

    /// The upstream reported an error of its own inside its answer. The client has read it, but where its events are
    /// converted.
    pub fn reported(why: &str, call: Call) -> Fate {
        let fate = Fate::new(Ending::upstream(why), UpstreamEnd::Error, Outcome::Error);
        match call == Call::Native {
            true => fate.telling(Code::UpstreamBroken),
            false => fate,
        }
    }

    pub fn connect_timed_out() -> Fate {
        Fate::new(
            Ending::timed_out("connect"),
            UpstreamEnd::None,
            Outcome::Timeout,
        )
        .telling(Code::UpstreamTimeout)
    }

    pub fn unreachable() -> Fate {
        let ending = Ending::upstream("no backend of the model's pool could be reached");
        Fate::new(ending, UpstreamEnd::None, Outcome::ConnectFailed)
            .telling(Code::UpstreamUnreachable)
    }

    pub fn no_backend() -> Fate {
        let ending = Ending::gateway("the model's pool has no backend");
        let mut fate = Fate::new(ending, UpstreamEnd::None, Outcome::ConnectFailed);
        fate.untried = true;
        fate.fault = Some(
            Refusal::new(
                Code::NoBackend,
                "the model's pool has no backend at the moment",
            )
            .after(Duration::from_secs(5)),
        );
        fate
    }

    pub fn full(wait: Duration) -> Fate {
        let why = "all execution slots of the pool's backends are taken";
        let mut fate = Fate::new(
            Ending::gateway(why),
            UpstreamEnd::None,
            Outcome::ConnectFailed,
        );
        fate.untried = true;
        fate.fault = Some(Refusal::new(Code::PoolSlotsFull, why).after(wait));
        fate
    }

    /// No slot came free for as long as a request may wait for one.
    pub fn queue_timeout(retry_after: Duration) -> Fate {
        let why = "no execution slot of the model's pool came free in time; try again later";
        let mut fate = Fate::new(Ending::queue_timeout(), UpstreamEnd::None, Outcome::Timeout);
        fate.untried = true;
        fate.fault = Some(Refusal::new(Code::QueueTimeout, why).after(retry_after));
        fate
    }

    pub fn timed_out(which: &str) -> Fate {
        Fate::new(
            Ending::timed_out(which),
            UpstreamEnd::Aborted,
            Outcome::Timeout,
        )
        .telling(Code::UpstreamTimeout)
    }

    fn too_long() -> Fate {
        Fate::new(Ending::too_long(), UpstreamEnd::Aborted, Outcome::Timeout)
            .telling(Code::UpstreamTimeout)
    }

    pub fn overdue(due: Due) -> Fate {
        match due {
            Due::Idle => Fate::timed_out("idle"),
            Due::Total => Fate::too_long(),
            Due::Write => Fate::slow_reader(),
            // neither ends a request that has not come to the protocol's end
            Due::CloseWait | Due::Heartbeat => Fate::completed(),
        }
    }

    pub fn gateway(error: &pingora_core::Error) -> Fate {
        log::error!("a hook failed: {error}");
        let ending = Ending::gateway("the gateway could not handle the answer");
        Fate::new(ending, UpstreamEnd::Aborted, Outcome::Error).telling(Code::UpstreamBroken)
    }

    pub fn refused(mut self, status: u16) -> Fate {
        self.status = Some(status);
        self
    }

    pub fn upstream_end(&self) -> UpstreamEnd {
        self.upstream
    }

    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// There was no backend to try.
    pub fn is_before_any_try(&self) -> bool {
        self.untried
    }

    pub fn client_left(&self) -> bool {
        self.ending.by == EndedBy::ClientClosed
    }

    /// Whether the connection may be used again, if its answer came whole.
    pub fn leaves_upstream_whole(&self) -> bool {
        self.upstream == UpstreamEnd::Complete
    }

    /// Whether there is a client that can still be told something.
    pub fn client_listens(&self) -> bool {
        let left = matches!(
            (self.ending.state, self.ending.by),
            (
                State::Cancelled,
                EndedBy::ClientClosed | EndedBy::SlowReader
            )
        );
        !left && !self.torn
    }
}

impl From<Interrupt> for Fate {
    fn from(interrupt: Interrupt) -> Fate {
        match interrupt {
            Interrupt::Stopped(stop) => Fate::stopped(stop),
            Interrupt::Torn(stop) => Fate::stopped(stop).tearing(),
            Interrupt::ClientGone => Fate::client_gone(),
            Interrupt::Due(due) => Fate::overdue(due),
        }
    }
}
