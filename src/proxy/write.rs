//! Writing to a client that may read slowly, leave, or be told to wait no longer.

use super::pace::within;
use crate::exchange::{Exchange, Stop, UpstreamEnd};
use bytes::Bytes;
use pingora_proxy::Session;
use std::time::Duration;

/// How a write went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    All,
    /// All of it, but somebody asked to stop meanwhile.
    Stopped(Stop),
    /// It stood still for the whole time-out.
    Slow,
    /// The client has left.
    Gone,
}

/// Writes body bytes and flushes them. Asked to stop while the write is blocked, the upstream is let go at once by
/// `on_stop` and its slots are free; the write itself goes on, so that the client is left at an event's end.
pub async fn body(
    session: &mut Session,
    bytes: Bytes,
    exchange: &mut Exchange,
    timeout: Duration,
    on_stop: impl FnOnce(),
) -> Written {
    let live = exchange.live().clone();
    let mut write = std::pin::pin!(session.downstream_session.write_response_body(bytes, false));
    // most writes go straight to the kernel: no timer is made for those
    let stopped = tokio::select! {
        biased;
        written = write.as_mut() => return done(written),
        stop = live.stopped() => stop,
        () = wait(timeout) => return Written::Slow,
    };
    on_stop();
    exchange.release(UpstreamEnd::Aborted);
    tokio::select! {
        biased;
        written = write => match written {
            Ok(()) => Written::Stopped(stopped),
            Err(_) => Written::Gone,
        },
        () = wait(timeout) => Written::Slow,
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

/// A time-out of zero never comes.
async fn wait(timeout: Duration) {
    if timeout.is_zero() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(timeout).await;
}

/// Writes the last bytes of an answer whose request has ended already. Whether they went out.
pub async fn last(session: &mut Session, bytes: Bytes, timeout: Duration) -> bool {
    let write = session.downstream_session.write_response_body(bytes, false);
    within(timeout, write).await.is_some_and(|w| w.is_ok())
}
