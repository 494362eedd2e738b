//! The gateway under test: the real binary on a config of its own, and all that can be asked of it from outside.

use super::ask::{Ask, chat};
use super::client::{Answer, Stream};
use super::config::{Builder, Written};
use super::engine::Engine;
use super::process::{Process, Ran, Signal, run_in};
use super::{KEY, metrics, wait};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How often a start is tried again because a port that was free was taken before it was bound.
const TRIES: usize = 5;

/// The gauges that are zero when nothing runs.
const HELD: [&str; 5] = [
    "streamgate_streams",
    "streamgate_slots",
    "streamgate_units_reserved",
    "streamgate_queue_length",
    "streamgate_ledger_open",
];

/// A running gateway, killed and forgotten when dropped.
pub struct Gateway {
    pub written: Written,
    pub process: Process,
}

impl Gateway {
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A gateway with nothing special before an engine.
    #[track_caller]
    pub fn before(engine: &Engine) -> Gateway {
        Gateway::builder().backend(engine.addr()).start()
    }

    #[track_caller]
    pub fn start(builder: Builder) -> Gateway {
        let mut written = builder.write();
        for _ in 1..TRIES {
            let mut process = spawn(&written);
            if wait_until_ready(&mut process, &written.admin) {
                return Gateway { written, process };
            }
            builder.rewrite(&mut written);
        }
        let mut process = spawn(&written);
        assert!(
            wait_until_ready(&mut process, &written.admin),
            "no free port in {TRIES} tries: {}",
            process.output()
        );
        Gateway { written, process }
    }

    /// Starts it again on the same folder and ports, after it was killed or has ended.
    #[track_caller]
    pub fn restart(&mut self) {
        self.process = spawn(&self.written);
        assert!(
            wait_until_ready(&mut self.process, &self.written.admin),
            "its ports are taken: {}",
            self.process.output()
        );
    }

    pub fn addr(&self) -> &str {
        &self.written.public
    }

    /// Sends a request on a connection of its own.
    #[track_caller]
    pub fn send(&self, ask: &Ask) -> Stream {
        Stream::send(self.addr(), ask)
    }

    /// Sends a request and reads the whole answer.
    #[track_caller]
    pub fn answer(&self, ask: &Ask) -> Answer {
        self.send(ask).answer()
    }

    /// A streamed chat with this id.
    #[track_caller]
    pub fn chat(&self, id: &str) -> Stream {
        self.send(&chat().id(id))
    }

    #[track_caller]
    pub fn cancel(&self, id: &str) -> Answer {
        self.answer(&Ask::post(format!("/generations/{id}/cancel")))
    }

    /// The record of a request of `acme`.
    #[track_caller]
    pub fn record(&self, id: &str) -> Value {
        self.record_of(KEY, id)
    }

    #[track_caller]
    pub fn record_of(&self, key: &str, id: &str) -> Value {
        let answer = self.answer(&Ask::get(format!("/generations/{id}")).key(key));
        assert_eq!(answer.status, 200, "the record of {id}: {}", answer.text());
        answer.json()
    }

    /// The record of a request of `acme`, once it has ended.
    #[track_caller]
    pub fn ended(&self, id: &str) -> Value {
        self.ended_of(KEY, id)
    }

    #[track_caller]
    pub fn ended_of(&self, key: &str, id: &str) -> Value {
        wait::until(format!("{id} to end"), || {
            let answer = self.answer(&Ask::get(format!("/generations/{id}")).key(key));
            let state = if answer.status == 200 {
                answer.json()["state"].clone()
            } else {
                Value::Null
            };
            match state.as_str() {
                Some("COMPLETED" | "CANCELLED" | "FAILED") => Ok(answer.json()),
                _ => Err(answer.text()),
            }
        })
    }

    /// Waits until a request of `acme` is in a state.
    #[track_caller]
    pub fn reaches(&self, id: &str, state: &str) -> Value {
        wait::until(format!("{id} to be {state}"), || {
            let record = self.record(id);
            if record["state"] == state {
                Ok(record)
            } else {
                Err(record.to_string())
            }
        })
    }

    /// A request to the admin listener.
    #[track_caller]
    pub fn admin(&self, ask: &Ask) -> Answer {
        Stream::send(&self.written.admin, ask).answer()
    }

    #[track_caller]
    pub fn scrape(&self) -> String {
        let answer = self.admin(&Ask::get("/metrics").no_key());
        assert_eq!(answer.status, 200, "/metrics: {}", answer.text());
        answer.text()
    }

    /// The sum of a metric's series with these labels.
    #[track_caller]
    pub fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let text = self.scrape();
        metrics::parse(&text)
            .filter(|s| s.name == name && s.has(labels))
            .map(|s| s.value)
            .sum()
    }

    /// Waits until nothing is held: no stream, slot, reservation, place in a queue, open ledger entry.
    #[track_caller]
    pub fn settled(&self) {
        wait::until("everything held to be given back", || {
            let text = self.scrape();
            let held: Vec<String> = metrics::parse(&text)
                .filter(|s| HELD.contains(&s.name) && s.value != 0.0)
                .map(|s| format!("{s:?}"))
                .collect();
            if held.is_empty() {
                Ok(())
            } else {
                Err(held.join(", "))
            }
        });
    }

    /// The lines of the access log so far.
    pub fn access_log(&self) -> Vec<Value> {
        let text = self.written.scratch.read("access.log");
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect()
    }

    /// The access line of a request's own call, once it is written.
    #[track_caller]
    pub fn access_line(&self, id: &str) -> Value {
        wait::until(format!("the access line of {id}"), || {
            let lines = self.access_log();
            let found = lines.iter().find(|line| line["request_id"] == id);
            found
                .cloned()
                .ok_or_else(|| format!("{} other lines", lines.len()))
        })
    }

    /// Runs a command of the binary with this gateway's config.
    #[track_caller]
    pub fn command(&self, args: &[&str]) -> Ran {
        let file = self.written.file();
        let all: Vec<&str> = ["-c", &file]
            .into_iter()
            .chain(args.iter().copied())
            .collect();
        run_in(self.written.scratch.path(), &all)
    }

    pub fn signal(&self, signal: Signal) {
        self.process.signal(signal);
    }

    /// Waits for its end and gives the exit code.
    #[track_caller]
    pub fn exit(&mut self) -> i32 {
        self.process.wait(wait::PATIENCE)
    }
}

fn spawn(written: &Written) -> Process {
    Process::start(
        &["-c", &written.file()],
        written.scratch.path(),
        "stderr.log",
    )
}

/// Waits for `/readyz`; false where the process ended because an address was in use.
#[track_caller]
fn wait_until_ready(process: &mut Process, admin: &str) -> bool {
    wait::within(wait::seconds(20), "the gateway to be ready", || {
        if let Some(status) = process.ended() {
            let output = process.output();
            assert!(
                output.contains("in use"),
                "streamgate ended with {status}; its output: {output}"
            );
            return Ok(false);
        }
        match ready(admin) {
            Ok(true) => Ok(true),
            Ok(false) => Err("/readyz says no".to_owned()),
            Err(e) => Err(format!("/readyz: {e}; its output: {}", process.output())),
        }
    })
}

/// One try of `/readyz`, where nothing may listen yet.
fn ready(admin: &str) -> std::io::Result<bool> {
    let mut socket = TcpStream::connect(admin)?;
    socket.set_read_timeout(Some(Duration::from_secs(2)))?;
    socket.write_all(
        Ask::get("/readyz")
            .no_key()
            .header("Connection", "close")
            .bytes()
            .as_slice(),
    )?;
    let mut start = [0; 12];
    socket.read_exact(&mut start)?;
    Ok(start == *b"HTTP/1.1 200")
}
