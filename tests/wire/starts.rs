//! What stops a start: one clear line that names it, exit 1.

use crate::support::config::Written;
use crate::support::gateway::Gateway;
use crate::support::process::run_in;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;

/// Writes a config, changes something, and starts; the line must name what is wrong.
#[track_caller]
fn stops(change: impl FnOnce(&Written) -> String) {
    let written = Gateway::builder().backend("127.0.0.1:1").write();
    let culprit = change(&written);
    let ran = run_in(written.scratch.path(), &["-c", &written.file()]);
    let told = ran.all();
    assert_eq!(ran.code, 1, "{told}");
    assert!(
        told.lines().any(|line| line.contains(&culprit)),
        "no line names {culprit}: {told}"
    );
    assert!(!told.contains("panicked"), "{told}");
}

#[test]
fn a_public_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    stops(|written| {
        written.replace(&written.public, &addr);
        addr.clone()
    });
}

#[test]
fn an_admin_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    stops(|written| {
        written.replace(&written.admin, &addr);
        addr.clone()
    });
}

#[test]
fn a_data_dir_that_cannot_be_made_is_named() {
    stops(|written| {
        let file = written
            .scratch
            .write("file", "not a folder")
            .display()
            .to_string();
        let data_dir = written.scratch.join("data").display().to_string();
        written.replace(
            &format!("data_dir = \"{data_dir}\""),
            &format!("data_dir = \"{file}/data\""),
        );
        format!("{file}/data")
    });
}

#[test]
fn a_ledger_that_is_no_database_is_named() {
    stops(|written| {
        written.scratch.write(
            "data/ledger.db",
            "this is text and no database\n".repeat(200),
        );
        "ledger.db".to_owned()
    });
}

#[test]
fn a_pid_file_of_a_running_gateway_is_named() {
    let engine = crate::support::engine::Engine::scripted(crate::support::script::silent);
    let gateway = Gateway::before(&engine);
    let theirs = gateway.written.scratch.join("streamgate.pid");
    stops(|written| {
        let own = written.scratch.join("streamgate.pid").display().to_string();
        written.replace(&own, &theirs.display().to_string());
        theirs.display().to_string()
    });
    let pid = std::fs::read_to_string(&theirs).unwrap();
    assert_eq!(pid.trim(), gateway.process.pid().to_string());
}

#[test]
fn a_pid_that_a_dead_gateway_left_and_another_process_has_now_is_in_nobodys_way() {
    let engine = crate::support::engine::Engine::scripted(crate::support::script::silent);
    let mut gateway = Gateway::before(&engine);
    gateway.process.kill();
    let mut other = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    gateway
        .written
        .scratch
        .write("streamgate.pid", format!("{}\n", other.id()));
    let ran = gateway.command(&["-s", "stop"]);
    assert_eq!(ran.code, 1, "{}", ran.all());
    assert!(
        ran.all().contains("is no gateway any more"),
        "{}",
        ran.all()
    );
    gateway.restart();
    other.kill().unwrap();
    let ended_by = other.wait().unwrap().signal();
    assert_eq!(ended_by, Some(9), "another signal came first");
}

#[test]
fn a_second_process_on_one_data_dir_is_refused() {
    let engine = crate::support::engine::Engine::scripted(crate::support::script::silent);
    let gateway = Gateway::before(&engine);
    let data_dir = gateway.written.scratch.join("data").display().to_string();
    stops(|written| {
        let own = written.scratch.join("data").display().to_string();
        written.replace(
            &format!("data_dir = \"{own}\""),
            &format!("data_dir = \"{data_dir}\""),
        );
        data_dir.clone()
    });
}
