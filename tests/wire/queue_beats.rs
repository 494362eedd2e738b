//! Heartbeats of a stream that waits in line: with `early_headers`, in every API's words, and what comes behind them.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::dialect::{self, Dialect};
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::http2::Http2;
use crate::support::turns::{Turns, is_queued, lines_up, must_be_served, named};
use crate::support::wait::ms;
use crate::support::{KEY, OTHER_KEY};

const BEATING: &str = "max_streams = 1\nqueue = { max_wait = \"20s\", max_len = 8 }\n\
    stream = { heartbeat = \"100ms\", early_headers = true }";

fn beat(dialect: Dialect) -> &'static [u8] {
    match dialect {
        Dialect::Messages => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
        _ => b": keepalive\n",
    }
}

/// A request that takes the slot of this API's pool.
fn holder(dialect: Dialect) -> Ask {
    let ask = match dialect {
        Dialect::Messages => Dialect::Messages.ask(),
        _ => chat(),
    };
    ask.key(OTHER_KEY)
}

#[test]
fn a_stream_in_line_is_kept_alive_and_then_has_its_answer() {
    dialect::each(|dialect| {
        let turns = Turns::default();
        let engine = turns.engine();
        let gateway = dialect::gateway(&engine, BEATING);
        let mut hold = turns.holds(&gateway, &holder(dialect), "hold");
        let mut stream = lines_up(&gateway, &dialect.ask(), "late");
        stream.read_until(|body| events::count(body, beat(dialect)) >= 3);
        assert_eq!(
            gateway.record("late")["state"],
            "QUEUED",
            "{dialect:?}: a heartbeat is no output"
        );
        turns.let_go();
        hold.rest();
        must_be_served(&mut stream, dialect);
        let body = stream.body();
        assert!(body.starts_with(beat(dialect)), "{dialect:?}: {stream:?}");
        assert_eq!(gateway.ended("late")["state"], "COMPLETED", "{dialect:?}");
        gateway.settled();
    });
}

#[test]
fn a_stream_whose_time_in_line_is_over_ends_with_its_protocols_error_and_properly() {
    let lines = BEATING.replace("20s", "700ms");
    dialect::each(|dialect| {
        let turns = Turns::default();
        let engine = turns.engine();
        let gateway = dialect::gateway(&engine, &lines);
        let mut hold = turns.holds(&gateway, &holder(dialect), "hold");
        let mut stream = lines_up(&gateway, &dialect.ask(), "late");
        let body = stream.rest();
        assert_eq!(stream.status(), 200, "{dialect:?}");
        assert!(body.starts_with(beat(dialect)), "{dialect:?}: {stream:?}");
        assert_eq!(dialect.final_error(&body), "queue_timeout", "{dialect:?}");
        let record = gateway.ended("late");
        assert_eq!(record["state"], "FAILED", "{dialect:?}: {record}");
        assert_eq!(record["ended_by"], "timeout", "{dialect:?}: {record}");
        assert_eq!(record["charged_units"], 0, "{dialect:?}: {record}");
        turns.let_go();
        hold.rest();
        gateway.settled();
        assert_eq!(turns.order(), ["hold"], "{dialect:?}");
    });
}

#[test]
fn a_stream_that_is_cancelled_in_line_after_heartbeats_is_told_so() {
    dialect::each(|dialect| {
        let turns = Turns::default();
        let engine = turns.engine();
        let gateway = dialect::gateway(&engine, BEATING);
        let mut hold = turns.holds(&gateway, &holder(dialect), "hold");
        let mut stream = lines_up(&gateway, &dialect.ask(), "late");
        stream.read_until(|body| events::count(body, beat(dialect)) >= 1);
        assert_eq!(gateway.cancel("late").status, 202, "{dialect:?}");
        assert_eq!(
            dialect.final_error(&stream.rest()),
            "cancelled",
            "{dialect:?}"
        );
        turns.let_go();
        hold.rest();
        gateway.settled();
        assert_eq!(turns.order(), ["hold"], "{dialect:?}");
    });
}

#[test]
fn without_early_headers_nothing_is_written_to_one_in_line() {
    let turns = Turns::default();
    let engine = turns.engine();
    let lines = BEATING.replace("early_headers = true", "early_headers = false");
    let gateway = dialect::gateway(&engine, &lines);
    let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), "hold");
    let mut stream = lines_up(&gateway, &chat(), "late");
    assert!(!stream.has_answer(ms(600)), "{stream:?}");
    turns.let_go();
    hold.rest();
    must_be_served(&mut stream, Dialect::Chat);
    gateway.settled();
}

#[test]
fn a_request_that_is_no_stream_gets_no_heartbeat_in_line() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = dialect::gateway(&engine, BEATING);
    let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), "hold");
    let mut whole = lines_up(&gateway, &whole_chat(), "late");
    assert!(!whole.has_answer(ms(600)), "{whole:?}");
    turns.let_go();
    hold.rest();
    let answer = whole.answer();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["object"], "chat.completion");
    gateway.settled();
}

#[test]
fn heartbeats_in_line_go_out_over_http2_too() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .pool(BEATING)
        .start();
    let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), "hold");
    let connection = Http2::connect(gateway.addr());
    let mut stream = connection.send(&named(&chat(), "late"));
    is_queued(&gateway, KEY, "late");
    stream.until(|body| events::count(body, beat(Dialect::Chat)) >= 2);
    assert_eq!(gateway.record("late")["state"], "QUEUED");
    turns.let_go();
    hold.rest();
    assert!(events::is_done(&stream.rest()));
    gateway.settled();
}

#[test]
fn the_rates_stand_in_a_head_that_is_written_in_line() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(BEATING)
        .tenant("requests_per_minute = 100")
        .start();
    let mut hold = turns.holds(&gateway, &chat().key(OTHER_KEY), "hold");
    let mut stream = lines_up(&gateway, &chat(), "late");
    stream.read_until(|body| events::count(body, beat(Dialect::Chat)) >= 1);
    turns.let_go();
    hold.rest();
    let answer = stream.answer();
    let limit = answer.headers.get("x-ratelimit-limit-requests");
    assert_eq!(limit, Some("100"), "{:?}", answer.headers);
}
