//! Three relays that are broken on purpose: the measurements must catch what each does wrong.
//!
//! Each takes one request a connection, hands it to the engine as it is and passes the answer back, but for its fault.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Reads the whole answer before it writes the first byte.
    BuffersAll,
    /// Writes when 4 KiB have come together, and at the end.
    NeverFlushes,
    /// Does not mind that its client has left: it reads the engine to the end.
    Deaf,
}

const LUMP: usize = 4096;

/// Starts a relay before an engine; gives its address. It lives as long as the program.
pub fn start(fault: Fault, engine: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port for the relay");
    let addr = listener
        .local_addr()
        .expect("the relay's address")
        .to_string();
    let engine = engine.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let engine = engine.clone();
            std::thread::spawn(move || relay(fault, &client, &engine));
        }
    });
    addr
}

/// One request. An error on either side ends it, as it would end any relay's.
fn relay(fault: Fault, client: &TcpStream, engine: &str) -> Option<()> {
    let request = read_request(client)?;
    let mut upstream = TcpStream::connect(engine).ok()?;
    for socket in [client, &upstream] {
        socket.set_nodelay(true).ok()?;
    }
    upstream.write_all(&request).ok()?;
    let passed = match fault {
        Fault::BuffersAll => pass_whole(&mut upstream, client),
        Fault::NeverFlushes => pass_in_lumps(&mut upstream, client),
        Fault::Deaf => pass_deaf(&mut upstream, client),
    };
    client.shutdown(Shutdown::Both).ok();
    passed
}

/// The bytes of one request whose head names its length.
fn read_request(mut client: &TcpStream) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    loop {
        if let Some(length) = length_of(&request).filter(|length| request.len() >= *length) {
            request.truncate(length);
            return Some(request);
        }
        let mut piece = [0; 16384];
        let n = client.read(&mut piece).ok().filter(|n| *n > 0)?;
        request.extend_from_slice(&piece[..n]);
    }
}

/// How long the whole request is, once its head is there.
fn length_of(request: &[u8]) -> Option<usize> {
    let end = request
        .windows(4)
        .position(|window| window == b"\r\n\r\n")?
        + 4;
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    let line = head.lines().find_map(|line| {
        line.strip_prefix("content-length:")?
            .trim()
            .parse::<usize>()
            .ok()
    });
    Some(end + line.unwrap_or(0))
}

/// Reads pieces of the answer until its last chunk or the engine's close.
fn each_piece(upstream: &mut TcpStream, mut take: impl FnMut(&[u8]) -> Option<()>) -> Option<()> {
    let mut tail = Vec::new();
    let mut piece = [0; 16384];
    loop {
        let n = upstream.read(&mut piece).ok()?;
        if n == 0 {
            return Some(());
        }
        take(&piece[..n])?;
        tail.extend_from_slice(&piece[..n]);
        if tail.ends_with(b"\r\n0\r\n\r\n") {
            return Some(());
        }
        tail.drain(..tail.len().saturating_sub(16));
    }
}

fn pass_whole(upstream: &mut TcpStream, mut client: &TcpStream) -> Option<()> {
    let mut whole = Vec::new();
    each_piece(upstream, |piece| {
        whole.extend_from_slice(piece);
        Some(())
    })?;
    client.write_all(&whole).ok()
}

fn pass_in_lumps(upstream: &mut TcpStream, mut client: &TcpStream) -> Option<()> {
    let mut lump = Vec::new();
    each_piece(upstream, |piece| {
        lump.extend_from_slice(piece);
        while lump.len() >= LUMP {
            client.write_all(&lump[..LUMP]).ok()?;
            lump.drain(..LUMP);
        }
        Some(())
    })?;
    client.write_all(&lump).ok()
}

fn pass_deaf(upstream: &mut TcpStream, mut client: &TcpStream) -> Option<()> {
    each_piece(upstream, |piece| {
        // the fault: a failed write is nothing to it
        client.write_all(piece).ok();
        Some(())
    })
}
