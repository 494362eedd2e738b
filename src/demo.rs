//! `streamgate demo`: two simulated engines and a gateway on loopback, with a config that is part of the binary and a
//! ledger in a folder that goes when the demo ends.

use crate::ops::HangUp;
use crate::{config, server, sim};
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;

const CONFIG: &str = include_str!("../conf/demo.toml");
/// The addresses as they stand in the config; each is replaced where its port is taken.
const GATEWAY: &str = "127.0.0.1:8080";
const ADMIN: &str = "127.0.0.1:9090";
const ENGINES: [&str; 2] = ["127.0.0.1:8001", "127.0.0.1:8002"];

/// Runs the demo until Ctrl-C.
pub fn run() -> Result<(), String> {
    let folder = Folder::make()?;
    let mut text = CONFIG.to_owned();
    for addr in ENGINES {
        let listener = listen(addr)?;
        text = text.replace(addr, &name(&listener)?);
        simulate(listener)?;
    }
    let gateway = free(GATEWAY)?;
    let admin = free(ADMIN)?;
    text = text.replace(GATEWAY, &gateway).replace(ADMIN, &admin);
    let file = folder.path.join("demo.toml");
    let config = config::parse(&text, &file).map_err(|e| e.to_string())?;
    let text = welcome(&gateway, &admin);
    let ready = move || {
        if std::io::stdout().write_all(text.as_bytes()).is_err() {
            log::warn!("standard output is closed; the demo runs on at http://{gateway}");
        }
    };
    server::run(config, HangUp::Stop, Box::new(ready))
}

/// An engine on a thread of its own; it ends with the process.
fn simulate(listener: TcpListener) -> Result<(), String> {
    std::thread::Builder::new()
        .name("engine".to_owned())
        .spawn(move || {
            if let Err(e) = sim::run(listener, sim::Options::default()) {
                log::error!("a simulated engine stopped: {e}");
            }
        })
        .map(drop)
        .map_err(|e| format!("an engine cannot be started: {e}"))
}

/// The usual port, or any other where that is taken.
fn listen(addr: &str) -> Result<TcpListener, String> {
    TcpListener::bind(addr)
        .or_else(|_| TcpListener::bind("127.0.0.1:0"))
        .map_err(|e| format!("no port is free on 127.0.0.1: {e}"))
}

fn name(listener: &TcpListener) -> Result<String, String> {
    listener
        .local_addr()
        .map(|a| a.to_string())
        .map_err(|e| e.to_string())
}

fn free(addr: &str) -> Result<String, String> {
    name(&listen(addr)?)
}

fn welcome(gateway: &str, admin: &str) -> String {
    format!(
        r#"streamgate demo: the gateway is at http://{gateway}, two simulated engines are behind it. Ctrl-C ends it.
Paste these into another terminal:

# a stream, token by token; the demo's anonymous tenant needs no key
curl -N http://{gateway}/v1/chat/completions -H 'Content-Type: application/json' -d '{{"model": "sim-1", "stream": true, "max_tokens": 20, "messages": [{{"role": "user", "content": "Tell me a story"}}]}}'

# the same with a key and an id of your own; it runs for half a minute. An id runs once: the next time take story-2
curl -N http://{gateway}/v1/chat/completions -H 'Authorization: Bearer {KEY}' -H 'Idempotency-Key: story-1' -H 'Content-Type: application/json' -d '{{"model": "sim-1", "stream": true, "max_tokens": 3000, "messages": [{{"role": "user", "content": "Tell me a long story"}}]}}'

# in a third terminal, cancel it while it runs; the engine stops at once
curl -X POST http://{gateway}/generations/story-1/cancel -H 'Authorization: Bearer {KEY}'

# what it made, what was delivered, what it costs
curl http://{gateway}/generations/story-1 -H 'Authorization: Bearer {KEY}'

# what the gateway counts
curl http://{admin}/metrics

"#
    )
}

/// The key whose hash stands in the demo's config.
const KEY: &str = "sk-demo-streamgate";

/// The demo's folder, removed when the demo ends.
struct Folder {
    path: PathBuf,
}

impl Folder {
    fn make() -> Result<Folder, String> {
        let path = std::env::temp_dir().join(format!("streamgate-demo-{}", std::process::id()));
        std::fs::create_dir_all(&path)
            .map_err(|e| format!("{} cannot be made: {e}", path.display()))?;
        Ok(Folder { path })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(e) = std::fs::remove_dir_all(&self.path) {
            log::warn!("{} cannot be removed: {e}", self.path.display());
        }
    }
}
