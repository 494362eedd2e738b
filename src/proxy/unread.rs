//! Noticing what comes on a socket that is not read from: that an upstream says something while it is still being written
//! to, and that a client closes of which more has been read ahead than is kept.
//!
//! Pingora's session can either write or read. A second descriptor of the same socket tells what there is to read; it is
//! made only where it is needed, and read from never.

use pingora_core::protocols::http::client::HttpSession;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A write that takes this long stands still.
const STANDS_STILL: Duration = Duration::from_millis(50);

/// The socket of a session that has one to itself (HTTP/1).
pub fn socket(http: &HttpSession<()>) -> Option<RawFd> {
    http.stream().map(|stream| stream.id())
}

/// Waits until the socket has something to read, but not before a write on it has stood still for a while. Never comes
/// where there is no such socket. The session must outlive the wait.
pub async fn spoken(socket: Option<RawFd>) {
    tokio::time::sleep(STANDS_STILL).await;
    let heard = match socket.map(second) {
        Some(Ok(fd)) => readable(fd).await,
        Some(Err(e)) => Err(e),
        None => std::future::pending().await,
    };
    if let Err(e) = heard {
        log::debug!("an upstream's socket cannot be watched: {e}");
        std::future::pending::<()>().await;
    }
}

async fn readable(fd: OwnedFd) -> io::Result<()> {
    let watched = register(fd)?;
    watched.readable().await.map(drop)
}

/// Tells when the other side of a socket closes, whatever waits before that.
#[derive(Debug, Default)]
pub struct HangUp(Option<AsyncFd<OwnedFd>>);

impl HangUp {
    /// Ready once the other side has closed, or where that cannot be watched. The socket's owner must outlive the call.
    pub fn poll(&mut self, socket: RawFd, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let watched = match &mut self.0 {
            Some(watched) => watched,
            none => none.insert(second(socket).and_then(register)?),
        };
        loop {
            let mut guard = ready!(watched.poll_read_ready(cx))?;
            if guard.ready().is_read_closed() {
                return Poll::Ready(Ok(()));
            }
            // more to read, which is left where it is
            guard.clear_ready();
        }
    }
}

#[allow(
    unsafe_code,
    reason = "tokio asks for a word that the descriptor stays the one it is"
)]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor names the same socket until it is dropped, which ends the registration first.
    let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) };
    registered.map_err(io::Error::from)
}

#[allow(
    unsafe_code,
    reason = "a socket's second descriptor is only had by its number"
)]
fn second(socket: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the caller holds the session that owns the descriptor, so it is open while it is borrowed here.
    let borrowed = unsafe { BorrowedFd::borrow_raw(socket) };
    borrowed.try_clone_to_owned()
}
