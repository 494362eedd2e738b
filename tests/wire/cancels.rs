//! Cancelling by id, in every state a request can be in.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::books::Books;
use crate::support::client::{Broken, Stream};
use crate::support::dialect::{self, Dialect};
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::phase::{ENDPOINTS, Endpoint, Ground, PHASES, Phase};
use crate::support::random::Random;
use crate::support::script::{holding, silent, token, tokens};
use crate::support::turns::{ONE_SLOT, Turns, is_queued};
use crate::support::wait::ms;
use crate::support::{KEY, OTHER_KEY};
use serde_json::Value;
use std::time::{Duration, Instant};

/// From the cancel to the upstream's close.
const BOUND: Duration = ms(500);

#[test]
fn a_cancelled_stream_ends_with_an_error_event_and_a_proper_end() {
    let engine = Engine::scripted(holding(3));
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("cut-1");
    (0..3).for_each(|n| stream.says(&token(n)));
    let cancel = gateway.cancel("cut-1");
    assert_eq!(
        (cancel.status, cancel.json()["request_id"].as_str()),
        (202, Some("cut-1"))
    );
    assert_eq!(events::final_error(&stream.rest())["code"], "cancelled");
    engine.call(0).closed();
    let record = gateway.ended("cut-1");
    assert_eq!(record["state"], "CANCELLED", "{record}");
    assert_eq!(record["ended_by"], "cancel_api", "{record}");
    assert!(record["cancel_requested_at"].is_string(), "{record}");
    gateway.settled();
}

#[test]
fn a_request_cancelled_before_anything_was_shown_is_499() {
    for ask in [chat().id("early-stream"), whole_chat().id("early-whole")] {
        let id = if ask.document()["stream"] == true {
            "early-stream"
        } else {
            "early-whole"
        };
        let engine = Engine::scripted(silent);
        let gateway = Gateway::before(&engine);
        let stream = gateway.send(&ask);
        engine.held(0);
        assert_eq!(gateway.cancel(id).status, 202);
        stream.answer().must_refuse(499, "cancelled");
        engine.call(0).closed();
        let record = gateway.ended(id);
        assert_eq!(record["state"], "CANCELLED", "{record}");
        assert_eq!(
            record["first_output_at"],
            serde_json::Value::Null,
            "{record}"
        );
        gateway.settled();
    }
}

#[test]
fn cancelling_twice_is_no_error() {
    let engine = Engine::scripted(holding(1));
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("twice-1");
    stream.says("t0 ");
    assert_eq!(gateway.cancel("twice-1").status, 202);
    stream.rest();
    gateway.ended("twice-1");
    let again = gateway.cancel("twice-1");
    assert_eq!(
        (again.status, again.json()["state"].as_str()),
        (200, Some("CANCELLED"))
    );
}

#[test]
fn a_slow_reader_can_be_cancelled_while_its_write_is_blocked() {
    // more than all sockets on the way can hold, to a client that reads nothing
    let piece = events::delta(&"x".repeat(60_000));
    let engine = Engine::scripted(move |call| {
        call.head()?;
        (0..2000).try_for_each(|_| call.chunk(&piece))?;
        call.done()
    });
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("slow-1");
    assert_eq!(stream.status(), 200);
    gateway.reaches("slow-1", "STREAMING");
    assert_eq!(gateway.cancel("slow-1").status, 202);
    engine.call(0).closed();
    assert_eq!(gateway.ended("slow-1")["ended_by"], "cancel_api");
    gateway.settled();
    drop(stream);
}

/// What stays of a record once its request has ended.
fn end_of(record: &Value) -> Vec<Value> {
    let members = [
        "request_id",
        "state",
        "ended_by",
        "upstream_end",
        "generated_units",
        "charged_units",
        "ended_at",
    ];
    members
        .iter()
        .map(|member| record[member].clone())
        .collect()
}

#[track_caller]
fn cancelled_by_another(gateway: &Gateway, id: &str) {
    let cancel = Ask::post(format!("/generations/{id}/cancel")).key(OTHER_KEY);
    gateway.answer(&cancel).must_refuse(404, "unknown_request");
}

/// What the client gets of a request that was cancelled.
#[track_caller]
fn must_be_told(stream: &mut Stream, phase: Phase, endpoint: Endpoint) {
    if !endpoint.has_head(phase) {
        let answer = stream.next_answer();
        assert_eq!(answer.status, 499, "{}", answer.text());
        assert_eq!(
            answer.json()["error"]["code"],
            "cancelled",
            "{}",
            answer.text()
        );
        return;
    }
    if phase == Phase::InWholeBody {
        // a body of known length can only be broken off
        assert_eq!(stream.try_rest(), Err(Broken::Cut));
        return;
    }
    let body = stream.rest();
    if phase == Phase::AfterTheEnd {
        assert!(endpoint.is_there(phase, &body), "{stream:?}");
    } else {
        assert_eq!(endpoint.dialect().final_error(&body), "cancelled");
    }
}

/// Cancels one request in its phase. `number` is the engine's next call; whether it was called.
fn cancel(ground: &Ground, number: usize, phase: Phase, endpoint: Endpoint) -> bool {
    let gateway = &ground.gateway;
    let id = format!("{phase:?}-{}", endpoint.api());
    let [state, ended_by, ..] = phase.cut_by("cancel_api");
    let books = || Books::of(gateway, endpoint.api(), state, ended_by);
    let before = books();
    let mut stream = gateway.send(&endpoint.ask(phase).id(&id));
    let call = ground.arrives(number, phase, &id);
    if endpoint.has_head(phase) {
        stream.read_until(|body| endpoint.is_there(phase, body));
    }
    cancelled_by_another(gateway, &id);
    let untouched = call
        .as_ref()
        .is_none_or(|call| call.fate().closed_at.is_none());
    assert!(untouched, "{id}: another tenant's cancel closed it");
    let asked = Instant::now();
    let first = gateway.cancel(&id);
    assert_eq!(first.json()["request_id"], id.as_str(), "{}", first.text());
    if phase != Phase::AfterTheEnd {
        assert_eq!(first.status, 202, "{}", first.text());
    }
    let closed = call.map(|call| call.closed().saturating_duration_since(asked));
    assert!(
        closed.unwrap_or_default() <= BOUND,
        "{id}: closed after {closed:?}"
    );
    must_be_told(&mut stream, phase, endpoint);
    let record = gateway.ended(&id);
    phase.must_be_cut("cancel_api", &record);
    if phase != Phase::AfterTheEnd {
        assert!(record["cancel_requested_at"].is_string(), "{record}");
    }
    let again = gateway.cancel(&id);
    assert_eq!(
        (again.status, end_of(&again.json())),
        (200, end_of(&record)),
        "{record}"
    );
    gateway.settled();
    books().must_be_one_more_than(&before, &record);
    closed.is_some()
}

#[test]
fn a_request_is_cancelled_in_any_phase_of_any_api_once_and_only_by_its_tenant() {
    let ground = Ground::start();
    let mut calls = 0;
    for phase in PHASES {
        for endpoint in ENDPOINTS.into_iter().filter(|e| e.has(phase)) {
            calls += usize::from(cancel(&ground, calls, phase, endpoint));
        }
    }
    assert_eq!(ground.engine.calls().len(), calls);
    let never = ground.gateway.cancel("never-was");
    never.must_refuse(404, "unknown_request");
}

/// What a race over the end of a request may come to: completed whole, or cut short and told so.
#[track_caller]
fn must_have_one_end(gateway: &Gateway, id: &str, stream: &mut Stream) -> Value {
    let status = stream.status();
    let body = stream.rest();
    let record = gateway.ended(id);
    let told = String::from_utf8_lossy(&body).into_owned();
    match record["state"].as_str() {
        Some("COMPLETED") => {
            assert_eq!(record["ended_by"], "upstream", "{record}");
            assert!(events::is_done(&body), "{record}: {told}");
        }
        Some("CANCELLED") => {
            assert_eq!(record["ended_by"], "cancel_api", "{record}");
            match status {
                200 => assert_eq!(Dialect::Chat.final_error(&body), "cancelled", "{record}"),
                status => assert_eq!(status, 499, "{record}: {told}"),
            }
        }
        _ => panic!("neither completed nor cancelled: {record}"),
    }
    assert_eq!(
        end_of(&gateway.record(id)),
        end_of(&record),
        "an end that changed"
    );
    record
}

#[test]
fn a_cancel_that_races_the_natural_end_finds_one_end_and_one_settlement() {
    let engine = Engine::scripted(tokens(3, ms(2)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("budget = { units = 100000000, period = \"total\" }")
        .start();
    let mut random = Random::new(11);
    let mut records = Vec::new();
    for n in 0..60 {
        let id = format!("race-{n}");
        let mut stream = gateway.chat(&id);
        // the moment is what differs from one round to the next
        std::thread::sleep(Duration::from_micros(random.below(9000) as u64));
        let status = gateway.cancel(&id).status;
        // 404: it came before the request itself was read
        assert!(matches!(status, 200 | 202 | 404), "{id}: {status}");
        records.push(must_have_one_end(&gateway, &id, &mut stream));
    }
    gateway.settled();
    let cancelled = records.iter().filter(|r| r["state"] == "CANCELLED").count();
    let sum: f64 = records
        .iter()
        .filter_map(|r| r["charged_units"].as_f64())
        .sum();
    let books = Books::of(&gateway, "chat", "CANCELLED", "cancel_api");
    let expected = Books {
        requests: 60.0,
        ended_so: cancelled as f64,
        charged: sum,
        remaining: 100_000_000.0 - sum,
    };
    assert_eq!(books, expected);
}

#[test]
fn many_cancels_at_once_and_a_client_that_leaves_find_one_end() {
    let engine = Engine::scripted(holding(1));
    let gateway = Gateway::before(&engine);
    for n in 0..20 {
        let id = format!("many-{n}");
        let mut stream = gateway.chat(&id);
        stream.says("t0 ");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let status = gateway.cancel(&id).status;
                    assert!(matches!(status, 200 | 202), "{status}");
                });
            }
            scope.spawn(|| stream.reset());
        });
        let record = gateway.ended(&id);
        assert_eq!(record["state"], "CANCELLED", "{record}");
        let by = record["ended_by"].as_str().unwrap();
        assert!(matches!(by, "cancel_api" | "client_closed"), "{record}");
        engine.call(n).closed();
    }
    gateway.settled();
    assert_eq!(gateway.metric("streamgate_requests_total", &[]), 20.0);
}

/// Cancels one request that waits in line, by its id.
fn cancel_in_line(turns: &Turns, gateway: &Gateway, endpoint: Endpoint) {
    let phase = if endpoint.has(Phase::BeforeHeaders) {
        Phase::BeforeHeaders
    } else {
        Phase::Whole
    };
    let id = format!("line-{}", endpoint.api());
    let mut hold = turns.holds(
        gateway,
        &endpoint.ask(phase).key(OTHER_KEY),
        &format!("hold-{id}"),
    );
    let ran = turns.order().len();
    let stream = gateway.send(&endpoint.ask(phase).id(&id));
    is_queued(gateway, KEY, &id);
    cancelled_by_another(gateway, &id);
    let cancel = gateway.cancel(&id);
    assert_eq!(cancel.status, 202, "{}", cancel.text());
    let answer = stream.answer();
    assert_eq!(answer.status, 499, "{}", answer.text());
    assert_eq!(
        answer.json()["error"]["code"],
        "cancelled",
        "{}",
        answer.text()
    );
    let record = gateway.ended(&id);
    let told = ["state", "ended_by", "upstream_end"].map(|member| record[member].clone());
    assert_eq!(told, ["CANCELLED", "cancel_api", "none"], "{record}");
    assert_eq!(record["attempts"], serde_json::json!([]), "{record}");
    assert_eq!(record["charged_units"], 0, "{record}");
    assert!(record["cancel_requested_at"].is_string(), "{record}");
    let again = gateway.cancel(&id);
    assert_eq!(
        (again.status, end_of(&again.json())),
        (200, end_of(&record)),
        "{record}"
    );
    assert_eq!(gateway.metric("streamgate_queue_length", &[]), 0.0);
    turns.let_go();
    hold.rest();
    gateway.settled();
    assert_eq!(turns.order().len(), ran, "{id} ran");
}

#[test]
fn a_request_of_any_api_is_cancelled_in_line_and_costs_nothing() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = dialect::builder(&engine, ONE_SLOT)
        .tenant("budget = { units = 100000, period = \"total\" }")
        .start();
    for endpoint in ENDPOINTS {
        cancel_in_line(&turns, &gateway, endpoint);
    }
    let remaining = gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]);
    assert_eq!(remaining, 100_000.0);
}

/// At whatever moment of its admission a request is cancelled: it stops, or is not known yet.
#[test]
fn a_cancel_that_meets_the_admission_is_not_lost() {
    let engine = Engine::scripted(holding(1));
    let gateway = Gateway::before(&engine);
    let mut random = Random::new(11);
    let (mut accepted, mut unknown) = (0, 0);
    for n in 0..200 {
        let id = format!("opening-{n}");
        let mut stream = gateway.send(&chat().id(&id));
        std::thread::sleep(Duration::from_micros(random.below(1500) as u64));
        let cancel = gateway.cancel(&id);
        match cancel.status {
            202 => accepted += 1,
            404 => {
                unknown += 1;
                stream.says("t0 ");
                assert_eq!(gateway.cancel(&id).status, 202);
            }
            _ => panic!("{}", cancel.text()),
        }
        stream.try_rest().ok();
        assert_eq!(gateway.ended(&id)["ended_by"], "cancel_api", "{id}");
    }
    assert!(accepted > 0, "all {unknown} came too early");
    gateway.settled();
}
