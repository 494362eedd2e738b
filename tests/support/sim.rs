//! `streamgate sim` as a process.

use super::ask::Ask;
use super::client::{Answer, Stream};
use super::process::Process;
use super::scratch::Scratch;
use super::{metrics, ports, wait};
use std::net::TcpStream;

/// A running simulator on a port of its own. Fast, unless told otherwise.
pub struct Sim {
    addr: String,
    _process: Process,
    _scratch: Scratch,
}

impl Sim {
    /// 5 ms to the first token, 5 ms between two.
    #[track_caller]
    pub fn start() -> Sim {
        Sim::with(&[
            "--prefill-ms",
            "5",
            "--prefill-ms-per-token",
            "0",
            "--decode-ms",
            "5",
        ])
    }

    #[track_caller]
    pub fn with(flags: &[&str]) -> Sim {
        let scratch = Scratch::new();
        let addr = ports::free_addr();
        let args: Vec<&str> = ["sim", "--listen", &addr]
            .into_iter()
            .chain(flags.iter().copied())
            .collect();
        let mut process = Process::start(&args, scratch.path(), "sim.log");
        wait::until("the simulator to listen", || {
            process.must_run();
            TcpStream::connect(&addr)
                .map(drop)
                .map_err(|e| e.to_string())
        });
        Sim {
            addr,
            _process: process,
            _scratch: scratch,
        }
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }

    #[track_caller]
    pub fn send(&self, ask: &Ask) -> Stream {
        Stream::send(&self.addr, ask)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Answer {
        self.send(&Ask::get(path).no_key()).answer()
    }

    /// The sum of a metric's series; fails where there is none.
    #[track_caller]
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let found: Vec<f64> = metrics::parse(&text)
            .filter(|s| s.name == name)
            .map(|s| s.value)
            .collect();
        assert!(
            !found.is_empty(),
            "the simulator has no metric {name}: {text}"
        );
        found.iter().sum()
    }

    /// How many requests it works on now.
    #[track_caller]
    pub fn running(&self) -> f64 {
        self.metric("vllm:num_requests_running")
    }

    /// Tokens it ever made.
    #[track_caller]
    pub fn made(&self) -> f64 {
        self.metric("vllm:generation_tokens_total")
    }
}
