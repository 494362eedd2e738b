//! The engine simulator: an inference engine without a model, for trying and measuring what stands before it.
//!
//! It speaks HTTP/1.1 by itself, on bare sockets, because its faults need a hand on every byte.
//!
//! - `connection` takes a connection's requests in turn (`http` reads them) and watches for the client's leaving;
//! - `route` finds what to answer; `job` and `words` read what is asked, `faults` what is to go wrong;
//! - `script` lays an answer out, in the shapes of `openai`, `responses` and `anthropic`, as `template`s;
//! - `generate` plays it in time: `engine` has the slots and counters, `pace` the clock, `wire` the socket.
//!
//! A request's way: it waits for a slot, its prefill takes `prefill + prefill_per_token × words of the prompt`, then
//! a token is due every `decode`, on a schedule that does not drift; while the client does not read, tokens wait.

mod anthropic;
mod connection;
mod engine;
mod faults;
mod generate;
mod http;
mod job;
mod openai;
mod options;
mod pace;
mod responses;
mod route;
mod script;
mod template;
mod wire;
mod words;

#[cfg(test)]
mod tests;

pub use options::{Notice, Options, USAGE};

use engine::Engine;
use socket2::SockRef;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Connections that may wait to be accepted. The standard library's 128 make a burst of clients wait for a second.
const BACKLOG: i32 = 4096;
/// Wait after an accept that failed for want of descriptors or memory; at once it would fail again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Runs a simulator on a runtime of its own until the process ends. One thread, because that costs least per event and
/// what is measured beside it needs the other cores.
pub fn run(listener: std::net::TcpListener, options: Options) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        serve(TcpListener::from_std(listener)?, options).await;
        Ok(())
    })
}

/// Runs a simulator until the future is dropped, which also ends its connections.
pub async fn serve(listener: TcpListener, options: Options) {
    if let Err(e) = SockRef::from(&listener).listen(BACKLOG) {
        log::warn!("the simulator's backlog could not be set to {BACKLOG}: {e}");
    }
    let engine = Arc::new(Engine::new(options));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if let Err(e) = stream.set_nodelay(true) {
                        log::debug!("a connection's TCP_NODELAY could not be set: {e}");
                    }
                    let engine = Arc::clone(&engine);
                    connections.spawn(async move { connection::serve(stream, &engine).await });
                }
                Err(e) => {
                    log::warn!("the simulator could not accept a connection: {e}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(e) = ended {
                    log::error!("a simulated connection ended badly: {e}");
                }
            }
        }
    }
}
