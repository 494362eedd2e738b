//! Free ports for programs that must be told theirs.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range outgoing connections take theirs from: nothing grabs one before its owner binds it.
const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;

/// How far apart two processes start to look, so that tests side by side keep out of each other's way.
const STRIDE: u32 = 199;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port of 127.0.0.1 that nobody has now.
pub fn free() -> u16 {
    let start = std::process::id().wrapping_mul(STRIDE);
    (0..COUNT)
        .map(|_| start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT + FIRST)
        .filter_map(|port| u16::try_from(port).ok())
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port below the ephemeral range")
}

/// `127.0.0.1` with a free port.
pub fn free_addr() -> String {
    format!("127.0.0.1:{}", free())
}
