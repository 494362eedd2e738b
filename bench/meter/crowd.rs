//! Many clients that read what comes and count the events in it, on one thread of their own.

use crate::engine::Kind;
use crate::support::ask::chat;
use memchr::memchr_iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub struct Crowd {
    seen: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

impl Crowd {
    /// So many streams of a kind through a relay.
    pub fn of(count: usize, kind: Kind, addr: &str) -> Crowd {
        let seen = Arc::new(AtomicU64::new(0));
        let (addr, counter) = (addr.to_owned(), seen.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .expect("a runtime")
                .block_on(read_all(count, &addr, kind, &counter));
        });
        Crowd { seen, thread }
    }

    /// Events that came so far, over all streams.
    pub fn events(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Waits until every stream has ended.
    pub fn leave(self) {
        self.thread.join().expect("the clients");
    }
}

async fn read_all(count: usize, addr: &str, kind: Kind, seen: &Arc<AtomicU64>) {
    let mut streams = JoinSet::new();
    for _ in 0..count {
        streams.spawn(read(addr.to_owned(), kind, seen.clone()));
    }
    while let Some(stream) = streams.join_next().await {
        stream.expect("a client");
    }
}

/// Reads one stream to the last chunk.
async fn read(addr: String, kind: Kind, seen: Arc<AtomicU64>) {
    let ask = chat().set("model", kind.model());
    let mut socket = TcpStream::connect(&addr)
        .await
        .expect("the relay takes connections");
    socket
        .write_all(&ask.bytes())
        .await
        .expect("the relay takes requests");
    let mut buffer = vec![0; 16 * 1024];
    let mut last = 0;
    let mut first = true;
    loop {
        let n = socket.read(&mut buffer).await.expect("the relay answers");
        assert!(n > 0, "a stream broke off");
        let piece = &buffer[..n];
        assert!(
            !first || piece.starts_with(kind.status_line().as_bytes()),
            "{}",
            String::from_utf8_lossy(piece)
        );
        first = false;
        seen.fetch_add(events_in(last, piece), Ordering::Relaxed);
        last = piece[n - 1];
        if piece.ends_with(b"0\r\n\r\n") {
            return;
        }
    }
}

/// Blank lines, by LF alone: the framing has none of those.
fn events_in(before: u8, piece: &[u8]) -> u64 {
    let ends = memchr_iter(b'\n', piece).filter(|at| match at.checked_sub(1) {
        Some(at) => piece[at] == b'\n',
        None => before == b'\n',
    });
    ends.count() as u64
}
