//! An engine that sends every stream the same event at the same pace, the streams evenly apart.

use crate::samples;
use crate::support::events;
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The pace of each stream.
pub const GAP: Duration = Duration::from_millis(20);

/// The streams are written to in so many groups, one after another within a gap.
const GROUPS: u32 = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An event stream.
    Events,
    /// The same bytes as the body of a refusal.
    Unread,
}

impl Kind {
    /// The model whose requests are answered so.
    pub fn model(self) -> &'static str {
        match self {
            Kind::Events => "m",
            Kind::Unread => "unread",
        }
    }

    /// The first line of the answer.
    pub fn status_line(self) -> &'static str {
        match self {
            Kind::Events => "HTTP/1.1 200 OK",
            Kind::Unread => "HTTP/1.1 400 Bad Request",
        }
    }
}

/// Lives as long as the program.
pub struct Engine {
    addr: String,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Engine {
    pub fn start(kind: Kind) -> Engine {
        let listener = listen().expect("a port for the engine");
        let addr = listener
            .local_addr()
            .expect("the engine's address")
            .to_string();
        let streams = Arc::new(Mutex::new(Vec::new()));
        std::thread::spawn({
            let streams = streams.clone();
            move || tick(&streams)
        });
        std::thread::spawn({
            let streams = streams.clone();
            move || accept(&listener, kind, &streams)
        });
        Engine { addr, streams }
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// How many streams run.
    pub fn running(&self) -> usize {
        self.streams.lock().expect("the streams").len()
    }

    /// Ends every stream as the protocol says.
    pub fn end_streams(&self) {
        let last = [chunk(&events::done()), b"0\r\n\r\n".to_vec()].concat();
        for mut stream in self.streams.lock().expect("the streams").drain(..) {
            stream.write_all(&last).ok();
        }
    }
}

/// A listener on which a whole crowd may wait: with the standard library's short queue some would be turned away.
fn listen() -> std::io::Result<TcpListener> {
    const QUEUE: i32 = 4096;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
    socket.listen(QUEUE)?;
    Ok(socket.into())
}

fn accept(listener: &TcpListener, kind: Kind, streams: &Mutex<Vec<TcpStream>>) {
    let head = format!(
        "{}\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        kind.status_line()
    );
    for mut socket in listener.incoming().flatten() {
        socket.set_nodelay(true).expect("TCP_NODELAY");
        if read_request(&mut socket).is_some() && socket.write_all(head.as_bytes()).is_ok() {
            streams.lock().expect("the streams").push(socket);
        }
    }
}

/// Reads one request with a length; nothing where the connection ends first.
fn read_request(socket: &mut TcpStream) -> Option<()> {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let n = socket.read(&mut piece).ok().filter(|n| *n > 0)?;
        request.extend_from_slice(&piece[..n]);
        let Some(head) = events::find(&request, b"\r\n\r\n") else {
            continue;
        };
        let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| {
            line.strip_prefix("content-length:")?
                .trim()
                .parse::<usize>()
                .ok()
        });
        if request.len() >= head + 4 + length.unwrap_or(0) {
            return Some(());
        }
    }
}

fn tick(streams: &Mutex<Vec<TcpStream>>) {
    let event = chunk(samples::chat().as_bytes());
    let step = GAP / GROUPS;
    let mut due = Instant::now();
    for group in (0..GROUPS as usize).cycle() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        for stream in streams
            .lock()
            .expect("the streams")
            .iter_mut()
            .skip(group)
            .step_by(GROUPS as usize)
        {
            // a relay that has gone is found by who counts the events
            stream.write_all(&event).ok();
        }
        due += step;
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}
