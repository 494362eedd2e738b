//! `GET /v1/models`: what this tenant may use, by its public names.

use crate::support::OTHER_KEY;
use crate::support::ask::{Ask, chat};
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::script::tokens;
use crate::support::wait::ms;
use std::collections::BTreeSet;

fn gateway(engine: &Engine) -> Gateway {
    let second = format!(
        "[[pool]]\nname = \"q\"\nmodels = [{{ public = \"fast\", upstream = \"m\" }}]\nbackends = [{{ addr = \"{}\" }}]",
        engine.addr()
    );
    Gateway::builder()
        .backend(engine.addr())
        .tenant("models = [\"m\"]")
        .extra(&second)
        .start()
}

#[test]
fn each_tenant_sees_what_it_may_use() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = gateway(&engine);
    for (key, expected) in [
        (crate::support::KEY, vec!["m"]),
        (OTHER_KEY, vec!["fast", "m"]),
    ] {
        let answer = gateway.answer(&Ask::get("/v1/models").key(key));
        let list = answer.json();
        assert_eq!(
            (answer.status, list["object"].as_str()),
            (200, Some("list"))
        );
        let models = list["data"].as_array().unwrap();
        assert!(
            models.iter().all(|model| model["object"] == "model"),
            "{list}"
        );
        let names: BTreeSet<_> = models
            .iter()
            .map(|model| model["id"].as_str().unwrap())
            .collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), expected);
    }
    gateway
        .answer(&Ask::get("/v1/models").no_key())
        .must_refuse(401, "invalid_api_key");
    assert_eq!(engine.calls().len(), 0);
}

#[test]
fn a_model_that_is_not_listed_cannot_be_used() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = gateway(&engine);
    gateway
        .answer(&chat().set("model", "fast"))
        .must_refuse(403, "model_not_allowed");
    assert_eq!(
        gateway
            .answer(&chat().set("model", "fast").key(OTHER_KEY))
            .status,
        200
    );
    assert_eq!(engine.call(0).json()["model"], "m");
}
