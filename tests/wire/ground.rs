//! The ground itself: the scripted engine and the raw client see each other's bytes, cuts and closes.

use crate::support::ask::{chat, whole_chat};
use crate::support::client::{Broken, Stream};
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::script::{Door, holding, token, tokens};
use crate::support::wait::ms;
use std::io::ErrorKind;
use std::time::Instant;

#[test]
fn the_client_reads_what_the_engine_writes() {
    let engine = Engine::scripted(tokens(3, ms(0)));
    let mut stream = Stream::send(engine.addr(), &chat());
    assert_eq!(stream.status(), 200);
    for n in 0..3 {
        stream.says(&token(n));
    }
    assert_eq!(stream.content(), None);
    assert!(events::is_done(&stream.rest()));
    let whole = Stream::send(engine.addr(), &whole_chat()).answer();
    assert_eq!(whole.json()["usage"]["completion_tokens"], 3);
    assert_eq!(engine.calls().len(), 2);
}

#[test]
fn a_connection_carries_one_request_after_another() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let mut stream = Stream::send(engine.addr(), &chat());
    assert!(events::is_done(&stream.next_answer().body));
    stream.write(&chat().bytes());
    assert_eq!(events::contents(&stream.next_answer().body), ["t0 ", "t1 "]);
}

#[test]
fn a_script_waits_at_its_door() {
    let door = Door::default();
    let engine = Engine::scripted({
        let door = door.clone();
        move |call| {
            call.head()?;
            door.pass()?;
            call.delta("a")?;
            door.pass()?;
            call.done()
        }
    });
    let stream = Stream::send(engine.addr(), &chat()).patience(ms(50));
    let mut stream = stream;
    assert_eq!(stream.status(), 200);
    assert_eq!(stream.try_content(), Err(Broken::Silent));
    door.open();
    stream.says("a");
    door.open();
    assert_eq!(stream.content(), None);
}

#[test]
fn the_engine_sees_a_client_close_or_reset_at_once() {
    let engine = Engine::scripted(holding(1));
    for leave in [Stream::close, Stream::reset] {
        let mut stream = Stream::send(engine.addr(), &chat());
        stream.says("t0 ");
        let call = engine.held(engine.calls().len() - 1);
        let left = Instant::now();
        leave(stream);
        let took = call.closed().saturating_duration_since(left);
        assert!(took < ms(500), "the close was seen after {took:?}");
    }
}

#[test]
fn the_client_tells_a_cut_from_a_reset_from_an_end() {
    let engine = Engine::scripted(|call| {
        call.head()?;
        call.delta("a")?;
        match call.member("user").as_str() {
            "fin" => call.fin(),
            "reset" => call.reset(),
            _ => call.done(),
        }
    });
    let broken = |how: &str| Stream::send(engine.addr(), &chat().set("user", how)).try_rest();
    assert_eq!(broken("fin"), Err(Broken::Cut));
    assert_eq!(
        broken("reset"),
        Err(Broken::Failed(ErrorKind::ConnectionReset))
    );
    assert!(broken("end").is_ok_and(|body| events::is_done(&body)));
}
