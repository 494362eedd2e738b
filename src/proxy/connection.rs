//! A client's HTTP/1 connection as Pingora has it, seen from beside: what was written on it, which part of a request is
//! read, and whether the client is still there.

use super::framing::Part;
use super::inflow::Inflow;
use super::unread::HangUp;
use async_trait::async_trait;
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
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::Notify;

/// The facts of one connection, shared with whoever serves a request on it.
#[derive(Debug)]
pub struct Connection {
    io: Mutex<Io>,
    /// Bytes that were taken by the kernel.
    written: AtomicU64,
    /// The first byte of the current request is still waited for; then its waiter is woken.
    fresh: AtomicBool,
    first_read: Notify,
    /// The head of the current request was read.
    head_read: AtomicBool,
}

#[derive(Debug)]
struct Io {
    stream: Stream,
    inflow: Inflow,
    hang_up: HangUp,
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
                inflow: Inflow::new(),
                hang_up: HangUp::default(),
                broken: false,
            }),
            written: AtomicU64::new(0),
            fresh: AtomicBool::new(true),
            first_read: Notify::new(),
            head_read: AtomicBool::new(false),
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
        self.lock().inflow.await_head();
    }

    /// Waits for the first byte of the current request. One waiter at a time.
    pub async fn first_read(&self) {
        while self.fresh.load(Ordering::Relaxed) {
            self.first_read.notified().await;
        }
    }

    /// The head of a request is there, and this is its body.
    pub fn note_head(&self, body: Part) {
        self.head_read.store(true, Ordering::Relaxed);
        self.lock().inflow.await_body(body);
    }

    pub fn has_head(&self) -> bool {
        self.head_read.load(Ordering::Relaxed)
    }

    /// The current request was read to its end: what comes next on the connection is another one.
    pub fn is_read_whole(&self) -> bool {
        self.lock().inflow.is_over()
    }

    /// Bytes that the kernel has taken so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub fn set_abort_on_close(&self, abort: bool) {
        self.lock().inflow.set_abort_on_close(abort);
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

    /// Tells a client that waits for it to send its body (RFC 9110, section 15.2.1).
    pub async fn go_on(self: &Arc<Connection>) -> Result<()> {
        let mut stream = self.stream();
        let written = stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await;
        let told = "telling a client to go on";
        written.or_err(ErrorType::WriteError, told)?;
        stream.flush().await.or_err(ErrorType::WriteError, told)
    }

    /// Ends the connection at once: whatever waits to be written is dropped with it.
    pub fn break_off(&self) {
        self.lock().broken = true;
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
        let Io {
            stream,
            inflow,
            hang_up,
            broken: is_broken,
        } = &mut *self.0.lock();
        let read = match is_broken {
            true => Err(broken()),
            false => match inflow.poll_read(stream, cx, buf) {
                Poll::Pending if inflow.is_full() && inflow.aborts_on_close() => {
                    ready!(hang_up.poll(stream.id(), cx))
                }
                read @ (Poll::Ready(_) | Poll::Pending) => ready!(read),
            },
        };
        let begun = read.is_err() || inflow.has_begun();
        if begun && self.0.fresh.swap(false, Ordering::Relaxed) {
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
    use tokio::io::{AsyncWriteExt, duplex};

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
