//! `clamp`: a request over what is left of the budget runs with a smaller cap, in its own API's words; without, it is
//! refused. The engine refuses each, so that nothing is charged and the same is left for the next.

use crate::support::ask::{Ask, chat};
use crate::support::dialect::{self, Dialect};
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use serde_json::{Value, json};

/// What is left for output; the prompts here are three units.
const LEFT: u64 = 50;

const LINES: &str = "clamp = true\nbudget = { units = 53, period = \"total\" }";

fn refusing() -> Engine {
    Engine::scripted(|call| {
        let body = b"{\"error\":{\"message\":\"not today\",\"type\":\"invalid_request_error\"}}";
        call.answer(400, "application/json", body)
    })
}

/// A request, and the caps that the engine must find in it.
type Case = (&'static str, Ask, Value, u64);

fn cases() -> Vec<Case> {
    let none = |ask: Ask| ask.without("max_tokens");
    vec![
        (
            "chat",
            chat().set("max_tokens", 1000),
            json!({"max_tokens": 50}),
            53,
        ),
        (
            "chat, the newer name",
            none(chat()).set("max_completion_tokens", 1000),
            json!({"max_completion_tokens": 50}),
            53,
        ),
        (
            "chat, both names",
            chat()
                .set("max_tokens", 60)
                .set("max_completion_tokens", 1000),
            json!({"max_tokens": 50, "max_completion_tokens": 50}),
            53,
        ),
        (
            "chat, one name under it",
            chat()
                .set("max_tokens", 20)
                .set("max_completion_tokens", 1000),
            json!({"max_tokens": 20, "max_completion_tokens": 1000}),
            23,
        ),
        (
            "chat without a cap",
            none(chat()),
            json!({"max_tokens": 50}),
            53,
        ),
        (
            "chat, a cap of null",
            chat().set("max_tokens", Value::Null),
            json!({"max_tokens": 50}),
            53,
        ),
        (
            "two answers",
            chat().set("n", 2),
            json!({"max_tokens": 25, "n": 2}),
            53,
        ),
        (
            "three answers",
            chat().set("n", 3),
            json!({"max_tokens": 16, "n": 3}),
            51,
        ),
        (
            "a cap that fits",
            chat().set("max_tokens", 30),
            json!({"max_tokens": 30}),
            33,
        ),
        (
            "a cap that just fits",
            chat().set("max_tokens", LEFT),
            json!({"max_tokens": 50}),
            53,
        ),
        (
            "completions",
            Dialect::Completions.ask(),
            json!({"max_tokens": 50}),
            53,
        ),
        (
            "two prompts",
            Dialect::Completions
                .ask()
                .set("prompt", json!(["hello ", "there"])),
            json!({"max_tokens": 25}),
            53,
        ),
        (
            "completions without a cap",
            none(Dialect::Completions.ask()),
            json!({"max_tokens": 50}),
            53,
        ),
        (
            "responses",
            Dialect::Responses.ask(),
            json!({"max_output_tokens": 50}),
            53,
        ),
        (
            "responses without a cap",
            Dialect::Responses.ask().without("max_output_tokens"),
            json!({"max_output_tokens": 50}),
            53,
        ),
        (
            "messages",
            Dialect::Messages.ask(),
            json!({"max_tokens": 50}),
            53,
        ),
        (
            "native",
            Dialect::Native.ask(),
            json!({"max_tokens": 50}),
            53,
        ),
        (
            "native without a cap",
            Dialect::Native.ask().without("max_output_units"),
            json!({"max_tokens": 50}),
            53,
        ),
    ]
}

#[test]
fn a_request_over_the_budget_runs_with_the_cap_that_is_left() {
    let engine = refusing();
    let gateway = dialect::builder(&engine, "").tenant(LINES).start();
    for (number, (name, ask, caps, reserved)) in cases().into_iter().enumerate() {
        let id = format!("clamp-{number}");
        let answer = gateway.answer(&ask.id(&id));
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
        let sent = engine.call(number).json();
        for member in ["max_tokens", "max_completion_tokens", "max_output_tokens"] {
            assert_eq!(sent[member], caps[member], "{name}, {member}: {sent}");
        }
        let record = gateway.ended(&id);
        assert_eq!(record["reserved_units"], reserved, "{name}: {record}");
        assert_eq!(record["charged_units"], 0, "{name}: {record}");
        gateway.settled();
    }
}

#[test]
fn a_cap_that_is_added_has_the_name_that_the_pool_says() {
    let engine = refusing();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("cap_member = \"max_completion_tokens\"")
        .tenant(LINES)
        .start();
    gateway.answer(&chat().without("max_tokens"));
    let sent = engine.call(0).json();
    assert_eq!(sent["max_completion_tokens"], LEFT, "{sent}");
    assert_eq!(sent["max_tokens"], Value::Null, "{sent}");
}

#[test]
fn the_tenants_own_cap_still_counts_where_it_is_smaller() {
    let engine = refusing();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant(&format!("{LINES}\nmax_output_units = 20"))
        .start();
    for (number, ask) in [chat(), chat().without("max_tokens")]
        .into_iter()
        .enumerate()
    {
        gateway.answer(&ask.id(&format!("own-{number}")));
        let sent = engine.call(number).json();
        assert_eq!(sent["max_tokens"], 20, "{sent}");
        let record = gateway.ended(&format!("own-{number}"));
        assert_eq!(record["reserved_units"], 23, "{record}");
    }
}

#[test]
fn where_not_even_one_unit_of_output_is_left_it_is_refused() {
    let engine = refusing();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("clamp = true\nbudget = { units = 4, period = \"total\" }")
        .start();
    let two = gateway.answer(&chat().set("n", 2));
    two.must_refuse_for_good(429, "budget_exhausted");
    let longer = chat().set(
        "messages",
        json!([{"role": "user", "content": "hello there, you"}]),
    );
    gateway
        .answer(&longer)
        .must_refuse_for_good(429, "budget_exhausted");
    assert_eq!(engine.calls().len(), 0);
    assert_eq!(
        gateway.answer(&chat()).status,
        400,
        "one unit is left for it"
    );
    assert_eq!(engine.call(0).json()["max_tokens"], 1);
}

#[test]
fn embeddings_have_no_output_to_clamp() {
    let engine = refusing();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant(LINES)
        .start();
    let embeddings =
        Ask::post("/v1/embeddings").json(json!({"model": "m", "input": "hello there"}));
    gateway.answer(&embeddings.id("embed"));
    let sent = engine.call(0).json();
    assert_eq!(sent, json!({"model": "m", "input": "hello there"}));
    assert_eq!(gateway.ended("embed")["reserved_units"], 3);
}

#[test]
fn without_clamp_a_request_over_the_budget_is_refused() {
    let engine = refusing();
    let gateway = dialect::builder(&engine, "")
        .tenant("budget = { units = 53, period = \"total\" }")
        .start();
    for dialect in dialect::ALL {
        let answer = gateway.answer(&dialect.ask());
        assert_eq!(answer.status, 429, "{dialect:?}: {}", answer.text());
        assert_eq!(
            answer.json()["error"]["code"],
            "budget_exhausted",
            "{dialect:?}"
        );
        assert_eq!(
            answer.headers.get("x-should-retry"),
            Some("false"),
            "{dialect:?}"
        );
        assert_eq!(answer.headers.count("retry-after"), 0, "{dialect:?}");
    }
    assert_eq!(engine.calls().len(), 0);
}
