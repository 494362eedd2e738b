//! A scripted engine: each request is answered by a test's script, byte by byte, on a thread of its own.

use super::client::Headers;
use super::{events, wait};
use bytes::{Buf, BytesMut};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The other side has closed the connection: the script ends here.
#[derive(Debug)]
pub struct Gone;

/// How a script ends: having played to its end, or because nobody is there any more.
pub type Played = Result<(), Gone>;

type Script = dyn Fn(&mut Call) -> Played + Send + Sync;

/// What became of a call, as its engine saw it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fate {
    /// When the engine found the connection closed.
    pub closed_at: Option<Instant>,
    /// The script holds on and waits to be left.
    pub holds: bool,
    /// When the script returned.
    pub ended_at: Option<Instant>,
    /// Content events made.
    pub made: usize,
}

/// One request as the engine saw it. Clones share the fate.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which POST of this engine it is, from 0.
    pub number: usize,
    /// Which connection of this engine it came by, from 0.
    pub connection: usize,
    pub method: String,
    pub path: String,
    pub headers: Headers,
    pub body: Arc<Vec<u8>>,
    fate: Arc<Mutex<Fate>>,
}

impl Seen {
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("the request's body is no JSON: {e}"))
    }

    pub fn fate(&self) -> Fate {
        *self.fate.lock().expect("the fate")
    }

    /// The moment the engine saw its connection closed; fails where it does not within a second.
    #[track_caller]
    pub fn closed(&self) -> Instant {
        self.closed_within(wait::seconds(1))
    }

    /// As `closed`, with its own limit.
    #[track_caller]
    pub fn closed_within(&self, limit: Duration) -> Instant {
        let what = format!("call {} to see its connection closed", self.number);
        wait::within(limit, what, || {
            self.fate()
                .closed_at
                .ok_or_else(|| format!("{:?}", self.fate()))
        })
    }

    fn note(&self, change: impl FnOnce(&mut Fate)) {
        change(&mut self.fate.lock().expect("the fate"));
    }
}

/// A request being answered.
pub struct Call<'a> {
    socket: &'a TcpStream,
    pub seen: Seen,
    /// The connection ends with this call.
    over: bool,
}

impl Call<'_> {
    #[track_caller]
    pub fn json(&self) -> Value {
        self.seen.json()
    }

    /// A text member of the request, by which a script tells its requests apart.
    pub fn member(&self, name: &str) -> String {
        self.json()[name].as_str().unwrap_or_default().to_owned()
    }

    pub fn is_stream(&self) -> bool {
        self.json()["stream"] == true
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> Played {
        self.socket.write_all(bytes).map_err(|_| self.mark_gone())
    }

    /// The head of an event stream in chunks.
    pub fn head(&mut self) -> Played {
        self.head_with(
            200,
            &[
                ("Content-Type", "text/event-stream"),
                ("Transfer-Encoding", "chunked"),
            ],
        )
    }

    pub fn head_with(&mut self, status: u16, headers: &[(&str, &str)]) -> Played {
        let lines: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        self.raw(format!("HTTP/1.1 {status} Scripted\r\n{lines}\r\n").as_bytes())
    }

    /// A whole answer with its length.
    pub fn answer(&mut self, status: u16, content_type: &str, body: &[u8]) -> Played {
        let length = body.len().to_string();
        self.head_with(
            status,
            &[("Content-Type", content_type), ("Content-Length", &length)],
        )?;
        self.raw(body)
    }

    /// Some bytes as one chunk, in one write.
    pub fn chunk(&mut self, bytes: &[u8]) -> Played {
        let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
        out.extend_from_slice(bytes);
        out.extend_from_slice(b"\r\n");
        self.raw(&out)
    }

    /// The last chunk.
    pub fn end(&mut self) -> Played {
        self.raw(b"0\r\n\r\n")
    }

    /// A chat event with text.
    pub fn delta(&mut self, text: &str) -> Played {
        self.chunk(&events::delta(text))?;
        self.seen.note(|fate| fate.made += 1);
        Ok(())
    }

    /// `[DONE]` and the last chunk.
    pub fn done(&mut self) -> Played {
        self.chunk(&events::done())?;
        self.end()
    }

    /// Lets time pass; ends the script where the connection is closed meanwhile.
    pub fn pause(&mut self, time: Duration) -> Played {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.watch(left)?;
        }
    }

    /// Waits to be left, for as long as any test may take.
    pub fn hold(&mut self) -> Played {
        self.seen.note(|fate| fate.holds = true);
        self.pause(wait::seconds(30))
    }

    /// Counts a token made for an answer that is not a stream.
    pub fn count_made(&self) {
        self.seen.note(|fate| fate.made += 1);
    }

    /// Ends the connection with a reset once the script returns.
    pub fn reset(&mut self) -> Played {
        self.over = true;
        socket2::SockRef::from(self.socket)
            .set_linger(Some(Duration::ZERO))
            .map_err(|_| Gone)
    }

    /// Ends the connection with a FIN, in the middle of whatever was being sent.
    pub fn fin(&mut self) -> Played {
        self.over = true;
        self.socket.shutdown(Shutdown::Write).map_err(|_| Gone)
    }

    /// Looks for the close for some time and takes no byte.
    fn watch(&mut self, time: Duration) -> Played {
        let time = time.max(Duration::from_millis(1));
        self.socket
            .set_read_timeout(Some(time))
            .expect("a read timeout");
        let mut byte = [0];
        match self.socket.peek(&mut byte) {
            Ok(0) => Err(self.mark_gone()),
            // bytes of a next request: the connection lives, and there is nothing to wait on
            Ok(_) => {
                std::thread::sleep(time);
                Ok(())
            }
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                Ok(())
            }
            Err(_) => Err(self.mark_gone()),
        }
    }

    fn mark_gone(&mut self) -> Gone {
        let now = Instant::now();
        self.seen
            .note(|fate| fate.closed_at = fate.closed_at.or(Some(now)));
        self.over = true;
        Gone
    }
}

struct Shared {
    script: Box<Script>,
    calls: Mutex<Vec<Seen>>,
    failures: Mutex<Vec<String>>,
    closing: AtomicBool,
    connections: AtomicUsize,
}

/// An engine that answers every POST by a script, and every GET with a list of one model.
pub struct Engine {
    addr: String,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Engine {
    pub fn scripted(script: impl Fn(&mut Call) -> Played + Send + Sync + 'static) -> Engine {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port for the engine");
        let addr = listener
            .local_addr()
            .expect("the engine's address")
            .to_string();
        let shared = Arc::new(Shared {
            script: Box::new(script),
            calls: Mutex::default(),
            failures: Mutex::default(),
            closing: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        });
        let acceptor = Some(std::thread::spawn({
            let shared = shared.clone();
            move || accept(&listener, &shared)
        }));
        Engine {
            addr,
            shared,
            acceptor,
        }
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// The POSTs so far, in the order they came.
    pub fn calls(&self) -> Vec<Seen> {
        self.shared.calls.lock().expect("the calls").clone()
    }

    /// The POST of that number, once it is here.
    #[track_caller]
    pub fn call(&self, number: usize) -> Seen {
        wait::until(format!("call {number} to reach the engine"), || {
            let calls = self.calls();
            calls
                .get(number)
                .cloned()
                .ok_or_else(|| format!("{} calls", calls.len()))
        })
    }

    /// The POST of that number, once its script holds on.
    #[track_caller]
    pub fn held(&self, number: usize) -> Seen {
        let seen = self.call(number);
        wait::until_true(format!("call {number} to hold"), || seen.fate().holds);
        seen
    }

    /// Takes no new connection from here on; the port is closed when this returns.
    pub fn close(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        // wakes the acceptor, which would wait for the next connection
        drop(TcpStream::connect(&self.addr));
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().ok();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
        let failures = std::mem::take(&mut *self.shared.failures.lock().expect("the failures"));
        // a mistake in a script must not look like the gateway's
        assert!(
            failures.is_empty() || std::thread::panicking(),
            "the engine's script failed: {failures:?}"
        );
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for socket in listener.incoming() {
        if shared.closing.load(Ordering::SeqCst) {
            return;
        }
        if let Ok(socket) = socket {
            let shared = shared.clone();
            let number = shared.connections.fetch_add(1, Ordering::SeqCst);
            std::thread::spawn(move || serve(&socket, &shared, number));
        }
    }
}

/// One connection: request after request, until either side ends it.
fn serve(socket: &TcpStream, shared: &Shared, connection: usize) {
    socket.set_nodelay(true).ok();
    let mut buffer = BytesMut::new();
    while let Some(mut seen) = read_request(socket, &mut buffer) {
        seen.connection = connection;
        let mut call = Call {
            socket,
            seen,
            over: false,
        };
        if call.seen.method == "GET" {
            let models = br#"{"object":"list","data":[{"id":"m","object":"model"}]}"#;
            if call.answer(200, "application/json", models).is_err() {
                return;
            }
            continue;
        }
        play(&mut call, shared);
        if call.over {
            return;
        }
    }
}

fn play(call: &mut Call, shared: &Shared) {
    {
        let mut calls = shared.calls.lock().expect("the calls");
        call.seen.number = calls.len();
        calls.push(call.seen.clone());
    }
    let played = catch_unwind(AssertUnwindSafe(|| (shared.script)(call)));
    let now = Instant::now();
    call.seen.note(|fate| fate.ended_at = Some(now));
    match played {
        Ok(Ok(())) => {}
        Ok(Err(Gone)) => call.over = true,
        Err(_) => {
            call.over = true;
            let failure = format!("call {} panicked", call.seen.number);
            shared.failures.lock().expect("the failures").push(failure);
        }
    }
}

/// The next request of a connection; nothing where it ends first.
fn read_request(socket: &TcpStream, buffer: &mut BytesMut) -> Option<Seen> {
    socket.set_read_timeout(None).ok()?;
    let head_length = loop {
        match events::find(buffer, b"\r\n\r\n") {
            Some(at) => break at,
            None => fill(socket, buffer)?,
        }
    };
    let head = String::from_utf8_lossy(&buffer.split_to(head_length)).into_owned();
    buffer.advance(4);
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ').map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let headers = Headers::parse(lines);
    if headers.get("expect").is_some() {
        (&mut &*socket)
            .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
            .ok()?;
    }
    let body = Arc::new(read_body(socket, buffer, &headers)?);
    Some(Seen {
        number: 0,
        connection: 0,
        method,
        path,
        headers,
        body,
        fate: Arc::default(),
    })
}

fn read_body(socket: &TcpStream, buffer: &mut BytesMut, headers: &Headers) -> Option<Vec<u8>> {
    if headers.get("transfer-encoding").is_none() {
        let length = headers
            .get("content-length")
            .map_or(Some(0), |v| v.parse().ok())?;
        return take(socket, buffer, length);
    }
    let mut body = Vec::new();
    loop {
        let at = loop {
            match events::find(buffer, b"\r\n") {
                Some(at) => break at,
                None => fill(socket, buffer)?,
            }
        };
        let line = take(socket, buffer, at + 2)?;
        let size = usize::from_str_radix(std::str::from_utf8(&line).ok()?.trim(), 16).ok()?;
        body.extend_from_slice(&take(socket, buffer, size)?);
        take(socket, buffer, 2)?;
        if size == 0 {
            return Some(body);
        }
    }
}

fn take(socket: &TcpStream, buffer: &mut BytesMut, length: usize) -> Option<Vec<u8>> {
    while buffer.len() < length {
        fill(socket, buffer)?;
    }
    Some(buffer.split_to(length).to_vec())
}

fn fill(mut socket: &TcpStream, buffer: &mut BytesMut) -> Option<()> {
    let mut piece = [0; 65536];
    let n = socket.read(&mut piece).ok().filter(|n| *n > 0)?;
    buffer.extend_from_slice(&piece[..n]);
    Some(())
}
