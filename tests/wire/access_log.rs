//! The access log: one JSON line a request, with who ended it and in which phase, and no secret.

use crate::support::KEY;
use crate::support::ask::{chat, whole_chat};
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::script::{holding, tokens};
use crate::support::wait::ms;
use serde_json::json;

#[test]
fn a_line_names_id_tenant_ender_and_phase() {
    let engine = Engine::scripted(holding(1));
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.chat("logged-1");
    stream.says("t0 ");
    gateway.reaches("logged-1", "STREAMING");
    stream.close();
    let record = gateway.ended("logged-1");
    let line = gateway.access_line("logged-1");
    for member in [
        "tenant",
        "api",
        "model",
        "pool",
        "backend",
        "state",
        "ended_by",
        "charged_units",
        "usage_source",
    ] {
        assert_eq!(line[member], record[member], "{member}: {line}");
    }
    assert_eq!(line["ended_by"], "client_closed");
    assert_eq!(line["phase"], "STREAMING");
    assert_eq!(line["status"], 200);
    assert_eq!(line["method"], "POST");
    assert_eq!(line["path"], "/v1/chat/completions");
    assert!(line["bytes_in"].as_u64().is_some_and(|n| n > 0), "{line}");
    assert!(line["bytes_out"].as_u64().is_some_and(|n| n > 0), "{line}");
}

#[test]
fn a_refusal_has_its_line_too() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let answer = gateway.answer(&chat().set("model", "nope"));
    let line = gateway.access_line(answer.headers.get("x-request-id").unwrap());
    assert_eq!(line["status"], 404, "{line}");
    assert_eq!(line["tenant"], "acme", "{line}");
}

#[test]
fn the_path_is_logged_without_its_query() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let body = whole_chat().document().clone();
    let ask = crate::support::ask::Ask::post("/v1/chat/completions?api-key=hush-hush").json(body);
    assert_eq!(gateway.answer(&ask.id("query-1")).status, 200);
    assert_eq!(
        gateway.access_line("query-1")["path"],
        "/v1/chat/completions"
    );
    assert!(
        !gateway
            .written
            .scratch
            .read("access.log")
            .contains("hush-hush")
    );
}

#[test]
fn no_file_of_the_gateway_holds_a_key_and_no_log_holds_a_prompt() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .log("level = \"debug\"")
        .start();
    let wrong = "sk-test-nobody-9999";
    let prompt = "the-prompt-is-private";
    let messages = json!([{"role": "user", "content": prompt}]);
    gateway.answer(&chat().set("messages", messages.clone()).id("private-1"));
    gateway.answer(&chat().set("messages", messages).key(wrong));
    gateway.access_line("private-1");
    gateway.settled();
    let folder = gateway.written.scratch.path();
    let mut files = Vec::new();
    for place in [folder.to_owned(), folder.join("data")] {
        files.extend(
            std::fs::read_dir(place)
                .unwrap()
                .map(|entry| entry.unwrap().path()),
        );
    }
    assert!(files.len() > 4, "{files:?}");
    for path in files.iter().filter(|path| path.is_file()) {
        let content = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        for secret in [KEY, wrong] {
            assert!(!content.contains(secret), "a key is in {}", path.display());
        }
        assert!(
            !content.contains(prompt),
            "the prompt is in {}",
            path.display()
        );
    }
}
