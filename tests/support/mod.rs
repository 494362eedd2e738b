//! The ground tests and benchmarks stand on: a scripted engine, the real binary, a raw client.
//!
//! Everything binds to loopback and stops by itself. Nothing sleeps to wait: what is awaited is polled, with a
//! deadline whose message says what was awaited and what was seen instead. Scripts and clients are plain threads that
//! block, so that a test reads from top to bottom and every byte and every moment is under its control.

pub mod ask;
pub mod books;
pub mod client;
pub mod config;
pub mod cost;
pub mod database;
pub mod deaf;
pub mod dialect;
pub mod engine;
pub mod events;
pub mod gateway;
pub mod http2;
pub mod machine;
pub mod metrics;
pub mod odd;
pub mod pair;
pub mod phase;
pub mod ports;
pub mod process;
pub mod random;
pub mod relay;
pub mod scratch;
pub mod script;
pub mod sim;
pub mod turns;
pub mod wait;

/// The key of the tenant `acme`, whom every test's gateway knows.
pub const KEY: &str = "sk-test-acme-0001";

/// The key of the tenant `other`.
pub const OTHER_KEY: &str = "sk-test-other-0002";

/// The SHA-256 in hex, as a config holds a key's.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes.as_ref())
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}
