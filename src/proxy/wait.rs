//! Waiting for an upstream while the client may leave and anyone may ask to stop.

use super::pace::{Due, Pace};
use crate::exchange::{Live, Stop};
use bytes::Bytes;
use pingora_core::Result;
use pingora_proxy::Session;
use std::future::Future;
use std::pin::Pin;

/// What happened next in a running answer.
#[derive(Debug)]
pub enum Turn {
    Data(Bytes),
    /// The upstream's body is over, by its framing.
    End,
    /// The upstream broke off; why, without addresses.
    Broken(String),
    Stopped(Stop),
    /// Stopped in the middle of a write.
    Torn(Stop),
    ClientGone,
    Due(Due),
}

/// What ends a wait that has not got what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    Stopped(Stop),
    /// Stopped in the middle of a write.
    Torn(Stop),
    ClientGone,
    Due(Due),
}

impl From<Interrupt> for Turn {
    fn from(interrupt: Interrupt) -> Turn {
        match interrupt {
            Interrupt::Stopped(stop) => Turn::Stopped(stop),
            Interrupt::Torn(stop) => Turn::Torn(stop),
            Interrupt::ClientGone => Turn::ClientGone,
            Interrupt::Due(due) => Turn::Due(due),
        }
    }
}

/// The next turn. A read that does not win goes on at the next call: it is the caller's.
pub async fn turn(
    read: Pin<&mut impl Future<Output = Result<Option<Bytes>>>>,
    session: &mut Session,
    live: &Live,
    pace: &mut Pace,
) -> Turn {
    tokio::select! {
        biased;
        stop = live.stopped() => Turn::Stopped(stop),
        data = read => match data {
            Ok(Some(chunk)) => Turn::Data(chunk),
            Ok(None) => Turn::End,
            Err(e) => Turn::Broken(broken(&e).to_owned()),
        },
        () = client_gone(session) => Turn::ClientGone,
        due = pace.due() => Turn::Due(due),
    }
}

/// Waits for a step before the answer, unless the client leaves, somebody asks to stop, or something is due.
pub async fn until<F: Future>(
    future: Pin<&mut F>,
    session: &mut Session,
    live: &Live,
    pace: &mut Pace,
) -> std::result::Result<F::Output, Interrupt> {
    tokio::select! {
        biased;
        stop = live.stopped() => Err(Interrupt::Stopped(stop)),
        output = future => Ok(output),
        () = client_gone(session) => Err(Interrupt::ClientGone),
        due = pace.due() => Err(Interrupt::Due(due)),
    }
}

/// Waits until the client is found to have left.
async fn client_gone(session: &mut Session) {
    // the body was read whole: whatever comes of this is the client's end
    let end = session.as_downstream_mut().read_body_or_idle(true).await;
    log::debug!("a client has left: {end:?}");
}

/// An upstream's error in words that name no address.
pub fn broken(error: &pingora_core::Error) -> &'static str {
    use pingora_core::ErrorType as E;
    const KNOWN: &[(E, &str)] = &[
        (
            E::ConnectionClosed,
            "the upstream closed the connection in the middle of its answer",
        ),
        (
            E::ReadError,
            "the connection to the upstream broke in the middle of its answer",
        ),
        (E::ReadTimedout, "the upstream stopped sending"),
        (
            E::InvalidHTTPHeader,
            "the upstream's answer has a head that is not HTTP",
        ),
        // declared by Pingora's body reader, for itself
        (
            E::Custom("InvalidChunk"),
            "the upstream's answer is not framed as HTTP says",
        ),
    ];
    KNOWN
        .iter()
        .find(|(kind, _)| kind == error.etype())
        .map_or("the upstream's answer broke off", |(_, words)| words)
}
