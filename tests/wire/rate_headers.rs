//! What every answer tells of the tenant's rates: OpenAI's headers, Anthropic's on its routes, none where there is no limit.

use crate::support::OTHER_KEY;
use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::{Answer, Headers};
use crate::support::cost;
use crate::support::dialect::{self, Dialect};
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::script::completion;

const LIMITS: &str = "requests_per_minute = 100\nunits_per_minute = 6000";

const OPENAI: [&str; 6] = [
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
];

const ANTHROPIC: [&str; 6] = [
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-limit",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
];

/// The six values; fails unless each stands there once.
#[track_caller]
fn told<'a>(headers: &'a Headers, names: &[&str; 6]) -> [&'a str; 6] {
    names.map(|name| {
        assert_eq!(headers.count(name), 1, "{name}: {headers:?}");
        headers.get(name).unwrap()
    })
}

#[track_caller]
fn tells_nothing(headers: &Headers, names: &[&str; 6]) {
    for name in names {
        assert_eq!(headers.count(name), 0, "{name}: {headers:?}");
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

/// A Go duration, in milliseconds.
fn go_ms(text: &str) -> f64 {
    let mut rest = text;
    let mut ms = 0.0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or_else(|| panic!("{text:?}"));
        let (amount, tail) = rest.split_at(digits);
        let unit = tail
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let scale = match unit {
            "h" => 3_600_000.0,
            "m" => 60_000.0,
            "s" => 1000.0,
            "ms" => 1.0,
            _ => panic!("{text:?}"),
        };
        ms += scale
            * amount
                .parse::<f64>()
                .unwrap_or_else(|e| panic!("{text:?}: {e}"));
        rest = tail;
    }
    ms
}

#[test]
fn every_answer_of_an_openai_route_tells_what_is_left() {
    let engine = cost::engine(3, 1);
    let gateway = dialect::builder(&engine, "").tenant(LIMITS).start();
    let asks: [(&str, Ask, u16); 7] = [
        ("a stream", chat(), 200),
        ("a document", whole_chat(), 200),
        (
            "completions",
            Dialect::Completions.ask().without("stream"),
            200,
        ),
        ("responses", Dialect::Responses.ask().without("stream"), 200),
        ("native", Dialect::Native.ask().without("stream"), 200),
        ("bad JSON", Ask::post("/v1/chat/completions").body("{"), 400),
        ("an unknown model", chat().set("model", "nope"), 404),
    ];
    for (number_so_far, (name, ask, status)) in asks.into_iter().enumerate() {
        let answer = gateway.answer(&ask);
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
        let [limit, remaining, reset, units, units_left, units_reset] =
            told(&answer.headers, &OPENAI);
        assert_eq!((limit, units), ("100", "6000"), "{name}");
        let taken = number_so_far as u64 + 1;
        // 1.7 come back each second
        assert!(
            (100 - taken..=99).contains(&number(remaining)),
            "{name}: {remaining}"
        );
        assert!((0.0..=60_000.0).contains(&go_ms(reset)), "{name}: {reset}");
        assert!(number(units_left) <= 6000, "{name}: {units_left}");
        assert!(go_ms(units_reset) <= 60_000.0, "{name}: {units_reset}");
        tells_nothing(&answer.headers, &ANTHROPIC);
    }
    let models = gateway.answer(&Ask::get("/v1/models"));
    let before = number(told(&models.headers, &OPENAI)[1]);
    let models = gateway.answer(&Ask::get("/v1/models"));
    let after = number(told(&models.headers, &OPENAI)[1]);
    assert!(after >= before, "asking for the models took a request");
    let nobody = gateway.answer(&chat().key("sk-nobody"));
    tells_nothing(&nobody.headers, &OPENAI);
}

#[test]
fn a_refusal_tells_the_bucket_that_refused() {
    let engine = cost::engine(3, 1);
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("requests_per_minute = 1\nunits_per_minute = 6000")
        .start();
    let first = gateway.answer(&chat());
    assert_eq!(told(&first.headers, &OPENAI)[1], "0");
    let refused = gateway.answer(&chat());
    refused.must_refuse(429, "rate_limited");
    let [limit, remaining, reset, ..] = told(&refused.headers, &OPENAI);
    assert_eq!((limit, remaining), ("1", "0"));
    let wait = number(refused.headers.get("retry-after-ms").unwrap()) as f64;
    assert!((wait - go_ms(reset)).abs() <= 1000.0, "{wait} ms, {reset}");
}

/// A moment in RFC 3339, as seconds since the epoch.
fn unix(moment: &str) -> i64 {
    let parsed =
        time::OffsetDateTime::parse(moment, &time::format_description::well_known::Rfc3339);
    parsed
        .unwrap_or_else(|e| panic!("{moment:?}: {e}"))
        .unix_timestamp()
}

#[track_caller]
fn must_tell_as_anthropic(answer: &Answer) {
    let [limit, remaining, reset, units, _, units_reset] = told(&answer.headers, &ANTHROPIC);
    assert_eq!((limit, units), ("100", "6000"));
    assert!((90..100).contains(&number(remaining)), "{remaining}");
    let now = time::OffsetDateTime::now_utc().unix_timestamp();
    for moment in [reset, units_reset] {
        assert!((now - 10..=now + 61).contains(&unix(moment)), "{moment}");
        assert!(moment.ends_with('Z'), "{moment}");
    }
    tells_nothing(&answer.headers, &OPENAI);
}

#[test]
fn messages_tell_them_as_anthropic_does() {
    let engine = Engine::scripted(|call| {
        let messages = Dialect::Messages;
        if !call.is_stream() {
            let doc =
                r#"{"type":"message","content":[],"usage":{"input_tokens":3,"output_tokens":1}}"#;
            return call.answer(200, "application/json", doc.as_bytes());
        }
        call.head()?;
        call.chunk(&[messages.say("t0 "), messages.end()].concat())?;
        call.end()
    });
    let gateway = dialect::builder(&engine, "").tenant(LIMITS).start();
    let stream = gateway.answer(&Dialect::Messages.ask());
    assert_eq!(stream.status, 200);
    must_tell_as_anthropic(&stream);
    let whole = gateway.answer(&Dialect::Messages.ask().without("stream"));
    assert_eq!(whole.status, 200, "{}", whole.text());
    must_tell_as_anthropic(&whole);
    let refused = gateway.answer(&Dialect::Messages.ask().set("model", "nope"));
    assert_eq!(refused.status, 404);
    must_tell_as_anthropic(&refused);
}

#[test]
fn a_tenant_without_limits_is_told_none() {
    let engine = cost::engine(3, 1);
    let gateway = Gateway::before(&engine);
    for ask in [chat(), whole_chat(), Ask::get("/v1/models")] {
        tells_nothing(&gateway.answer(&ask).headers, &OPENAI);
    }
}

#[test]
fn a_tenant_with_one_limit_is_told_that_one() {
    let engine = cost::engine(3, 1);
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("units_per_minute = 6000")
        .start();
    let answer = gateway.answer(&chat());
    assert_eq!(answer.headers.get("x-ratelimit-limit-tokens"), Some("6000"));
    assert_eq!(answer.headers.count("x-ratelimit-limit-requests"), 0);
}

#[test]
fn an_upstreams_headers_of_these_names_give_way() {
    let engine = Engine::scripted(|call| {
        let theirs: Vec<(&str, &str)> = OPENAI.iter().map(|name| (*name, "999999")).collect();
        let stream = call.is_stream();
        let body = completion(1).to_string();
        let length = body.len().to_string();
        let framing = match stream {
            true => [
                ("Content-Type", "text/event-stream"),
                ("Transfer-Encoding", "chunked"),
            ],
            false => [
                ("Content-Type", "application/json"),
                ("Content-Length", length.as_str()),
            ],
        };
        call.head_with(200, &[theirs.as_slice(), &framing].concat())?;
        if stream {
            call.delta("t0 ")?;
            return call.done();
        }
        call.raw(body.as_bytes())
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant(LIMITS)
        .start();
    for ask in [chat(), whole_chat()] {
        let answer = gateway.answer(&ask);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let told = told(&answer.headers, &OPENAI);
        assert!(!told.contains(&"999999"), "{told:?}");
    }
    let unlimited = gateway.answer(&chat().key(OTHER_KEY));
    assert_eq!(
        told(&unlimited.headers, &OPENAI)[0],
        "999999",
        "where there is no limit of ours, the upstream's own pass"
    );
}

#[test]
fn a_refusal_on_messages_is_anthropics_and_tells_when_to_come_back() {
    let engine = cost::engine(3, 1);
    let gateway = dialect::builder(&engine, "")
        .tenant("requests_per_minute = 1")
        .start();
    let messages = Dialect::Messages.ask();
    gateway.answer(&messages.clone().set("model", "nope"));
    let refused = gateway.answer(&messages);
    assert_eq!(refused.status, 429, "{}", refused.text());
    let doc = refused.json();
    assert_eq!(doc["type"], "error", "{doc}");
    assert_eq!(doc["error"]["type"], "rate_limit_error", "{doc}");
    assert_eq!(doc["error"]["code"], "rate_limited", "{doc}");
    let remaining = refused
        .headers
        .get("anthropic-ratelimit-requests-remaining");
    assert_eq!(remaining, Some("0"), "{:?}", refused.headers);
    let wait = refused.headers.get("retry-after").map(number);
    assert!(wait.is_some_and(|s| (1..=60).contains(&s)), "{wait:?}");
}
