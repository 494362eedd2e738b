//! Free ports for programs that must be told theirs.
//!
//! A port is held for as long as the process that asked for it lives, by a locked file: between the asking and the
//! program's own bind no test beside this one is given the same. Else it would take the other's gateway for its own.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the range outgoing connections take theirs from: nothing grabs one before its owner binds it.
const FIRST: u32 = 10_000;
const COUNT: u32 = 22_000;

/// How far apart two processes start to look, so that tests side by side seldom meet.
const STRIDE: u32 = 199;

static NEXT: AtomicU32 = AtomicU32::new(0);
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A port of 127.0.0.1 that nobody has now, and no other test gets while this one runs.
pub fn free() -> u16 {
    let start = std::process::id().wrapping_mul(STRIDE);
    (0..COUNT)
        .map(|_| start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT + FIRST)
        .filter_map(|port| u16::try_from(port).ok())
        .find(|port| hold(*port) && TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port below the ephemeral range")
}

/// Takes a port for this process, where no other has it.
fn hold(port: u16) -> bool {
    let locks = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ports");
    fs::create_dir_all(&locks).expect("the folder of the ports' locks");
    let lock = File::create(locks.join(port.to_string())).expect("a port's lock");
    let is_ours = lock.try_lock().is_ok();
    if is_ours {
        HELD.lock().expect("the held ports").push(lock);
    }
    is_ours
}

/// `127.0.0.1` with a free port.
pub fn free_addr() -> String {
    format!("127.0.0.1:{}", free())
}
