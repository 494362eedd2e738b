//! Signals: TERM and QUIT drain, INT stops at once.

use crate::support::ask::{Ask, chat};
use crate::support::client::Stream;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::process::Signal;
use crate::support::script::{Door, tokens};
use crate::support::wait::{self, ms};
use std::net::TcpStream;

/// One event, then another and the end once the door is opened.
fn engine(door: &Door) -> Engine {
    let door = door.clone();
    Engine::scripted(move |call| {
        call.head()?;
        call.delta("before ")?;
        door.pass()?;
        call.delta("after ")?;
        call.done()
    })
}

fn drains(signal: Signal) {
    let door = Door::default();
    let engine = engine(&door);
    let mut gateway = Gateway::before(&engine);
    let mut idle = Stream::connect(gateway.addr());
    let mut stream = gateway.chat("drain-1");
    stream.says("before ");
    gateway.signal(signal);
    wait::until_true("the gateway to say it is draining", || {
        not_ready(&gateway.written.admin)
    });
    refused_while_draining(gateway.addr());
    idle.try_write(&chat().bytes()).ok();
    assert!(
        gateway.process.ended().is_none(),
        "ended while a stream ran"
    );
    door.open();
    stream.says("after ");
    assert!(events::is_done(&stream.rest()), "{stream:?}");
    assert_eq!(gateway.exit(), 0);
    assert_eq!(engine.calls().len(), 1, "a new request ran while draining");
    gateway.restart();
    assert_eq!(gateway.record("drain-1")["state"], "COMPLETED");
}

/// `/readyz` says no, or nobody answers any more.
fn not_ready(admin: &str) -> bool {
    TcpStream::connect(admin).map_or(true, |socket| {
        let mut stream = Stream::on(socket);
        let asked = stream.try_write(&Ask::get("/readyz").no_key().bytes());
        asked.is_err() || stream.try_rest().is_err() || stream.status() == 503
    })
}

/// A new connection is refused, closed, or answered 503 `draining`.
fn refused_while_draining(public: &str) {
    let Ok(socket) = TcpStream::connect(public) else {
        return;
    };
    let mut stream = Stream::on(socket);
    if stream.try_write(&chat().bytes()).is_ok() && stream.try_rest().is_ok() {
        stream.next_answer().must_refuse(503, "draining");
    }
}

#[test]
fn term_lets_a_running_stream_end_and_takes_no_new_one() {
    drains(Signal::Term);
}

#[test]
fn quit_lets_a_running_stream_end_and_takes_no_new_one() {
    drains(Signal::Quit);
}

#[test]
fn int_stops_at_once_and_the_client_is_told() {
    let door = Door::default();
    let engine = engine(&door);
    let mut gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("stop-1");
    stream.says("before ");
    gateway.signal(Signal::Int);
    assert_eq!(gateway.exit(), 0);
    // what comes at all comes whole: no half event, no [DONE]
    stream.try_rest().ok();
    assert!(!events::is_done(stream.body()));
    assert!(stream.body().ends_with(b"\n\n"), "{stream:?}");
    gateway.restart();
    let record = gateway.record("stop-1");
    assert!(
        record["ended_at"].is_string() && record["ended_by"] != "crash",
        "{record}"
    );
}

#[test]
fn a_stream_longer_than_the_drain_timeout_is_ended_with_an_error_event() {
    let door = Door::default();
    let engine = engine(&door);
    let mut gateway = Gateway::builder()
        .backend(engine.addr())
        .server("drain_timeout = \"300ms\"")
        .start();
    let mut stream = gateway.chat("long-1");
    stream.says("before ");
    gateway.signal(Signal::Term);
    events::final_error(&stream.rest());
    assert_eq!(gateway.exit(), 0);
    gateway.restart();
    let record = gateway.record("long-1");
    assert_eq!(record["ended_by"], "drain", "{record}");
    assert!(
        record["charged_units"].as_u64().is_some_and(|n| n > 0),
        "{record}"
    );
}

#[test]
fn an_idle_gateway_ends_at_once() {
    for signal in [Signal::Term, Signal::Quit, Signal::Int] {
        let door = Door::default();
        let engine = engine(&door);
        let mut gateway = Gateway::before(&engine);
        let _idle = Stream::connect(gateway.addr());
        gateway.signal(signal);
        assert_eq!(gateway.process.wait(wait::seconds(3)), 0, "{signal:?}");
    }
}

#[test]
fn the_command_line_signals_the_running_process() {
    for how in ["quit", "stop"] {
        let door = Door::default();
        let engine = engine(&door);
        let mut gateway = Gateway::before(&engine);
        let mut stream = gateway.chat("told-1");
        stream.says("before ");
        let ran = gateway.command(&["-s", how]);
        assert_eq!(ran.code, 0, "{how}: {}", ran.all());
        if how == "quit" {
            wait::until_true("the gateway to drain", || not_ready(&gateway.written.admin));
            door.open();
            assert!(events::is_done(&stream.rest()), "{stream:?}");
        }
        assert_eq!(gateway.exit(), 0, "{how}");
    }
}

#[test]
fn the_command_line_makes_the_running_process_reload() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    gateway
        .written
        .replace("models = [\"m\"]", "models = [\"n\"]");
    let ran = gateway.command(&["-s", "reload"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    wait::until("the new model to be served", || {
        let answer = gateway.answer(&chat().set("model", "n"));
        (answer.status == 200).then_some(()).ok_or(answer.text())
    });
    gateway.written.replace("models = [\"n\"]", "models = 7");
    let ran = gateway.command(&["-s", "reload"]);
    assert_eq!(
        ran.code,
        64,
        "a bad file is told before the process is bothered: {}",
        ran.all()
    );
    assert!(!gateway.process.output().contains("not reloaded"));
}
