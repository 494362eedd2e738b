//! What comes in on a client's HTTP/1 connection: Pingora is given the bytes of one part of a request at a time.
//!
//! Left alone, Pingora reads ahead, puts the start of a next request aside, and from then on notices nothing any more, a
//! FIN included; and a FIN ends the connection although requests that came before it are still to be served. Here what
//! is behind a part is kept for the next one. Once a request was read whole, Pingora waits for the client to leave:
//! meanwhile the connection is read ahead into a small buffer, and the wait ends where the client has closed.

use super::framing::{Malformed, Part};
use bytes::BytesMut;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// What is read ahead of a request that waits for its turn. Whether a client that sends more has left is told by its
/// socket alone.
const AHEAD_MAX: usize = 64 * 1024;

#[derive(Debug)]
pub struct Inflow {
    part: Part,
    /// More of the head has come than blank lines, which mean nothing before it (RFC 9112, section 2.2).
    begun: bool,
    /// What was read and not yet given to Pingora.
    ahead: BytesMut,
    /// A FIN ends the request that runs.
    abort_on_close: bool,
    /// The client has closed its side.
    closed: bool,
}

impl Inflow {
    /// Of a new connection: a head is awaited.
    pub fn new() -> Inflow {
        Inflow {
            part: Part::head(),
            begun: false,
            ahead: BytesMut::new(),
            abort_on_close: true,
            closed: false,
        }
    }

    /// The next bytes are a request's head.
    pub fn await_head(&mut self) {
        self.part = Part::head();
        self.begun = false;
        self.abort_on_close = true;
    }

    /// The next bytes are the body of the request whose head was read.
    pub fn await_body(&mut self, body: Part) {
        self.part = body;
    }

    /// Whether a client that closes ends the request that runs.
    pub fn set_abort_on_close(&mut self, abort: bool) {
        self.abort_on_close = abort;
    }

    /// Something of the head has come, or nothing will.
    pub fn has_begun(&self) -> bool {
        self.begun || self.closed
    }

    /// The request was read whole, and the client has sent as much of the next ones as is read ahead: whether it closes
    /// cannot be told by reading.
    pub fn is_full(&self) -> bool {
        self.is_over() && !self.closed && self.ahead.len() >= AHEAD_MAX
    }

    /// Whether a client that closes ends the request that runs.
    pub fn aborts_on_close(&self) -> bool {
        self.abort_on_close
    }

    /// The request was read whole.
    pub fn is_over(&self) -> bool {
        matches!(self.part, Part::Over)
    }

    /// Gives the next bytes of the part. When it is over: waits for the client to leave, which is told as the end of the
    /// stream.
    pub fn poll_read(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.part {
            Part::Over => self.poll_gone(stream, cx),
            Part::Malformed => Poll::Ready(Err(malformed(Malformed))),
            Part::Head(_) | Part::Length(_) | Part::Chunks(_) if self.ahead.is_empty() => {
                self.read_on(stream, cx, buf)
            }
            Part::Head(_) | Part::Length(_) | Part::Chunks(_) => Poll::Ready(self.hand_out(buf)),
        }
    }

    /// Reads on; what is behind the part is kept.
    fn read_on(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.closed {
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(stream).poll_read(cx, buf))?;
        let (_, read) = buf.filled().split_at(before);
        self.closed = read.is_empty() && buf.remaining() > 0;
        let taken = self.part.take(read).map_err(malformed)?;
        let (of_part, behind) = read.split_at(taken);
        self.begun |= is_begun(of_part);
        self.ahead.extend_from_slice(behind);
        buf.set_filled(before + taken);
        Poll::Ready(Ok(()))
    }

    /// Gives what was read ahead, as far as it belongs to the part.
    fn hand_out(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        let room = buf.remaining().min(self.ahead.len());
        let (offered, _) = self.ahead.split_at(room);
        let taken = self.part.take(offered).map_err(malformed)?;
        self.begun |= is_begun(offered);
        buf.put_slice(&self.ahead.split_to(taken));
        if self.ahead.is_empty() {
            // its memory is not kept for as long as the answer takes
            self.ahead = BytesMut::new();
        }
        Ok(())
    }

    fn poll_gone(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.read_ahead(stream, cx))?;
        match self.abort_on_close {
            true => Poll::Ready(Ok(())),
            // a half-closed client still reads: only a failed write tells that it has gone
            false => Poll::Pending,
        }
    }

    /// Reads ahead until the client closes. Pending while it may still send, or has sent as much as is kept.
    fn read_ahead(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let mut room = [0_u8; 1024];
        while !self.closed {
            if self.ahead.len() >= AHEAD_MAX {
                return Poll::Pending;
            }
            let mut buf = ReadBuf::new(&mut room);
            ready!(Pin::new(&mut *stream).poll_read(cx, &mut buf))?;
            self.closed = buf.filled().is_empty();
            self.ahead.extend_from_slice(buf.filled());
        }
        Poll::Ready(Ok(()))
    }
}

fn is_begun(bytes: &[u8]) -> bool {
    bytes.iter().any(|b| !matches!(b, b'\r' | b'\n'))
}

fn malformed(_: Malformed) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the body is not framed as its head says",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};
    use tokio::io::{AsyncWriteExt, DuplexStream, duplex};

    /// What one read gives; nothing while it would wait.
    async fn read(inflow: &mut Inflow, stream: &mut DuplexStream) -> Option<io::Result<Vec<u8>>> {
        let mut room = [0; 64];
        let mut buf = ReadBuf::new(&mut room);
        let read = std::future::poll_fn(|cx| {
            Poll::Ready(match inflow.poll_read(stream, cx, &mut buf) {
                Poll::Ready(read) => Some(read),
                Poll::Pending => None,
            })
        })
        .await?;
        Some(read.map(|()| buf.filled().to_vec()))
    }

    async fn reads(inflow: &mut Inflow, stream: &mut DuplexStream) -> String {
        let read = read(inflow, stream).await.expect("something to read");
        String::from_utf8(read.expect("no error")).unwrap()
    }

    fn length(n: &'static str) -> Part {
        let mut headers = HeaderMap::new();
        headers.insert("content-length", HeaderValue::from_static(n));
        Part::body(&headers)
    }

    const HEAD: &str = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\n";

    #[tokio::test]
    async fn requests_that_came_at_once_are_read_one_by_one_and_then_the_end() {
        let (mut client, mut stream) = duplex(1024);
        let mut inflow = Inflow::new();
        let sent = [HEAD, "abc", HEAD, "def"].concat();
        client.write_all(sent.as_bytes()).await.unwrap();
        drop(client);
        for body in ["abc", "def"] {
            inflow.await_head();
            assert_eq!(reads(&mut inflow, &mut stream).await, HEAD);
            inflow.await_body(length("3"));
            inflow.set_abort_on_close(false);
            assert!(!inflow.is_over());
            assert_eq!(reads(&mut inflow, &mut stream).await, body);
            assert!(inflow.is_over());
            assert!(
                read(&mut inflow, &mut stream).await.is_none(),
                "taken for gone"
            );
        }
        inflow.await_head();
        assert_eq!(reads(&mut inflow, &mut stream).await, "");
    }

    #[tokio::test]
    async fn a_client_that_sent_its_next_request_early_is_seen_leaving_and_the_request_is_kept() {
        let (mut client, mut stream) = duplex(1024);
        let mut inflow = Inflow::new();
        inflow.await_body(length("0"));
        client.write_all(HEAD.as_bytes()).await.unwrap();
        assert!(read(&mut inflow, &mut stream).await.is_none());
        drop(client);
        assert_eq!(reads(&mut inflow, &mut stream).await, "");
        inflow.await_head();
        assert_eq!(reads(&mut inflow, &mut stream).await, HEAD);
    }

    #[tokio::test]
    async fn blank_lines_are_not_the_beginning_of_a_request() {
        let (mut client, mut stream) = duplex(1024);
        let mut inflow = Inflow::new();
        client.write_all(b"\r\n\n").await.unwrap();
        assert_eq!(reads(&mut inflow, &mut stream).await, "\r\n\n");
        assert!(!inflow.has_begun());
        client.write_all(b"\r\nG").await.unwrap();
        assert_eq!(reads(&mut inflow, &mut stream).await, "\r\nG");
        assert!(inflow.has_begun());
        inflow.await_head();
        assert!(!inflow.has_begun());
        drop(client);
        assert_eq!(reads(&mut inflow, &mut stream).await, "");
        assert!(inflow.has_begun(), "nothing more will come");
    }

    #[tokio::test]
    async fn a_body_that_ends_early_is_seen_to_end() {
        let (mut client, mut stream) = duplex(1024);
        let mut inflow = Inflow::new();
        inflow.await_body(length("3"));
        inflow.set_abort_on_close(false);
        client.write_all(b"ab").await.unwrap();
        drop(client);
        assert_eq!(reads(&mut inflow, &mut stream).await, "ab");
        assert_eq!(reads(&mut inflow, &mut stream).await, "");
        assert!(!inflow.is_over());
    }

    #[tokio::test]
    async fn chunks_that_are_malformed_are_an_error() {
        let (mut client, mut stream) = duplex(1024);
        let mut inflow = Inflow::new();
        let mut headers = HeaderMap::new();
        headers.insert("transfer-encoding", HeaderValue::from_static("chunked"));
        inflow.await_body(Part::body(&headers));
        client.write_all(b"\r\n\r\n").await.unwrap();
        for _ in 0..2 {
            assert!(matches!(read(&mut inflow, &mut stream).await, Some(Err(_))));
        }
        assert!(!inflow.is_over());
    }
}
