//! Writing to a client that may read slowly, leave, or be told to wait no longer.

use super::connection::Connection;
use super::pace::within;
use crate::exchange::{Exchange, Stop};
use crate::record::UpstreamEnd;
use bytes::Bytes;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use std::time::Duration;

/// How long a blocked write goes on after the request was asked to stop.
const LAST_WRITE: Duration = Duration::from_secs(1);

/// How a write went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    All,
    /// All of it, but somebody asked to stop meanwhile.
    Stopped(Stop),
    /// Somebody asked to stop and the client did not take the rest: it is left in the middle of it.
    Torn(Stop),
    /// It stood still for the whole time-out.
    Slow,
    /// The client has left.
    Gone,
}

/// Writes body bytes and flushes them. Asked to stop while the write is blocked, the upstream is let go at once by
/// `on_stop` and its slots are free; the write has a little longer, so that a client that reads on is left at an event's
/// end.
pub async fn body(
    session: &mut Session,
    bytes: Bytes,
    exchange: &mut Exchange,
    timeout: Duration,
    on_stop: impl FnOnce(),
) -> Written {
    let live = exchange.live().clone();
    let connection = Connection::of(session);
    let write = async {
        let down = &mut session.downstream_session;
        down.write_response_body(bytes, false).await?;
        // Pingora keeps the pieces of a body of known length until it is whole
        match &connection {
            Some(connection) => connection.flush().await,
            None => Ok(()),
        }
    };
    let mut write = std::pin::pin!(write);
    // most writes go straight to the kernel: no timer is made for those
    let stopped = tokio::select! {
        biased;
        written = write.as_mut() => return done(written),
        stop = live.stopped() => stop,
        () = stands_still(connection.as_deref(), timeout) => return Written::Slow,
    };
    on_stop();
    exchange.release(UpstreamEnd::Aborted);
    match within(LAST_WRITE, write).await {
        Some(Ok(())) => Written::Stopped(stopped),
        Some(Err(_)) => Written::Gone,
        None => Written::Torn(stopped),
    }
}

fn done(written: pingora_core::Result<()>) -> Written {
    match written {
        Ok(()) => Written::All,
        Err(e) => {
            log::debug!("a write to a client failed: {e}");
            Written::Gone
        }
    }
}

/// Waits until a write has made no progress for the whole time. A time-out of zero never comes.
async fn stands_still(connection: Option<&Connection>, timeout: Duration) {
    if timeout.is_zero() {
        std::future::pending::<()>().await;
    }
    loop {
        let before = connection.map(Connection::written);
        tokio::time::sleep(timeout).await;
        // on a connection that is shared with others no progress can be told: the whole write has the time
        if connection.is_none() || connection.map(Connection::written) == before {
            return;
        }
    }
}

/// Writes the last bytes of an answer whose request has ended already. Whether they went out.
pub async fn last(session: &mut Session, bytes: Bytes) -> bool {
    let write = session.downstream_session.write_response_body(bytes, false);
    within(LAST_WRITE, write).await.is_some_and(|w| w.is_ok())
}

/// Writes the head of an answer. Whether the client took it in time.
pub async fn head(session: &mut Session, head: Box<ResponseHeader>, timeout: Duration) -> bool {
    let write = session.write_response_header(head, false);
    match within(timeout, write).await {
        Some(Ok(())) => true,
        Some(Err(e)) => {
            log::debug!("a head could not be written: {e}");
            false
        }
        None => false,
    }
}

/// Writes a heartbeat. Nothing waits for a client that cannot even take that.
pub async fn brief(
    session: &mut Session,
    bytes: Bytes,
    exchange: &Exchange,
    timeout: Duration,
) -> Written {
    let live = exchange.live().clone();
    let connection = Connection::of(session);
    let write = session.downstream_session.write_response_body(bytes, false);
    tokio::select! {
        biased;
        written = write => done(written),
        stop = live.stopped() => Written::Torn(stop),
        () = stands_still(connection.as_deref(), timeout) => Written::Slow,
    }
}
