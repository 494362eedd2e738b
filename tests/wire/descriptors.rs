//! A process without descriptors: what runs goes on, nothing spins, and once there are some again it accepts.

use crate::support::ask::{Ask, chat};
use crate::support::client::Stream;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::machine;
use crate::support::script::{Door, token, tokens};
use crate::support::wait::{self, ms};
use std::net::TcpStream;
use std::process::Command;
use std::time::Instant;

/// Free descriptors that are left to the gateway.
const LEFT: usize = 12;

/// Clients that come when there are none left, and wait to be accepted.
const WAITING: usize = 8;

/// What a second without descriptors may take of the CPU, in hundredths of one.
const BUSY: u64 = 50;

/// The soft limit of a process: a descriptor's number is always below it.
fn limit(pid: u32, descriptors: &str) {
    let ran = Command::new("prlimit")
        .args([
            "--pid",
            &pid.to_string(),
            &format!("--nofile={descriptors}:"),
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

/// The numbers below a limit that no descriptor has.
fn free(pid: u32, limit: usize) -> usize {
    let open = machine::descriptors(pid);
    limit - open.iter().filter(|fd| (**fd as usize) < limit).count()
}

/// The limit that leaves so many.
fn limit_that_leaves(pid: u32, left: usize) -> usize {
    (left..)
        .find(|limit| free(pid, *limit) == left)
        .expect("a process has few descriptors")
}

/// Clients that connect and say nothing, until the gateway has no descriptor for another one; then some more.
fn crowd(gateway: &Gateway, limit: usize) -> Vec<TcpStream> {
    let pid = gateway.process.pid();
    let connect = || TcpStream::connect(gateway.addr()).expect("the kernel takes connections");
    let mut crowd = Vec::new();
    wait::until("the descriptors to be used up", || {
        let free = free(pid, limit);
        if free == 0 {
            return Ok(());
        }
        crowd.push(connect());
        Err(format!("{free} free, {} clients", crowd.len()))
    });
    crowd.extend((0..WAITING).map(|_| connect()));
    crowd
}

#[test]
fn running_out_of_descriptors_neither_spins_nor_kills_and_accepting_resumes() {
    let door = Door::default();
    let (run, passing) = (tokens(2, ms(0)), door.clone());
    let engine = Engine::scripted(move |call| {
        if call.member("user") != "long" {
            return run(call);
        }
        call.head()?;
        call.delta(&token(0))?;
        passing.pass()?;
        for n in 1..51 {
            call.pause(ms(20))?;
            call.delta(&token(n))?;
        }
        call.done()
    });
    let mut gateway = Gateway::builder()
        .backend(engine.addr())
        .server("timeouts = { header = \"60s\" }")
        .start();
    let pid = gateway.process.pid();
    let before = soft_limit(pid);
    let mut running = gateway.send(&chat().id("running").set("user", "long"));
    running.says("t0 ");
    let lowered = limit_that_leaves(pid, LEFT);
    limit(pid, &lowered.to_string());
    let crowd = crowd(&gateway, lowered);
    // a second of the running stream, which knows nothing of all this
    let (start, ticks) = (Instant::now(), machine::cpu_ticks(pid));
    door.open();
    for n in 1..51 {
        running.says(&token(n));
    }
    let used = machine::cpu_ticks(pid) - ticks;
    assert!(
        used < BUSY,
        "{used} hundredths of a second on the CPU in {:?}: it spins",
        start.elapsed()
    );
    assert_eq!(free(pid, lowered), 0, "some came free meanwhile");
    assert!(
        events::is_done(&running.rest()),
        "the stream that ran was cut: {running:?}"
    );
    gateway.process.must_run();
    drop(crowd);
    limit(pid, &before);
    assert!(events::is_done(&gateway.chat("next").rest()));
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
    let mut stream = Stream::connect(gateway.addr());
    stream.write(&Ask::get("/v1/models").bytes());
    assert_eq!(stream.next_answer().status, 200);
    limit(pid, "1");
    stream.write(&chat().id("none-left").bytes());
    let answer = stream.next_answer();
    limit(pid, &before);
    answer.must_refuse(502, "upstream_unreachable");
    let record = gateway.ended("none-left");
    assert_eq!(record["state"], "FAILED", "{record}");
    assert_eq!(record["charged_units"], 0, "{record}");
    gateway.process.must_run();
    assert!(events::is_done(&gateway.chat("again").rest()));
    gateway.settled();
}
