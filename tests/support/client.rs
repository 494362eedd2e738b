//! A raw HTTP/1.1 client: one request on its own connection, its answer read as it arrives.
//!
//! It keeps every byte of the body and the moment of the last read, and leaves in every way a client can.

use super::ask::Ask;
use super::{events, wait};
use bytes::{Buf, BytesMut};
use serde_json::Value;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// An answer read to its proper end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Headers,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("status {} and no JSON ({e}): {}", self.status, self.text()))
    }

    /// The error object of the contract, in OpenAI's shape with all its members.
    #[track_caller]
    pub fn error(&self) -> Value {
        let error = self.json()["error"].clone();
        for member in ["message", "type", "param", "code"] {
            assert!(
                error.get(member).is_some(),
                "status {}, the error lacks {member:?}: {}",
                self.status,
                self.text()
            );
        }
        error
    }

    /// Fails unless this is a refusal with that status and code and all that every refusal carries.
    #[track_caller]
    pub fn must_refuse(&self, status: u16, code: &str) {
        self.must_refuse_as_such(status, code);
        if matches!(status, 429 | 503) {
            let number = |name: &str| self.headers.get(name).and_then(|v| v.parse::<u64>().ok());
            assert!(
                number("retry-after").is_some_and(|s| s >= 1),
                "{code}: Retry-After: {:?}",
                self.headers
            );
            assert!(
                number("retry-after-ms").is_some(),
                "{code}: retry-after-ms: {:?}",
                self.headers
            );
        }
    }

    /// As `must_refuse`, for what no waiting mends: no word of when to come again, and to the SDKs not to.
    #[track_caller]
    pub fn must_refuse_for_good(&self, status: u16, code: &str) {
        self.must_refuse_as_such(status, code);
        assert_eq!(
            self.headers.count("retry-after"),
            0,
            "{code}: {:?}",
            self.headers
        );
        assert_eq!(
            self.headers.count("retry-after-ms"),
            0,
            "{code}: {:?}",
            self.headers
        );
        assert_eq!(
            self.headers.get("x-should-retry"),
            Some("false"),
            "{code}: {:?}",
            self.headers
        );
    }

    #[track_caller]
    fn must_refuse_as_such(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "expected {code}: {}", self.text());
        assert_eq!(self.error()["code"], code, "{}", self.text());
        let content_type = self.headers.get("content-type").unwrap_or_default();
        assert!(
            content_type.starts_with("application/json"),
            "{code}: Content-Type {content_type:?}"
        );
        assert!(
            self.headers.get("x-request-id").is_some(),
            "{code} without X-Request-Id: {:?}",
            self.headers
        );
    }
}

#[derive(Clone, Debug, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The first value of a name, however it is spelled.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
    }

    pub fn count(&self, name: &str) -> usize {
        self.0
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .count()
    }

    /// The lines of a head after its first.
    pub fn parse<'a>(lines: impl Iterator<Item = &'a str>) -> Headers {
        let split = |line: &'a str| {
            line.split_once(':')
                .map(|(n, v)| (n.trim().to_owned(), v.trim().to_owned()))
        };
        Headers(lines.filter_map(split).collect())
    }
}

/// Why an answer could not be read to its proper end.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// Nothing more came in time.
    Silent,
    /// The connection ended before the body did.
    Cut,
    /// The connection was reset, or failed otherwise.
    Failed(ErrorKind),
    /// What came is not HTTP.
    Malformed(String),
}

#[derive(Debug)]
enum Framing {
    Chunked,
    Length(u64),
    UntilClose,
}

/// One request and its answer.
pub struct Stream {
    socket: TcpStream,
    head: Option<(u16, Headers)>,
    framing: Framing,
    /// Read from the socket, not yet understood.
    buffer: BytesMut,
    /// The body so far, and how much of it was given out as events.
    body: Vec<u8>,
    position: usize,
    complete: bool,
    patience: Duration,
    /// When the last bytes came.
    pub read_at: Instant,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.head.as_ref().map(|(status, _)| *status);
        let tail = &self.body[self.body.len().saturating_sub(200)..];
        write!(
            f,
            "status {status:?}, body of {} bytes ends {:?}",
            self.body.len(),
            String::from_utf8_lossy(tail)
        )
    }
}

impl Stream {
    /// Connects and sends nothing yet.
    #[track_caller]
    pub fn connect(addr: &str) -> Stream {
        let socket =
            TcpStream::connect(addr).unwrap_or_else(|e| panic!("connecting to {addr}: {e}"));
        Stream::on(socket)
    }

    /// Connects and sends one request.
    #[track_caller]
    pub fn send(addr: &str, ask: &Ask) -> Stream {
        let mut stream = Stream::connect(addr);
        stream.write(&ask.bytes());
        stream
    }

    /// A client on a connection that is there.
    pub fn on(socket: TcpStream) -> Stream {
        socket.set_nodelay(true).expect("TCP_NODELAY");
        Stream {
            socket,
            head: None,
            framing: Framing::UntilClose,
            buffer: BytesMut::new(),
            body: Vec::new(),
            position: 0,
            complete: false,
            patience: wait::PATIENCE,
            read_at: Instant::now(),
        }
    }

    /// How long each call may take from here on.
    pub fn patience(mut self, patience: Duration) -> Stream {
        self.patience = patience;
        self
    }

    /// Bytes as they are, whatever they mean.
    #[track_caller]
    pub fn write(&mut self, bytes: &[u8]) {
        self.socket
            .write_all(bytes)
            .unwrap_or_else(|e| panic!("writing {} bytes: {e}", bytes.len()));
    }

    /// As `write`, where the other side may have closed already.
    pub fn try_write(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        self.socket
            .write_all(bytes)
            .map_err(|e| Broken::Failed(e.kind()))
    }

    /// The status, once the head is here.
    #[track_caller]
    pub fn status(&mut self) -> u16 {
        self.must(|s, end| s.read_head(end));
        self.head.as_ref().map_or(0, |(status, _)| *status)
    }

    /// An interim answer, `100 Continue` and its like, as text.
    #[track_caller]
    pub fn interim(&mut self) -> String {
        self.must(|s, end| s.head_lines(end)).join("\n")
    }

    /// The body so far.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// The next event's text without its blank line, or nothing at the proper end of the body.
    #[track_caller]
    pub fn event(&mut self) -> Option<String> {
        self.must(Self::next_event)
    }

    /// As `event`, where the stream may break.
    pub fn try_event(&mut self) -> Result<Option<String>, Broken> {
        let end = Instant::now() + self.patience;
        self.next_event(end)
    }

    /// The next text of a chat, past everything else; nothing at the end.
    #[track_caller]
    pub fn content(&mut self) -> Option<String> {
        self.must(Self::next_content)
    }

    /// As `content`, where the stream may break.
    pub fn try_content(&mut self) -> Result<Option<String>, Broken> {
        let end = Instant::now() + self.patience;
        self.next_content(end)
    }

    /// Fails unless the next text of the chat is this one.
    #[track_caller]
    pub fn says(&mut self, text: &str) {
        let got = self.content();
        assert_eq!(got.as_deref(), Some(text), "{self:?}");
    }

    /// The whole body, read to its proper end.
    #[track_caller]
    pub fn rest(&mut self) -> Vec<u8> {
        self.must(Self::read_all);
        self.body.clone()
    }

    /// As `rest`, where the stream may break; what came before stays in `body`.
    pub fn try_rest(&mut self) -> Result<Vec<u8>, Broken> {
        let end = Instant::now() + self.patience;
        self.read_all(end)?;
        Ok(self.body.clone())
    }

    /// Reads until the body so far is as wanted; fails where it ends before.
    #[track_caller]
    pub fn read_until(&mut self, wanted: impl Fn(&[u8]) -> bool) {
        self.status();
        while !wanted(&self.body) {
            let more = self.must(Self::read_more);
            assert!(more, "the answer ended: {self:?}");
        }
    }

    /// Reads one more piece of the body, whatever it is; false at its proper end.
    pub fn try_more(&mut self) -> Result<bool, Broken> {
        let end = Instant::now() + self.patience;
        self.read_more(end)
    }

    /// The whole answer.
    #[track_caller]
    pub fn answer(mut self) -> Answer {
        self.next_answer()
    }

    /// The whole answer; the connection stays for the next one.
    #[track_caller]
    pub fn next_answer(&mut self) -> Answer {
        self.rest();
        self.take_answer()
    }

    /// As `next_answer`, where it may not come.
    pub fn try_answer(&mut self) -> Result<Answer, Broken> {
        self.try_rest()?;
        Ok(self.take_answer())
    }

    /// An answer that has no body, whatever its head says of one: what HEAD gets.
    #[track_caller]
    pub fn next_head(&mut self) -> Answer {
        self.status();
        self.take_answer()
    }

    /// What was read of an answer; the next bytes are the next one's.
    fn take_answer(&mut self) -> Answer {
        let (status, headers) = self.head.take().unwrap_or_default();
        self.position = 0;
        self.complete = false;
        Answer {
            status,
            headers,
            body: std::mem::take(&mut self.body),
        }
    }

    /// Whether an answer, or the connection's end, comes within a time. Nothing of it is taken.
    pub fn has_answer(&mut self, time: Duration) -> bool {
        self.socket
            .set_read_timeout(Some(time))
            .expect("a read timeout");
        let peeked = self.socket.peek(&mut [0]);
        peeked.map_or_else(
            |e| !matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
            |_| true,
        )
    }

    /// All bytes up to the connection's end, as they are.
    pub fn read_to_close(&mut self) -> Result<Vec<u8>, Broken> {
        let end = Instant::now() + self.patience;
        loop {
            match self.fill(end) {
                Err(Broken::Cut) => return Ok(self.buffer.split().to_vec()),
                other => other?,
            }
        }
    }

    /// Leaves as a client that closes: a FIN.
    pub fn close(self) {
        self.socket.shutdown(Shutdown::Both).ok();
    }

    /// Leaves as a client that dies: an RST.
    pub fn reset(self) {
        socket2::SockRef::from(&self.socket)
            .set_linger(Some(Duration::ZERO))
            .expect("SO_LINGER");
    }

    /// The connection itself, for whoever goes on with it.
    pub fn into_socket(self) -> TcpStream {
        self.socket
    }

    /// Ends its own side and goes on reading.
    pub fn half_close(&self) {
        self.socket.shutdown(Shutdown::Write).expect("shutdown");
    }

    #[track_caller]
    fn must<T>(&mut self, step: impl FnOnce(&mut Stream, Instant) -> Result<T, Broken>) -> T {
        let end = Instant::now() + self.patience;
        match step(self, end) {
            Ok(value) => value,
            Err(broken) => panic!("the answer broke: {broken:?}; {self:?}"),
        }
    }

    fn next_event(&mut self, end: Instant) -> Result<Option<String>, Broken> {
        loop {
            if let Some((length, after)) = events::first_block(&self.body[self.position..]) {
                let block = &self.body[self.position..self.position + length];
                let text = String::from_utf8_lossy(block).into_owned();
                self.position += after;
                return Ok(Some(text));
            }
            if !self.read_more(end)? {
                return Ok(None);
            }
        }
    }

    fn next_content(&mut self, end: Instant) -> Result<Option<String>, Broken> {
        while let Some(event) = self.next_event(end)? {
            if let Some(text) = events::content_of(&event) {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    fn read_all(&mut self, end: Instant) -> Result<(), Broken> {
        while self.read_more(end)? {}
        Ok(())
    }

    /// One more piece of the body; false at its proper end.
    fn read_more(&mut self, end: Instant) -> Result<bool, Broken> {
        self.read_head(end)?;
        if self.complete {
            return Ok(false);
        }
        match self.framing {
            Framing::Chunked => self.read_chunk(end),
            Framing::Length(left) => self.read_sized(left, end),
            Framing::UntilClose => self.read_until_close(end),
        }
    }

    fn read_chunk(&mut self, end: Instant) -> Result<bool, Broken> {
        let line = self.line(end)?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(digits, 16)
            .map_err(|_| Broken::Malformed(format!("chunk size {line:?}")))?;
        while self.buffer.len() < size + 2 {
            self.fill(end)?;
        }
        self.body.extend_from_slice(&self.buffer[..size]);
        let tail = self.buffer[size..size + 2].to_vec();
        self.buffer.advance(size + 2);
        if tail != b"\r\n" {
            return Err(Broken::Malformed(format!(
                "a chunk of {size} bytes ends with {tail:?}"
            )));
        }
        self.complete = size == 0;
        Ok(!self.complete)
    }

    fn read_sized(&mut self, left: u64, end: Instant) -> Result<bool, Broken> {
        if left == 0 {
            self.complete = true;
            return Ok(false);
        }
        if self.buffer.is_empty() {
            self.fill(end)?;
        }
        let piece = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(self.buffer.len());
        self.body.extend_from_slice(&self.buffer[..piece]);
        self.buffer.advance(piece);
        self.framing = Framing::Length(left - piece as u64);
        Ok(true)
    }

    fn read_until_close(&mut self, end: Instant) -> Result<bool, Broken> {
        if self.buffer.is_empty() {
            match self.fill(end) {
                Err(Broken::Cut) => {
                    self.complete = true;
                    return Ok(false);
                }
                other => other?,
            }
        }
        self.body.extend_from_slice(&self.buffer);
        self.buffer.clear();
        Ok(true)
    }

    /// Reads the head of the answer, past interim ones.
    fn read_head(&mut self, end: Instant) -> Result<(), Broken> {
        while self.head.is_none() {
            let lines = self.head_lines(end)?;
            let first = lines.first().cloned().unwrap_or_default();
            let status = first.split(' ').nth(1).and_then(|s| s.parse::<u16>().ok());
            let status =
                status.ok_or_else(|| Broken::Malformed(format!("status line {first:?}")))?;
            if status >= 200 {
                self.take_head(
                    status,
                    Headers::parse(lines.iter().skip(1).map(String::as_str)),
                );
            }
        }
        Ok(())
    }

    fn head_lines(&mut self, end: Instant) -> Result<Vec<String>, Broken> {
        let mut lines = Vec::new();
        loop {
            let line = self.line(end)?;
            if line.is_empty() {
                return Ok(lines);
            }
            lines.push(line);
        }
    }

    fn take_head(&mut self, status: u16, headers: Headers) {
        let chunked = headers
            .get("transfer-encoding")
            .is_some_and(|v| v.eq_ignore_ascii_case("chunked"));
        let length = headers.get("content-length").and_then(|v| v.parse().ok());
        self.framing = match (chunked, length) {
            (true, _) => Framing::Chunked,
            (false, Some(length)) => Framing::Length(length),
            (false, None) if matches!(status, 204 | 304) => Framing::Length(0),
            (false, None) => Framing::UntilClose,
        };
        self.head = Some((status, headers));
    }

    /// A line without its CRLF.
    fn line(&mut self, end: Instant) -> Result<String, Broken> {
        loop {
            if let Some(at) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.buffer.split_to(at);
                self.buffer.advance(2);
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
            self.fill(end)?;
        }
    }

    /// Reads what the socket has; at the connection's end that is `Cut`.
    fn fill(&mut self, end: Instant) -> Result<(), Broken> {
        let left = end
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        self.socket
            .set_read_timeout(Some(left))
            .expect("a read timeout");
        let mut piece = [0; 65536];
        match self.socket.read(&mut piece) {
            Ok(0) => Err(Broken::Cut),
            Ok(n) => {
                self.read_at = Instant::now();
                self.buffer.extend_from_slice(&piece[..n]);
                Ok(())
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Broken::Silent)
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(()),
            Err(e) => Err(Broken::Failed(e.kind())),
        }
    }
}
