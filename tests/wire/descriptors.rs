//! A process without descriptors: what runs goes on, nothing spins, and once there are some again it accepts.

use crate::support::ask::chat;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::machine;
use crate::support::script::tokens;
use crate::support::wait::{self, ms};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

/// Descriptors that are left when the crowd comes.
const LEFT: u32 = 12;

/// Clients that come.
const CROWD: usize = 60;

/// What a second without descriptors may take of the CPU, in hundredths of one.
const BUSY: u64 = 50;

fn limit(pid: u32, descriptors: &str) {
    let ran = Command::new("prlimit")
        .args([
            "--pid",
            &pid.to_string(),
            &format!("--nofile={descriptors}"),
        ])
        .status()
        .expect("prlimit runs");
    assert!(ran.success(), "prlimit: {ran}");
}

fn soft_limit(pid: u32) -> String {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    line.split_whitespace().nth(3).unwrap().to_owned()
}

#[test]
fn running_out_of_descriptors_neither_spins_nor_kills_and_accepting_resumes() {
    let (run, long) = (tokens(2, ms(0)), tokens(200, ms(20)));
    let engine = Engine::scripted(move |call| match call.member("user").as_str() {
        "long" => long(call),
        _ => run(call),
    });
    let mut gateway = Gateway::before(&engine);
    let pid = gateway.process.pid();
    let before = soft_limit(pid);
    let mut running = gateway.send(&chat().id("running").set("user", "long"));
    running.says("t0 ");
    let highest = machine::descriptors(pid).into_iter().max().unwrap();
    limit(pid, &format!("{}:", highest + LEFT));
    let crowd: Vec<TcpStream> = (0..CROWD)
        .filter_map(|_| TcpStream::connect(gateway.addr()).ok())
        .collect();
    wait::until("the descriptors to be used up", || {
        let open = machine::descriptors(pid).len();
        let full = open + 2 >= usize::try_from(highest + LEFT).unwrap() || crowd.len() > open;
        if full {
            Ok(())
        } else {
            Err(format!("{open} open"))
        }
    });
    // a second of the running stream, which knows nothing of all this
    let (start, ticks) = (Instant::now(), machine::cpu_ticks(pid));
    for n in 1..51 {
        running.says(&format!("t{n} "));
    }
    let used = machine::cpu_ticks(pid) - ticks;
    assert!(
        used < BUSY,
        "{used} ticks in {:?}: it spins",
        start.elapsed()
    );
    gateway.process.must_run();
    drop(crowd);
    limit(pid, &format!("{before}:"));
    let next = wait::until("accepting to resume", || {
        let socket = TcpStream::connect(gateway.addr()).map_err(|e| e.to_string())?;
        let mut stream = crate::support::client::Stream::on(socket).patience(ms(1500));
        stream.write(&chat().bytes());
        stream.try_rest().map_err(|e| format!("{e:?}"))
    });
    assert!(events::is_done(&next));
    assert!(
        events::is_done(&running.rest()),
        "the stream that ran was cut: {running:?}"
    );
    assert_eq!(gateway.ended("running")["state"], "COMPLETED");
    gateway.settled();
}

#[test]
fn what_cannot_be_called_for_want_of_descriptors_is_a_clean_502() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let mut gateway = Gateway::before(&engine);
    let pid = gateway.process.pid();
    let before = soft_limit(pid);
    // the client's connection is there; one for the upstream is not to be had
    let mut stream = crate::support::client::Stream::connect(gateway.addr());
    stream.write(&crate::support::ask::Ask::get("/v1/models").bytes());
    assert_eq!(stream.next_answer().status, 200);
    limit(pid, "1:");
    stream.write(&chat().id("none-left").bytes());
    let answer = stream.next_answer();
    limit(pid, &format!("{before}:"));
    answer.must_refuse(502, "upstream_unreachable");
    let record = gateway.ended("none-left");
    assert_eq!(record["state"], "FAILED", "{record}");
    assert_eq!(record["charged_units"], 0, "{record}");
    gateway.process.must_run();
    assert!(events::is_done(&gateway.chat("again").rest()));
    gateway.settled();
}
