//! A client's connection, seen from beside: what was read and written on it, and whether its client is still there when
//! Pingora has stopped looking.
//!
//! Pingora's own detection of a client that leaves is the one in use. It ends where the client has sent the start of a
//! next request early: those bytes are put aside and nothing is read any more, a FIN included. From then on the
//! connection is read ahead here, into a small buffer that the next request is read from.

use async_trait::async_trait;
use bytes::BytesMut;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::SslDigest;
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    Stream, TimingDigest, UniqueID, UniqueIDType,
};
use pingora_core::{ErrorType, OrErr, Result};
use pingora_proxy::Session;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// What is read ahead of a request that waits for its turn. A client that sends more is not watched any further.
const AHEAD_MAX: usize = 64 * 1024;

/// The facts of one connection, shared with whoever serves a request on it.
#[derive(Debug)]
pub struct Connection {
    io: Mutex<Io>,
    /// Reads that came to an end, and bytes that were taken by the kernel.
    reads: AtomicU64,
    written: AtomicU64,
    /// The first byte of the current request is still waited for; then its waiter is woken.
    fresh: AtomicBool,
    first_read: Notify,
    /// The head of the current request was read.
    head_read: AtomicBool,
    /// Pingora has put bytes of a next request aside and does not look any more.
    unwatched: AtomicBool,
    /// A FIN ends the request.
    abort_on_close: AtomicBool,
}

#[derive(Debug)]
struct Io {
    stream: Stream,
    ahead: BytesMut,
    /// The client has closed its side.
    closed: bool,
    /// Broken off by us: nothing is read or written any more.
    broken: bool,
}

/// The connection as Pingora has it.
#[derive(Debug)]
pub struct Watched(Arc<Connection>);

impl Connection {
    pub fn new(stream: Stream) -> Arc<Connection> {
        Arc::new(Connection {
            io: Mutex::new(Io {
                stream,
                ahead: BytesMut::new(),
                closed: false,
                broken: false,
            }),
            reads: AtomicU64::new(0),
            written: AtomicU64::new(0),
            fresh: AtomicBool::new(true),
            first_read: Notify::new(),
            head_read: AtomicBool::new(false),
            unwatched: AtomicBool::new(false),
            abort_on_close: AtomicBool::new(true),
        })
    }

    /// The connection as a stream for Pingora.
    pub fn stream(self: &Arc<Connection>) -> Stream {
        Box::new(Watched(self.clone()))
    }

    /// The connection a request came by; nothing where it shares it with others (HTTP/2).
    pub fn of(session: &Session) -> Option<Arc<Connection>> {
        let stream = session.as_downstream().stream()?;
        let watched = (**stream).as_any().downcast_ref::<Watched>()?;
        Some(watched.0.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Io> {
        self.io.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request's head is waited for.
    pub fn await_head(&self) {
        self.fresh.store(true, Ordering::Relaxed);
        self.head_read.store(false, Ordering::Relaxed);
        self.unwatched.store(false, Ordering::Relaxed);
    }

    /// Waits for the first byte of the current request. One waiter at a time.
    pub async fn first_read(&self) {
        while self.fresh.load(Ordering::Relaxed) {
            self.first_read.notified().await;
        }
    }

    /// The head of a request is there.
    pub fn note_head(&self) {
        self.head_read.store(true, Ordering::Relaxed);
    }

    pub fn has_head(&self) -> bool {
        self.head_read.load(Ordering::Relaxed)
    }

    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Bytes that the kernel has taken so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub fn set_abort_on_close(&self, abort: bool) {
        self.abort_on_close.store(abort, Ordering::Relaxed);
    }

    /// Sends what was written and still waits in the process.
    pub async fn flush(&self) -> Result<()> {
        std::future::poll_fn(|cx| {
            let mut io = self.lock();
            match io.broken {
                true => Poll::Ready(Err(broken())),
                false => Pin::new(&mut io.stream).poll_flush(cx),
            }
        })
        .await
        .or_err(ErrorType::WriteError, "flushing a client's connection")
    }

    /// Ends the connection at once: whatever waits to be written is dropped with it.
    pub fn break_off(&self) {
        self.lock().broken = true;
    }

    /// Looks on where Pingora does not, if that is so: `before` is what `reads` said before Pingora looked. Ready when the
    /// client has left.
    pub fn poll_gone(&self, before: u64, cx: &mut Context<'_>) -> Poll<()> {
        if self.reads() != before {
            self.unwatched.store(true, Ordering::Relaxed);
        }
        if !self.unwatched.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        let mut io = self.lock();
        ready!(io.read_ahead(cx));
        if self.abort_on_close.load(Ordering::Relaxed) {
            Poll::Ready(())
        } else {
            // a half-closed client still reads: only a failed write tells that it has gone
            Poll::Pending
        }
    }
}

impl Io {
    /// Reads ahead until the client closes. Pending while it may still send, or has sent as much as is kept.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut room = [0_u8; 1024];
        while !self.closed {
            if self.ahead.len() >= AHEAD_MAX {
                return Poll::Pending;
            }
            let mut buf = ReadBuf::new(&mut room);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf));
            self.closed = read.is_err() || buf.filled().is_empty();
            self.ahead.extend_from_slice(buf.filled());
        }
        Poll::Ready(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.broken {
            return Poll::Ready(Err(broken()));
        }
        if !self.ahead.is_empty() {
            let n = buf.remaining().min(self.ahead.len());
            buf.put_slice(&self.ahead.split_to(n));
            return Poll::Ready(Ok(()));
        }
        if self.closed {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        self.closed = read.is_ok() && buf.filled().len() == before && buf.remaining() > 0;
        Poll::Ready(read)
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the connection was broken off")
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.0.lock().poll_read(cx, buf));
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        if self.0.fresh.swap(false, Ordering::Relaxed) {
            self.0.first_read.notify_one();
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut io = self.0.lock();
        if io.broken {
            return Poll::Ready(Err(broken()));
        }
        let written = ready!(Pin::new(&mut io.stream).poll_write(cx, bytes));
        self.0.note_written(&written);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut io = self.0.lock();
        if io.broken {
            return Poll::Ready(Err(broken()));
        }
        let written = ready!(Pin::new(&mut io.stream).poll_write_vectored(cx, bytes));
        self.0.note_written(&written);
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut io = self.0.lock();
        if io.broken {
            return Poll::Ready(Err(broken()));
        }
        Pin::new(&mut io.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut io = self.0.lock();
        if io.broken {
            return Poll::Ready(Err(broken()));
        }
        Pin::new(&mut io.stream).poll_shutdown(cx)
    }
}

impl Connection {
    fn note_written(&self, written: &io::Result<usize>) {
        if let Ok(n) = written {
            let n = u64::try_from(*n).unwrap_or(0);
            self.written.fetch_add(n, Ordering::Relaxed);
        }
    }
}

#[async_trait]
impl Shutdown for Watched {
    async fn shutdown(&mut self) {
        if let Err(e) = tokio::io::AsyncWriteExt::shutdown(self).await {
            log::debug!("a connection could not be shut down: {e}");
        }
    }
}

impl UniqueID for Watched {
    fn id(&self) -> UniqueIDType {
        self.0.lock().stream.id()
    }
}

impl Ssl for Watched {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.0.lock().stream.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.0.lock().stream.selected_alpn_proto()
    }
}

impl GetTimingDigest for Watched {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.0.lock().stream.get_timing_digest()
    }
}

impl GetProxyDigest for Watched {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.0.lock().stream.get_proxy_digest()
    }

    fn set_proxy_digest(&mut self, digest: ProxyDigest) {
        self.0.lock().stream.set_proxy_digest(digest);
    }
}

impl GetSocketDigest for Watched {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.0.lock().stream.get_socket_digest()
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.0.lock().stream.set_socket_digest(digest);
    }
}

impl Peek for Watched {}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// Polls `poll_gone` once, as if Pingora had read something before it stopped looking.
    async fn is_gone(connection: &Connection) -> bool {
        std::future::poll_fn(|cx| Poll::Ready(connection.poll_gone(u64::MAX, cx).is_ready())).await
    }

    #[tokio::test]
    async fn a_client_that_sent_its_next_request_early_is_seen_leaving_and_the_request_is_kept() {
        let (mut client, server) = duplex(1024);
        let connection = Connection::new(Box::new(server));
        client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
        assert!(!is_gone(&connection).await);
        drop(client);
        assert!(is_gone(&connection).await);
        let mut read = String::new();
        connection.stream().read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "GET / HTTP/1.1\r\n");
    }

    #[tokio::test]
    async fn a_half_closed_client_is_not_taken_for_gone_where_that_is_allowed() {
        let (client, server) = duplex(1024);
        let connection = Connection::new(Box::new(server));
        connection.set_abort_on_close(false);
        drop(client);
        assert!(!is_gone(&connection).await);
    }

    #[tokio::test]
    async fn a_connection_that_was_broken_off_takes_nothing_more() {
        let (_client, server) = duplex(1024);
        let connection = Connection::new(Box::new(server));
        let mut stream = connection.stream();
        stream.write_all(b"abc").await.unwrap();
        assert_eq!(connection.written(), 3);
        connection.break_off();
        assert!(stream.write_all(b"d").await.is_err());
        assert!(stream.flush().await.is_err());
    }
}
