//! A client's HTTP/1 connection as Pingora has it, seen from beside: what was written on it, which part of a request is
//! read, and whether the client is still there.
//!
//! Pingora reads ahead, puts the start of a next request aside, and from then on notices nothing any more, a FIN included;
//! and a FIN ends the connection although requests that came before it are still to be served. So it is given the bytes
//! of one request at a time. Once that is read, the connection is read ahead here while Pingora waits for the client to
//! leave, into a small buffer that the next request is read from.

use super::framing::{Malformed, Part};
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
    /// What was read and not yet given to Pingora.
    ahead: BytesMut,
    part: Part,
    /// A FIN ends the request that runs.
    abort_on_close: bool,
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
                part: Part::head(),
                abort_on_close: true,
                closed: false,
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
        let mut io = self.lock();
        io.part = Part::head();
        io.abort_on_close = true;
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
        self.lock().part = body;
    }

    pub fn has_head(&self) -> bool {
        self.head_read.load(Ordering::Relaxed)
    }

    /// The current request was read to its end: what comes next on the connection is another one.
    pub fn is_read_whole(&self) -> bool {
        matches!(self.lock().part, Part::Over)
    }

    /// Bytes that the kernel has taken so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub fn set_abort_on_close(&self, abort: bool) {
        self.lock().abort_on_close = abort;
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
}

impl Io {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.broken {
            return Poll::Ready(Err(broken()));
        }
        match self.part {
            Part::Over => self.poll_gone(cx),
            Part::Malformed => Poll::Ready(Err(malformed(Malformed))),
            Part::Head(_) | Part::Length(_) | Part::Chunks(_) if self.ahead.is_empty() => {
                self.read_on(cx, buf)
            }
            Part::Head(_) | Part::Length(_) | Part::Chunks(_) => Poll::Ready(self.hand_out(buf)),
        }
    }

    /// Reads what is left of the part; what came with it is kept.
    fn read_on(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.closed {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        let (_, read) = buf.filled().split_at(before);
        self.closed = read.is_empty() && buf.remaining() > 0;
        let taken = self.part.take(read).map_err(malformed)?;
        self.ahead
            .extend_from_slice(read.get(taken..).unwrap_or_default());
        buf.set_filled(before + taken);
        Poll::Ready(Ok(()))
    }

    /// Gives what was read ahead, as far as it belongs to the part.
    fn hand_out(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let room = buf.remaining().min(self.ahead.len());
        let (offered, _) = self.ahead.split_at(room);
        let taken = self.part.take(offered).map_err(malformed)?;
        buf.put_slice(&self.ahead.split_to(taken));
        Ok(())
    }

    /// Nothing more of this request comes: ready when the client has left, as an end of the stream.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.read_ahead(cx))?;
        match self.abort_on_close {
            true => Poll::Ready(Ok(())),
            // a half-closed client still reads: only a failed write tells that it has gone
            false => Poll::Pending,
        }
    }

    /// Reads ahead until the client closes. Pending while it may still send, or has sent as much as is kept.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut room = [0_u8; 1024];
        while !self.closed {
            if self.ahead.len() >= AHEAD_MAX {
                return Poll::Pending;
            }
            let mut buf = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf))?;
            self.closed = buf.filled().is_empty();
            self.ahead.extend_from_slice(buf.filled());
        }
        Poll::Ready(Ok(()))
    }
}

fn malformed(_: Malformed) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the body is not framed as its head says",
    )
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
    use tokio::io::{AsyncWriteExt, duplex};

    /// What one read gives; nothing while it would wait.
    async fn read(stream: &mut Stream) -> Option<io::Result<Vec<u8>>> {
        let mut room = [0; 64];
        let mut buf = ReadBuf::new(&mut room);
        let read = std::future::poll_fn(|cx| {
            Poll::Ready(match Pin::new(&mut *stream).poll_read(cx, &mut buf) {
                Poll::Ready(read) => Some(read),
                Poll::Pending => None,
            })
        })
        .await?;
        Some(read.map(|()| buf.filled().to_vec()))
    }

    async fn reads(stream: &mut Stream) -> String {
        let read = read(stream).await.expect("something to read");
        String::from_utf8(read.expect("no error")).unwrap()
    }

    fn length(n: &'static str) -> Part {
        let mut headers = http::HeaderMap::new();
        headers.insert("content-length", http::HeaderValue::from_static(n));
        Part::body(&headers)
    }

    const HEAD: &str = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n";

    #[tokio::test]
    async fn requests_that_came_at_once_are_read_one_by_one_and_then_the_end() {
        let (mut client, server) = duplex(1024);
        let connection = Connection::new(Box::new(server));
        let mut stream = connection.stream();
        let sent = [HEAD, "abc", HEAD, "def"].concat();
        client.write_all(sent.as_bytes()).await.unwrap();
        drop(client);
        for body in ["abc", "def"] {
            connection.await_head();
            assert_eq!(reads(&mut stream).await, HEAD);
            connection.note_head(length("3"));
            connection.set_abort_on_close(false);
            assert!(!connection.is_read_whole());
            assert_eq!(reads(&mut stream).await, body);
            assert!(connection.is_read_whole());
            assert!(read(&mut stream).await.is_none(), "taken for gone");
        }
        connection.await_head();
        assert_eq!(reads(&mut stream).await, "");
    }

    #[tokio::test]
    async fn a_client_that_sent_its_next_request_early_is_seen_leaving_and_the_request_is_kept() {
        let (mut client, server) = duplex(1024);
        let connection = Connection::new(Box::new(server));
        let mut stream = connection.stream();
        connection.note_head(length("0"));
        client.write_all(HEAD.as_bytes()).await.unwrap();
        assert!(read(&mut stream).await.is_none());
        drop(client);
        assert_eq!(reads(&mut stream).await, "");
        connection.await_head();
        assert_eq!(reads(&mut stream).await, HEAD);
    }

    #[tokio::test]
    async fn a_body_that_ends_early_is_seen_to_end() {
        let (mut client, server) = duplex(1024);
        let connection = Connection::new(Box::new(server));
        let mut stream = connection.stream();
        connection.note_head(length("3"));
        connection.set_abort_on_close(false);
        client.write_all(b"ab").await.unwrap();
        drop(client);
        assert_eq!(reads(&mut stream).await, "ab");
        assert_eq!(reads(&mut stream).await, "");
        assert!(!connection.is_read_whole());
    }

    #[tokio::test]
    async fn chunks_that_are_malformed_are_an_error() {
        let (mut client, server) = duplex(1024);
        let connection = Connection::new(Box::new(server));
        let mut stream = connection.stream();
        let mut headers = http::HeaderMap::new();
        headers.insert(
            "transfer-encoding",
            http::HeaderValue::from_static("chunked"),
        );
        connection.note_head(Part::body(&headers));
        client.write_all(b"\r\n\r\n").await.unwrap();
        for _ in 0..2 {
            assert!(matches!(read(&mut stream).await, Some(Err(_))));
        }
        assert!(!connection.is_read_whole());
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
