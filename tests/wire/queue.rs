//! The queue of a pool: whose turn it is, and who gets to wait at all. What it refuses is in `queue_bounds`.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::Stream;
use crate::support::dialect::{self, Dialect};
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::http2::Http2;
use crate::support::process::Signal;
use crate::support::script::{Door, Gauge, token, tokens};
use crate::support::turns::{
    ONE_SLOT, Turns, is_queued, lines_up, lines_up_as, must_be_served, named,
};
use crate::support::wait::{self, ms};
use crate::support::{KEY, OTHER_KEY, events, sha256};
use serde_json::Value;

/// The key of a third tenant, whose request holds the slot and so moves nobody's share.
const FIRST_KEY: &str = "sk-test-first-0003";

/// One slot for `first` and two tenants more, of which `acme` has these lines.
fn shared(engine: &Engine, acme: &str) -> Gateway {
    let first = format!(
        "[[tenant]]\nname = \"first\"\nkeys = [{{ sha256 = \"{}\" }}]\n",
        sha256(FIRST_KEY)
    );
    Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .tenant(acme)
        .extra(&first)
        .start()
}

/// What waits for the slot that `first` holds: names in the order they come, each with its key and its request.
fn served(turns: &Turns, gateway: &Gateway, line: &[(String, &str, Ask)]) -> Vec<String> {
    let mut hold = turns.holds(gateway, &chat().key(FIRST_KEY), "first");
    let mut waiting: Vec<Stream> = line
        .iter()
        .map(|(name, key, ask)| lines_up_as(key, gateway, ask, name))
        .collect();
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    for stream in &mut waiting {
        must_be_served(stream, Dialect::Chat);
    }
    gateway.settled();
    turns.order().into_iter().skip(1).collect()
}

fn of<'a>(
    key: &'a str,
    prefix: &'a str,
    ask: &'a Ask,
    count: usize,
) -> Vec<(String, &'a str, Ask)> {
    (0..count)
        .map(|n| (format!("{prefix}{n}"), key, ask.clone()))
        .collect()
}

#[test]
fn the_first_that_came_is_the_first_that_runs_and_the_line_is_told() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let names: Vec<String> = (0..6).map(|n| format!("q{n}")).collect();
    let mut waiting: Vec<Stream> = names
        .iter()
        .map(|name| lines_up(&gateway, &chat(), name))
        .collect();
    let length = |tenant| {
        let labels = [("pool", "p"), ("tenant", tenant)];
        gateway.metric("streamgate_queue_length", &labels)
    };
    assert_eq!((length("acme"), length("other")), (6.0, 0.0));
    assert_eq!(gateway.metric("streamgate_slots", &[("pool", "p")]), 1.0);
    let queued = [("state", "QUEUED")];
    assert_eq!(gateway.metric("streamgate_streams", &queued), 6.0);
    assert_eq!(turns.order(), ["hold"], "one that waits has run");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    for stream in &mut waiting {
        must_be_served(stream, Dialect::Chat);
    }
    assert_eq!(turns.order()[1..], names);
    gateway.settled();
    let waits = gateway.metric("streamgate_queue_wait_seconds_count", &[("pool", "p")]);
    assert_eq!(waits, 7.0);
    let record = gateway.ended("q5");
    let moments = ["admitted_at", "started_at", "first_output_at", "ended_at"].map(|moment| {
        let moment = record[moment].as_str();
        moment.unwrap_or_else(|| panic!("{record}")).to_owned()
    });
    assert!(moments.is_sorted(), "{record}");
}

#[test]
fn tenants_share_the_slot_by_their_weights() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = shared(&engine, "weight = 2");
    // all of the one come before the first of the other
    let ask = chat();
    let line = [of(KEY, "a", &ask, 12), of(OTHER_KEY, "o", &ask, 6)].concat();
    let ran = served(&turns, &gateway, &line);
    for first in [6, 9, 12, 18] {
        let theirs = ran[..first].iter().filter(|name| name.starts_with('o'));
        let share = theirs.count().abs_diff(first / 3);
        assert!(share <= 1, "of the first {first}: {ran:?}");
    }
    for tenant in ['a', 'o'] {
        let mine = ran.iter().filter(|name| name.starts_with(tenant));
        let numbers: Vec<usize> = mine.map(|name| name[1..].parse().unwrap()).collect();
        assert!(numbers.is_sorted(), "within a tenant: {ran:?}");
    }
}

#[test]
fn the_largest_weight_leaves_the_smallest_its_turn() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = shared(&engine, "weight = 1000000");
    let ask = chat();
    let line = [of(OTHER_KEY, "o", &ask, 2), of(KEY, "a", &ask, 10)].concat();
    let ran = served(&turns, &gateway, &line);
    assert_eq!(ran.len(), 12);
    let last_of_large = ran.iter().rposition(|name| name.starts_with('a')).unwrap();
    let before = ran[..last_of_large].iter().filter(|n| n.starts_with('o'));
    assert!(before.count() <= 1, "{ran:?}");
}

#[test]
fn a_tenant_with_long_requests_does_not_starve_one_with_short_ones() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = shared(&engine, "");
    let (long, short) = (chat().set("max_tokens", 2000), chat().set("max_tokens", 40));
    let line = [of(KEY, "long", &long, 6), of(OTHER_KEY, "short", &short, 6)].concat();
    let ran = served(&turns, &gateway, &line);
    let last = ran.iter().rposition(|n| n.starts_with("short")).unwrap();
    let before = ran[..last].iter().filter(|n| n.starts_with("long")).count();
    assert!(
        before <= 2,
        "{before} long ones ran before the last short: {ran:?}"
    );
}

#[test]
fn a_tenant_over_its_own_slots_waits_too_and_blocks_nobody() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("max_streams = 2\nqueue = { max_wait = \"20s\", max_len = 64 }")
        .tenant("max_streams = 1")
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let mut second = lines_up(&gateway, &chat(), "second");
    for n in 0..3 {
        let ask = named(&chat(), &format!("other-{n}")).key(OTHER_KEY);
        must_be_served(&mut gateway.send(&ask), Dialect::Chat);
    }
    assert_eq!(gateway.record("second")["state"], "QUEUED");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    must_be_served(&mut second, Dialect::Chat);
    gateway.settled();
}

#[test]
fn a_tenants_slots_are_one_number_over_all_pools() {
    let turns = Turns::default();
    let engine = turns.engine();
    let second_pool = format!(
        "[[pool]]\nname = \"b\"\nmodels = [\"m2\"]\nbackends = [{{ addr = \"{}\" }}]\n{ONE_SLOT}\n",
        engine.addr()
    );
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .tenant("max_streams = 1")
        .extra(&second_pool)
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    // the other pool's slot is free, and its turn comes by a return in this one
    let mut elsewhere = lines_up(&gateway, &chat().set("model", "m2"), "elsewhere");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    must_be_served(&mut elsewhere, Dialect::Chat);
    assert_eq!(gateway.ended("elsewhere")["pool"], "b");
    gateway.settled();
}

#[test]
fn a_request_that_is_no_stream_waits_too() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let waiting = lines_up(&gateway, &whole_chat(), "whole");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    let answer = waiting.answer();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "t0");
    gateway.settled();
}

#[test]
fn where_only_the_backends_are_bounded_requests_wait_for_those() {
    let turns = Turns::default();
    let (one, two) = (turns.engine(), turns.engine());
    let bounded = format!(
        "[[pool]]\nname = \"b\"\nmodels = [\"bounded\"]\nqueue = {{ max_wait = \"20s\", max_len = 64 }}\n\
         backends = [{{ addr = \"{}\", max_streams = 1 }}, {{ addr = \"{}\", max_streams = 1 }}]\n",
        one.addr(),
        two.addr()
    );
    let gateway = Gateway::builder()
        .backend(one.addr())
        .extra(&bounded)
        .start();
    let ask = chat().set("model", "bounded");
    let mut running = ["r0", "r1"].map(|name| turns.holds(&gateway, &ask, name));
    let mut waiting = ["w0", "w1", "w2"].map(|name| lines_up(&gateway, &ask, name));
    turns.let_go();
    turns.let_go();
    for stream in running.iter_mut().chain(&mut waiting) {
        must_be_served(stream, Dialect::Chat);
    }
    gateway.settled();
    let full = [("code", "pool_slots_full")];
    assert_eq!(gateway.metric("streamgate_rejected_total", &full), 0.0);
}

#[test]
fn no_more_run_than_there_are_slots_however_many_come_at_once() {
    const CLIENTS: usize = 60;
    let gauge = Gauge::default();
    let engine = Engine::scripted({
        let gauge = gauge.clone();
        move |call| {
            let inside = gauge.enter();
            call.head()?;
            (0..2).try_for_each(|n| {
                call.delta(&token(n))?;
                call.pause(ms(2))
            })?;
            // before the end is written: nobody can know of it sooner
            drop(inside);
            call.done()
        }
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .threads(0)
        .pool("max_streams = 3\nqueue = { max_wait = \"60s\", max_len = 64 }")
        .start();
    std::thread::scope(|scope| {
        for n in 0..CLIENTS {
            let gateway = &gateway;
            scope.spawn(move || {
                let body = gateway.chat(&format!("crowd-{n}")).rest();
                assert!(events::is_done(&body));
            });
        }
    });
    assert!(gauge.peak() <= 3, "{} at once, of three", gauge.peak());
    gateway.settled();
    let completed = gateway.metric("streamgate_requests_total", &[("state", "COMPLETED")]);
    assert_eq!(completed, CLIENTS as f64);
}

#[test]
fn a_drain_lets_those_in_line_be_served() {
    let turns = Turns::default();
    let engine = turns.engine();
    let mut gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let mut waiting = ["w0", "w1"].map(|name| lines_up(&gateway, &chat(), name));
    gateway.signal(Signal::Term);
    wait::until("new connections to be closed", || {
        let socket = std::net::TcpStream::connect(gateway.addr());
        socket.map_or(Ok(()), |_| Err("one was taken".to_owned()))
    });
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    for stream in &mut waiting {
        must_be_served(stream, Dialect::Chat);
    }
    assert_eq!(gateway.exit(), 0);
    gateway.restart();
    assert_eq!(gateway.record("w1")["state"], "COMPLETED");
}

#[test]
fn a_drain_that_is_over_ends_those_in_line_and_starts_none_of_them() {
    let turns = Turns::default();
    let engine = turns.engine();
    let mut gateway = Gateway::builder()
        .backend(engine.addr())
        .server("drain_timeout = \"300ms\"")
        .pool(ONE_SLOT)
        .start();
    let _hold = turns.holds(&gateway, &chat(), "hold");
    let waiting: Vec<(String, Stream)> = (0..8)
        .map(|n| format!("late-{n}"))
        .map(|name| (name.clone(), lines_up(&gateway, &chat(), &name)))
        .collect();
    gateway.signal(Signal::Term);
    let ids: Vec<String> = waiting
        .into_iter()
        .map(|(name, stream)| {
            stream.answer().must_refuse(503, "draining");
            name
        })
        .collect();
    assert_eq!(gateway.exit(), 0);
    assert_eq!(turns.order(), ["hold"]);
    gateway.restart();
    for id in ids {
        let record = gateway.record(&id);
        assert_eq!(record["ended_by"], "drain", "{record}");
        assert_eq!(record["charged_units"], 0, "{record}");
        assert_eq!(record["attempts"], serde_json::json!([]), "{record}");
    }
}

#[test]
fn streams_of_one_http2_connection_wait_for_each_other() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .pool(ONE_SLOT)
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let connection = Http2::connect(gateway.addr());
    let mut waiting = ["h0", "h1", "h2"].map(|name| {
        let stream = connection.send(&named(&chat(), name));
        is_queued(&gateway, KEY, name);
        stream
    });
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    for stream in &mut waiting {
        let body = stream.rest();
        assert_eq!(stream.status, 200);
        assert!(events::is_done(&body));
    }
    assert_eq!(turns.order(), ["hold", "h0", "h1", "h2"]);
    gateway.settled();
}

#[test]
fn a_retry_keeps_the_slot_it_has() {
    let (run, door) = (tokens(1, ms(0)), Door::default());
    let is_in_line = door.clone();
    let engine = Engine::scripted(move |call| {
        if call.seen.number == 0 {
            door.pass()?;
            return call.answer(
                503,
                "application/json",
                b"{\"error\":{\"message\":\"busy\"}}",
            );
        }
        run(call)
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .start();
    let mut first = gateway.chat("first");
    engine.call(0);
    let mut second = lines_up(&gateway, &chat(), "second");
    is_in_line.open();
    assert!(events::is_done(&first.rest()));
    assert!(events::is_done(&second.rest()));
    let ids: Vec<Value> = ["first", "second"]
        .map(|id| gateway.ended(id)["attempts"].clone())
        .into();
    assert_eq!(ids[0].as_array().map(Vec::len), Some(2), "{ids:?}");
    assert_eq!(ids[1].as_array().map(Vec::len), Some(1), "{ids:?}");
    let turns: Vec<bool> = engine
        .calls()
        .iter()
        .map(|call| call.headers.get("x-turn") == Some("second"))
        .collect();
    assert_eq!(turns, [false, false, true], "the retry lost its turn");
    gateway.settled();
}

#[test]
fn an_id_in_line_is_an_id_that_runs() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let mut waiting = lines_up(&gateway, &chat(), "same");
    let again = gateway.answer(&named(&chat(), "same"));
    again.must_refuse(409, "request_running");
    let other_payload = named(&chat().set("max_tokens", 7), "same");
    gateway
        .answer(&other_payload)
        .must_refuse(422, "request_id_mismatch");
    let mut elses = lines_up_as(OTHER_KEY, &gateway, &chat(), "same");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    must_be_served(&mut waiting, Dialect::Chat);
    must_be_served(&mut elses, Dialect::Chat);
    assert_eq!(turns.order(), ["hold", "same", "same"]);
    gateway.settled();
}

#[test]
fn what_waits_for_each_pool_is_told_apart() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = dialect::gateway(&engine, ONE_SLOT);
    let mut holds = [
        turns.holds(&gateway, &Dialect::Chat.ask(), "hold-p"),
        turns.holds(&gateway, &Dialect::Messages.ask(), "hold-a"),
    ];
    let mut waiting = [
        lines_up(&gateway, &Dialect::Messages.ask(), "wait-a"),
        lines_up(&gateway, &Dialect::Completions.ask(), "wait-p"),
        lines_up(&gateway, &Dialect::Responses.ask(), "wait-p2"),
    ];
    let length = |pool| gateway.metric("streamgate_queue_length", &[("pool", pool)]);
    assert_eq!((length("p"), length("a")), (2.0, 1.0));
    turns.let_go();
    turns.let_go();
    must_be_served(&mut holds[0], Dialect::Chat);
    must_be_served(&mut holds[1], Dialect::Messages);
    let dialects = [Dialect::Messages, Dialect::Completions, Dialect::Responses];
    for (stream, dialect) in waiting.iter_mut().zip(dialects) {
        must_be_served(stream, dialect);
    }
    gateway.settled();
}

#[test]
fn the_next_request_of_a_connection_does_not_look_like_a_client_that_leaves_the_line() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .start();
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    let mut waiting = lines_up(&gateway, &chat(), "first");
    waiting.write(&named(&chat(), "pipelined").bytes());
    // looked for as long as a client that leaves takes to be found
    assert!(!waiting.has_answer(ms(300)), "{waiting:?}");
    assert_eq!(gateway.record("first")["state"], "QUEUED");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    let first = waiting.next_answer();
    assert!(events::is_done(&first.body), "{}", first.text());
    let next = waiting.next_answer();
    assert!(events::is_done(&next.body), "{}", next.text());
    assert_eq!(turns.order(), ["hold", "first", "pipelined"]);
    gateway.settled();
}

#[test]
fn a_client_that_ends_its_own_side_keeps_its_place_only_where_the_pool_says_so() {
    for half_close in ["continue", "abort"] {
        let turns = Turns::default();
        let engine = turns.engine();
        let lines = format!("{ONE_SLOT}\nstream = {{ half_close = \"{half_close}\" }}");
        let gateway = Gateway::builder()
            .backend(engine.addr())
            .pool(&lines)
            .start();
        let mut hold = turns.holds(&gateway, &chat(), "hold");
        let mut waiting = lines_up(&gateway, &chat(), "half");
        waiting.half_close();
        if half_close == "abort" {
            assert_eq!(gateway.ended("half")["ended_by"], "client_closed");
            turns.let_go();
        } else {
            assert!(!waiting.has_answer(ms(300)), "{waiting:?}");
            turns.let_go();
            must_be_served(&mut waiting, Dialect::Chat);
        }
        must_be_served(&mut hold, Dialect::Chat);
        gateway.settled();
    }
}

#[test]
fn a_stop_at_once_ends_those_in_line_and_starts_none_of_them() {
    let turns = Turns::default();
    let engine = turns.engine();
    let mut gateway = Gateway::builder()
        .backend(engine.addr())
        .pool(ONE_SLOT)
        .start();
    let _hold = turns.holds(&gateway, &chat(), "hold");
    let mut waiting = ["late-0", "late-1", "late-2"].map(|name| lines_up(&gateway, &chat(), name));
    gateway.signal(Signal::Int);
    for stream in &mut waiting {
        // the connection may be gone before there was time to tell
        if let Ok(answer) = stream.try_answer() {
            answer.must_refuse(503, "draining");
        }
    }
    assert_eq!(gateway.exit(), 0);
    assert_eq!(turns.order(), ["hold"]);
    gateway.restart();
    for id in ["late-0", "late-1", "late-2"] {
        let record = gateway.record(id);
        assert_eq!(record["ended_by"], "drain", "{record}");
        assert_eq!(record["charged_units"], 0, "{record}");
    }
}
