//! Requests and units per minute: exact however many come at once, told as they are, and given back where not used.
//! What clients are told of them is in `rate_headers`.

use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::Answer;
use crate::support::config::Builder;
use crate::support::cost::{self, INPUT, reserving};
use crate::support::dialect::Dialect;
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::process::Signal;
use crate::support::script::holding;
use crate::support::turns::Turns;
use crate::support::wait::{self, ms, seconds};
use crate::support::{OTHER_KEY, dialect};
use serde_json::json;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Sends all of them at once.
fn at_once(gateway: &Gateway, count: usize, ask: &Ask) -> Vec<Answer> {
    let barrier = Barrier::new(count);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..count)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    gateway.answer(ask)
                })
            })
            .collect();
        clients.into_iter().map(|c| c.join().unwrap()).collect()
    })
}

/// The wait that a refusal tells.
fn told(answer: &Answer) -> Duration {
    let told = answer.headers.get("retry-after-ms");
    ms(told.and_then(|ms| ms.parse().ok()).unwrap_or(0))
}

/// What is left of the tenant's units of the minute.
fn left(gateway: &Gateway) -> u64 {
    let models = gateway.answer(&Ask::get("/v1/models"));
    let left = models.headers.get("x-ratelimit-remaining-tokens");
    left.and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("{:?}", models.headers))
}

fn limited(engine: &Engine, lines: &str) -> Builder {
    Gateway::builder().backend(engine.addr()).tenant(lines)
}

#[test]
fn requests_of_a_minute_are_exact_under_fifty_at_once() {
    let engine = cost::engine(3, 1);
    let gateway = limited(&engine, "requests_per_minute = 10")
        .threads(0)
        .start();
    let start = Instant::now();
    let answers = at_once(&gateway, 50, &chat());
    // one comes back every six seconds
    let more = usize::try_from(start.elapsed().as_secs() / 6).unwrap();
    let served = answers.iter().filter(|a| a.status == 200).count();
    assert!(
        (10..=10 + more).contains(&served),
        "{served} of 50 were served"
    );
    assert_eq!(engine.calls().len(), served);
    for answer in answers.iter().filter(|a| a.status != 200) {
        answer.must_refuse(429, "rate_limited");
        assert!(
            (ms(1)..=seconds(6)).contains(&told(answer)),
            "{:?}",
            answer.headers
        );
    }
    let another = gateway.answer(&chat().key(OTHER_KEY));
    assert_eq!(another.status, 200, "another tenant: {}", another.text());
    let refused = [("code", "rate_limited"), ("tenant", "acme")];
    let counted = gateway.metric("streamgate_rejected_total", &refused);
    assert_eq!(counted, (50 - served) as f64);
}

#[test]
fn units_of_a_minute_are_exact_under_fifty_at_once() {
    let engine = Engine::scripted(holding(1));
    // five and a half reservations: the sixth has to wait for half a minute's tenth
    let gateway = limited(&engine, "units_per_minute = 550")
        .threads(0)
        .start();
    let start = Instant::now();
    let barrier = Barrier::new(50);
    let mut streams: Vec<_> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..50)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    gateway.send(&reserving(100))
                })
            })
            .collect();
        clients.into_iter().map(|c| c.join().unwrap()).collect()
    });
    let served = streams
        .iter_mut()
        .filter_map(|s| (s.status() == 200).then_some(()))
        .count();
    let filled = start.elapsed().as_millis() * 550 / 60_000;
    let most = usize::try_from((550 + filled) / 100).unwrap();
    assert!((5..=most).contains(&served), "{served} were let in");
    let reserved = gateway.metric("streamgate_units_reserved", &[("tenant", "acme")]);
    assert_eq!(reserved, served as f64 * 100.0);
    streams.into_iter().for_each(|stream| stream.close());
    gateway.settled();
}

#[test]
fn a_request_takes_what_it_reserves_and_gives_back_what_it_did_not_use() {
    let turns = Turns::default();
    let engine = turns.engine();
    // a unit comes back every ten seconds
    let gateway = limited(&engine, "units_per_minute = 6").start();
    let mut hold = turns.holds(&gateway, &reserving(5), "hold");
    assert!((1..=2).contains(&left(&gateway)), "{} left", left(&gateway));
    let refused = gateway.answer(&reserving(5));
    refused.must_refuse(429, "rate_limited");
    assert!(
        (seconds(20)..=seconds(40)).contains(&told(&refused)),
        "{:?}",
        refused.headers
    );
    turns.let_go();
    hold.rest();
    gateway.settled();
    // it cost its input and one event
    let charged = gateway.ended("hold")["charged_units"].as_u64().unwrap();
    assert_eq!(charged, INPUT + 1);
    assert!((2..=4).contains(&left(&gateway)), "{} left", left(&gateway));
}

#[test]
fn a_client_that_goes_gets_its_units_back_but_for_what_was_made() {
    let engine = Engine::scripted(holding(2));
    let gateway = limited(&engine, "units_per_minute = 6000").start();
    let mut stream = gateway.send(&reserving(5900).id("gone"));
    stream.says("t0 ");
    stream.says("t1 ");
    gateway
        .answer(&reserving(5900))
        .must_refuse(429, "rate_limited");
    stream.reset();
    let charged = gateway.ended("gone")["charged_units"].as_u64().unwrap();
    assert_eq!(charged, INPUT + 2);
    gateway.settled();
    assert!(left(&gateway) >= 6000 - charged, "{} left", left(&gateway));
}

#[test]
fn an_answer_that_costs_more_than_it_reserved_takes_that_too() {
    let engine = cost::engine(3, 3000);
    let gateway = limited(&engine, "units_per_minute = 6000").start();
    let start = Instant::now();
    assert_eq!(gateway.answer(&reserving(100).id("over")).status, 200);
    gateway.settled();
    let filled = start.elapsed().as_millis() as u64 / 10 + 1;
    assert!(
        (2997..=2997 + filled).contains(&left(&gateway)),
        "{} left",
        left(&gateway)
    );
}

#[test]
fn a_refusal_for_the_budget_or_a_slot_takes_none_of_the_minutes_units() {
    let engine = Engine::scripted(holding(1));
    let lines =
        "units_per_minute = 6000\nmax_streams = 1\nbudget = { units = 1000, period = \"total\" }";
    let gateway = limited(&engine, lines).start();
    let budget = gateway.answer(&reserving(2000));
    budget.must_refuse_for_good(429, "budget_exhausted");
    assert_eq!(left(&gateway), 6000);
    let mut stream = gateway.send(&reserving(100));
    stream.says("t0 ");
    gateway
        .answer(&reserving(800))
        .must_refuse(429, "tenant_slots_full");
    assert!(left(&gateway) >= 5900, "{} left", left(&gateway));
    stream.close();
    gateway.settled();
}

#[test]
fn waiting_for_as_long_as_told_is_enough() {
    let engine = cost::engine(3, 1197);
    // twenty units a second
    let gateway = limited(&engine, "units_per_minute = 1200").start();
    assert_eq!(gateway.answer(&reserving(1200)).status, 200);
    gateway.settled();
    let refused = gateway.answer(&reserving(60));
    refused.must_refuse(429, "rate_limited");
    let wait = told(&refused);
    assert!((ms(1)..=seconds(3)).contains(&wait), "{wait:?}");
    std::thread::sleep(wait);
    let answer = gateway.answer(&reserving(60));
    assert_eq!(answer.status, 200, "after {wait:?}: {}", answer.text());
}

#[test]
fn waiting_for_a_request_for_as_long_as_told_is_enough() {
    let engine = cost::engine(3, 1);
    // one each half second
    let gateway = limited(&engine, "requests_per_minute = 120").start();
    let refused = (0..400)
        .map(|_| gateway.answer(&whole_chat()))
        .find(|answer| answer.status != 200);
    let refused = refused.expect("four hundred were served");
    refused.must_refuse(429, "rate_limited");
    let wait = told(&refused);
    assert!((ms(1)..=ms(500)).contains(&wait), "{wait:?}");
    std::thread::sleep(wait);
    let answer = gateway.answer(&whole_chat());
    assert_eq!(answer.status, 200, "after {wait:?}: {}", answer.text());
}

#[test]
fn more_than_a_whole_minutes_units_is_a_400_that_names_the_member() {
    let engine = cost::engine(3, 1);
    let gateway = dialect::builder(&engine, "")
        .tenant("units_per_minute = 60")
        .start();
    let long = "word ".repeat(100);
    let embeddings = Ask::post("/v1/embeddings").json(json!({"model": "m", "input": long}));
    let completion_tokens = chat()
        .without("max_tokens")
        .set("max_completion_tokens", 100);
    let both = chat().set("max_completion_tokens", 90);
    let cases = [
        (chat(), "max_tokens"),
        (chat().without("max_tokens"), "max_tokens"),
        (completion_tokens, "max_completion_tokens"),
        (both, "max_completion_tokens"),
        (Dialect::Completions.ask(), "max_tokens"),
        (Dialect::Responses.ask(), "max_output_tokens"),
        (
            Dialect::Responses.ask().without("max_output_tokens"),
            "max_output_tokens",
        ),
        (Dialect::Native.ask(), "max_output_units"),
        (embeddings, "input"),
    ];
    for (ask, member) in cases {
        let answer = gateway.answer(&ask);
        answer.must_refuse_for_good(400, "invalid_request");
        assert_eq!(answer.error()["param"], member, "{}", answer.text());
    }
    let messages = gateway.answer(&Dialect::Messages.ask());
    assert_eq!(messages.status, 400, "{}", messages.text());
    assert_eq!(messages.json()["error"]["type"], "invalid_request_error");
    assert_eq!(engine.calls().len(), 0);
    assert_eq!(left(&gateway), 60, "a refused request took units");
    let fits = gateway.answer(&reserving(60));
    assert_eq!(fits.status, 200, "{}", fits.text());
}

#[test]
fn what_was_taken_survives_a_reload_and_a_raised_limit_is_in_force_at_once() {
    let engine = cost::engine(3, 1);
    let mut gateway = limited(&engine, "requests_per_minute = 2\nweight = 1").start();
    for _ in 0..2 {
        assert_eq!(gateway.answer(&chat()).status, 200);
    }
    let limit = |gateway: &Gateway| {
        let models = gateway.answer(&Ask::get("/v1/models"));
        models
            .headers
            .get("x-ratelimit-limit-requests")
            .map(str::to_owned)
    };
    gateway.written.replace("weight = 1", "weight = 2");
    gateway.signal(Signal::Hup);
    wait::until("the reload to be told", || {
        let log = gateway.process.output();
        match log.contains("the config was reloaded") {
            true => Ok(()),
            false => Err(log),
        }
    });
    gateway.process.must_run();
    gateway.answer(&chat()).must_refuse(429, "rate_limited");
    gateway
        .written
        .replace("requests_per_minute = 2", "requests_per_minute = 60");
    gateway.signal(Signal::Hup);
    wait::until_true("the raised limit", || {
        limit(&gateway).as_deref() == Some("60")
    });
    for _ in 0..20 {
        assert_eq!(gateway.answer(&chat()).status, 200);
    }
    gateway
        .written
        .replace("requests_per_minute = 60", "requests_per_minute = 1");
    gateway.signal(Signal::Hup);
    wait::until_true("the lowered limit", || {
        limit(&gateway).as_deref() == Some("1")
    });
    gateway.answer(&chat()).must_refuse(429, "rate_limited");
}

#[test]
fn bad_requests_take_one_of_the_minutes_requests_and_unknown_keys_take_none() {
    let engine = cost::engine(3, 1);
    let gateway = limited(&engine, "requests_per_minute = 3").start();
    let bad = Ask::post("/v1/chat/completions").body("{");
    gateway.answer(&bad).must_refuse(400, "invalid_json");
    gateway
        .answer(&chat().set("model", "nope"))
        .must_refuse(404, "model_not_found");
    for _ in 0..5 {
        gateway
            .answer(&chat().key("sk-nobody"))
            .must_refuse(401, "invalid_api_key");
        assert_eq!(gateway.answer(&Ask::get("/v1/models")).status, 200);
    }
    assert_eq!(gateway.answer(&chat()).status, 200);
    gateway.answer(&chat()).must_refuse(429, "rate_limited");
}
