//! Writes answers onto a connection: documents, and event streams with a chunk and a write per event.

use ::http::StatusCode;
use std::io;
use tokio::net::TcpStream;

pub const JSON: &str = "application/json";
pub const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The writing half of one answer.
pub struct Wire<'a> {
    stream: &'a TcpStream,
    manner: Manner<'a>,
    frame: Vec<u8>,
}

/// What the request wants of its answer's form.
#[derive(Clone, Copy)]
pub struct Manner<'a> {
    pub request_id: &'a str,
    /// Without it no chunks: an event stream then lasts until the close.
    pub http11: bool,
    pub keep_alive: bool,
    /// Bytes of the body per write.
    pub split: Option<usize>,
}

/// How long the body is said to be.
enum Length {
    Known(usize),
    Open,
}

impl<'a> Wire<'a> {
    pub fn new(stream: &'a TcpStream, manner: Manner<'a>) -> Wire<'a> {
        Wire {
            stream,
            manner,
            frame: Vec::new(),
        }
    }

    /// A whole answer: one write, unless it is split.
    pub async fn document(&mut self, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
        self.part_of_document(status, kind, body.len(), body).await
    }

    /// Half of a JSON document that is announced as whole.
    pub async fn half_document(&mut self, body: &[u8]) -> io::Result<()> {
        let (half, _) = body.split_at(body.len() / 2);
        self.part_of_document(200, JSON, body.len(), half).await
    }

    async fn part_of_document(
        &mut self,
        status: u16,
        kind: &str,
        length: usize,
        body: &[u8],
    ) -> io::Result<()> {
        let head = self.head(status, kind, Length::Known(length));
        if self.manner.split.is_some() {
            write_all(self.stream, head.as_bytes()).await?;
            return self.write_body(body).await;
        }
        write_all(self.stream, &[head.as_bytes(), body].concat()).await
    }

    /// The head of an event stream.
    pub async fn open_stream(&mut self) -> io::Result<()> {
        let head = self.head(200, "text/event-stream; charset=utf-8", Length::Open);
        write_all(self.stream, head.as_bytes()).await
    }

    /// One event, or a piece of one.
    pub async fn event(&mut self, event: &[u8]) -> io::Result<()> {
        if !self.manner.http11 {
            return self.write_body(event).await;
        }
        let mut frame = std::mem::take(&mut self.frame);
        frame.clear();
        frame.extend_from_slice(format!("{:x}\r\n", event.len()).as_bytes());
        frame.extend_from_slice(event);
        frame.extend_from_slice(b"\r\n");
        let written = self.write_body(&frame).await;
        self.frame = frame;
        written
    }

    /// The last chunk.
    pub async fn end_stream(&mut self) -> io::Result<()> {
        match self.manner.http11 {
            true => self.write_body(b"0\r\n\r\n").await,
            false => Ok(()),
        }
    }

    async fn write_body(&self, bytes: &[u8]) -> io::Result<()> {
        let Some(len) = self.manner.split else {
            return write_all(self.stream, bytes).await;
        };
        for piece in bytes.chunks(len.max(1)) {
            write_all(self.stream, piece).await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn head(&self, status: u16, kind: &str, length: Length) -> String {
        let known = StatusCode::from_u16(status).ok();
        let reason = known.and_then(|s| s.canonical_reason()).unwrap_or("Error");
        let id = self.manner.request_id;
        let mut head =
            format!("HTTP/1.1 {status} {reason}\r\ncontent-type: {kind}\r\nx-request-id: {id}\r\n");
        match length {
            Length::Known(n) => head.push_str(&format!("content-length: {n}\r\n")),
            Length::Open if self.manner.http11 => {
                head.push_str("transfer-encoding: chunked\r\ncache-control: no-cache\r\n");
            }
            Length::Open => head.push_str("cache-control: no-cache\r\n"),
        }
        if status == 429 {
            head.push_str("retry-after: 1\r\n");
        }
        if !self.manner.keep_alive {
            head.push_str("connection: close\r\n");
        }
        head.push_str("\r\n");
        head
    }
}

/// Writes all bytes, in one system call where the socket takes them.
pub async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
