//! The simulator through the wire: a raw client against a real listener. The checks are in the folder.

mod answers;
mod edge;
mod faults;
mod leaving;

use super::{Notice, Options, serve};
use crate::clock;
use serde_json::{Value, json};
use socket2::SockRef;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(10);
const STREAMED: [&str; 4] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
];

struct Sim {
    addr: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn quick() -> Options {
    Options {
        prefill: Duration::from_millis(1),
        prefill_per_token: Duration::ZERO,
        decode: Duration::from_millis(1),
        ..Options::default()
    }
}

/// An engine that never gets past its prefill.
fn stuck() -> Options {
    Options {
        prefill: Duration::from_secs(3600),
        ..quick()
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the simulator under test runs beside the test"
)]
async fn start(options: Options) -> Sim {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let addr = listener.local_addr().expect("its address");
    let task = tokio::spawn(serve(listener, options));
    Sim { addr, task }
}

/// An answer read to its end.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    /// The body without its chunks.
    body: Vec<u8>,
    /// Whether the body came to its announced end.
    whole: bool,
    /// How the connection broke off, where it did.
    broke: Option<ErrorKind>,
}

impl Answer {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// The data of the events of a stream with line feeds.
    fn events(&self) -> Vec<Value> {
        let data = self.text().lines().filter_map(|l| l.strip_prefix("data: "));
        data.filter(|d| *d != "[DONE]")
            .map(|d| serde_json::from_str(d).expect(d))
            .collect()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.head.lines().find_map(|l| l.strip_prefix(&prefix))
    }
}

struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    reads: usize,
}

impl Client {
    async fn connect(sim: &Sim) -> Client {
        let stream = TcpStream::connect(sim.addr).await.expect("connected");
        Client {
            stream,
            buffer: Vec::new(),
            reads: 0,
        }
    }

    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.expect("sent");
    }

    async fn post(&mut self, path: &str, faults: &str, body: &Value) {
        let body = body.to_string();
        let length = body.len();
        self.send(format!(
            "POST {path} HTTP/1.1\r\nHost: sim\r\nX-Sim: {faults}\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    /// Reads once more; `Ok(0)` at the end.
    async fn more(&mut self) -> io::Result<usize> {
        self.reads += 1;
        let read = self.stream.read_buf(&mut self.buffer);
        tokio::time::timeout(PATIENCE, read)
            .await
            .unwrap_or_else(|_| panic!("nothing more came"))
    }

    /// Reads until the text has come.
    async fn until(&mut self, text: &str) {
        while !contains(&self.buffer, text) {
            let n = self.more().await.expect("an open connection");
            assert!(n > 0, "closed before {text:?}: {}", self.shown());
        }
    }

    fn shown(&self) -> String {
        String::from_utf8_lossy(&self.buffer).into_owned()
    }

    /// Reads one answer to its announced end, or to where the connection ends.
    async fn answer(&mut self) -> Answer {
        self.until("\r\n\r\n").await;
        let at = find(&self.buffer, b"\r\n\r\n").expect("a head") + 4;
        let rest = self.buffer.split_off(at);
        let head = String::from_utf8(std::mem::replace(&mut self.buffer, rest)).expect("a head");
        let status = head[9..12].parse().expect("a status");
        let mut broke = None;
        loop {
            let ended = broke.is_some();
            if let Some((body, length)) = body(&head, &self.buffer, ended) {
                self.buffer.drain(..length);
                return Answer {
                    status,
                    head,
                    body,
                    whole: true,
                    broke: None,
                };
            }
            if ended {
                let body = chunks(&self.buffer).0;
                let chunked = head.contains("chunked");
                let body = if chunked { body } else { self.buffer.clone() };
                return Answer {
                    status,
                    head,
                    body,
                    whole: false,
                    broke,
                };
            }
            match self.more().await {
                Ok(0) => broke = Some(ErrorKind::UnexpectedEof),
                Ok(_) => {}
                Err(e) => broke = Some(e.kind()),
            }
        }
    }

    async fn ends(&mut self) -> bool {
        loop {
            match self.more().await {
                Ok(0) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    fn reset(self) {
        SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .expect("linger set");
    }
}

/// The whole body and its length on the wire, or nothing where more is to come.
fn body(head: &str, bytes: &[u8], ended: bool) -> Option<(Vec<u8>, usize)> {
    if head.contains("transfer-encoding: chunked") {
        let (body, length) = chunks(bytes);
        return length.map(|length| (body, length));
    }
    match head
        .lines()
        .find_map(|l| l.strip_prefix("content-length: "))
    {
        Some(length) => {
            let length: usize = length.parse().expect("a length");
            bytes.get(..length).map(|body| (body.to_vec(), length))
        }
        None => ended.then(|| (bytes.to_vec(), bytes.len())),
    }
}

/// What the whole chunks hold, and their length where the last has come.
fn chunks(bytes: &[u8]) -> (Vec<u8>, Option<usize>) {
    let (mut body, mut at) = (Vec::new(), 0);
    while let Some(line) = find(&bytes[at..], b"\r\n") {
        let size = std::str::from_utf8(&bytes[at..at + line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        let content = at + line + 2;
        let Some(piece) = bytes.get(content..content + size + 2) else {
            break;
        };
        assert_eq!(&piece[size..], b"\r\n");
        body.extend_from_slice(&piece[..size]);
        at = content + size + 2;
        if size == 0 {
            return (body, Some(at));
        }
    }
    (body, None)
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|w| w == what)
}

fn contains(bytes: &[u8], text: &str) -> bool {
    text.is_empty() || find(bytes, text.as_bytes()).is_some()
}

/// A request that each of the APIs understands.
fn ask(tokens: u32, stream: bool) -> Value {
    json!({
        "model": "m", "messages": [{"role": "user", "content": "hello there"}], "prompt": "hello there",
        "input": "hello there", "max_tokens": tokens, "max_output_tokens": tokens, "stream": stream,
    })
}

async fn post(sim: &Sim, path: &str, faults: &str, body: &Value) -> Answer {
    let mut client = Client::connect(sim).await;
    client.post(path, faults, body).await;
    client.answer().await
}

async fn get(sim: &Sim, path: &str) -> Answer {
    let mut client = Client::connect(sim).await;
    client
        .send(format!("GET {path} HTTP/1.1\r\nHost: sim\r\n\r\n"))
        .await;
    client.answer().await
}

async fn metric(sim: &Sim, name: &str) -> u64 {
    let text = get(sim, "/metrics").await;
    let prefix = format!("vllm:{name}{{");
    let lines = text.text().lines().filter(|l| l.starts_with(&prefix));
    let values: Vec<u64> = lines
        .map(|l| {
            l.rsplit(' ')
                .next()
                .expect("a value")
                .parse()
                .expect("a number")
        })
        .collect();
    assert!(!values.is_empty(), "no metric {name}");
    values.iter().sum()
}

async fn until_metric(sim: &Sim, name: &str, value: u64) {
    let started = clock::instant();
    let mut now = metric(sim, name).await;
    while now != value {
        assert!(
            started.elapsed() < PATIENCE,
            "{name} is {now}, awaited {value}"
        );
        tokio::task::yield_now().await;
        now = metric(sim, name).await;
    }
}

/// The texts of the content events of a stream.
fn tokens_of(answer: &Answer) -> Vec<String> {
    let text = |event: &Value| {
        let choice = &event["choices"][0];
        let places = [
            &choice["delta"]["content"],
            &choice["text"],
            &event["delta"]["text"],
            &event["delta"],
        ];
        places.iter().find_map(|t| t.as_str()).map(str::to_owned)
    };
    answer
        .events()
        .iter()
        .filter_map(text)
        .filter(|t| !t.is_empty())
        .collect()
}

fn first_tokens(n: usize) -> Vec<String> {
    (0..n).map(|i| format!("t{i} ")).collect()
}
