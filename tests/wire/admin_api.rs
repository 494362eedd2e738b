//! The admin listener's API: what runs and waits, who holds what, cancelling, reloading, and who may ask at all.

use crate::support::ask::{Ask, chat};
use crate::support::client::{Answer, Stream};
use crate::support::config::Builder;
use crate::support::cost;
use crate::support::dialect::Dialect;
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::process::Signal;
use crate::support::turns::{Turns, lines_up, lines_up_as, must_be_served};
use crate::support::wait;
use crate::support::{OTHER_KEY, events};
use serde_json::{Value, json};

const GETS: [&str; 4] = ["/api/tenants", "/api/pools", "/api/requests", "/metrics"];

fn get(gateway: &Gateway, path: &str) -> Value {
    let answer = gateway.admin(&Ask::get(path).no_key());
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    assert_eq!(answer.headers.get("content-type"), Some("application/json"));
    assert_eq!(answer.headers.get("cache-control"), Some("no-store"));
    answer.json()
}

/// The element of a list whose member has that value.
#[track_caller]
fn row(list: &Value, member: &str, value: &str) -> Value {
    let rows = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    let row = rows.iter().find(|row| row[member] == value);
    row.unwrap_or_else(|| panic!("no {member} {value}: {list}"))
        .clone()
}

/// One request of `acme` runs, two wait, one of `other` waits.
fn busy(turns: &Turns, engine: &Engine) -> (Gateway, Vec<Stream>) {
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("max_streams = 1\nqueue = { max_wait = \"20s\", max_len = 64 }")
        .tenant(
            "priority = \"core\"\nweight = 3\nmax_streams = 5\nmax_queued = 7\nrequests_per_minute = 60\n\
             units_per_minute = 6000\nbudget = { units = 10000, period = \"day\" }",
        )
        .start();
    let streams = vec![
        turns.holds(&gateway, &chat(), "runs"),
        lines_up(&gateway, &chat(), "waits-0"),
        lines_up(&gateway, &chat(), "waits-1"),
        lines_up_as(OTHER_KEY, &gateway, &chat(), "waits-2"),
    ];
    (gateway, streams)
}

fn end(turns: &Turns, gateway: &Gateway, streams: Vec<Stream>) {
    turns.let_go();
    for mut stream in streams {
        must_be_served(&mut stream, Dialect::Chat);
    }
    gateway.settled();
}

#[test]
fn tenants_are_shown_with_what_they_hold_and_may() {
    let turns = Turns::default();
    let engine = turns.engine();
    let (gateway, streams) = busy(&turns, &engine);
    let doc = get(&gateway, "/api/tenants");
    assert_eq!(doc["tenants"].as_array().map(Vec::len), Some(2), "{doc}");
    let acme = row(&doc["tenants"], "tenant", "acme");
    for (member, value) in [
        ("/priority", json!("core")),
        ("/weight", json!(3)),
        ("/slots", json!({"used": 1, "max": 5})),
        ("/waiting", json!(2)),
        ("/max_queued", json!(7)),
        ("/requests_per_minute/limit", json!(60)),
        ("/units_per_minute/limit", json!(6000)),
        ("/budget/units", json!(10000)),
        ("/budget/period", json!("day")),
        ("/charged_units", json!(0)),
        ("/reserved_units", json!(309)),
        ("/held_units", json!(0)),
        ("/remaining_units", json!(9691)),
    ] {
        assert_eq!(acme.pointer(member), Some(&value), "{member}: {acme}");
    }
    let requests_left = acme["requests_per_minute"]["remaining"].as_u64().unwrap();
    assert!((57..60).contains(&requests_left), "{acme}");
    assert!(acme["budget"]["resets_at"].is_string(), "{acme}");
    let other = row(&doc["tenants"], "tenant", "other");
    for (member, value) in [
        ("/priority", json!("normal")),
        ("/weight", json!(1)),
        ("/slots", json!({"used": 0, "max": null})),
        ("/waiting", json!(1)),
        ("/max_queued", Value::Null),
        ("/requests_per_minute", Value::Null),
        ("/budget", Value::Null),
        ("/remaining_units", Value::Null),
    ] {
        assert_eq!(other.pointer(member), Some(&value), "{member}: {other}");
    }
    end(&turns, &gateway, streams);
    let acme = row(&get(&gateway, "/api/tenants")["tenants"], "tenant", "acme");
    assert_eq!(acme["slots"]["used"], 0, "{acme}");
    assert_eq!(acme["waiting"], 0, "{acme}");
    assert_eq!(acme["reserved_units"], 0, "{acme}");
    assert_eq!(
        acme["charged_units"], 12,
        "three of three units and an event: {acme}"
    );
}

#[test]
fn pools_are_shown_with_their_slots_their_line_and_their_backends() {
    let turns = Turns::default();
    let engine = turns.engine();
    let (gateway, streams) = busy(&turns, &engine);
    let doc = get(&gateway, "/api/pools");
    let pool = row(&doc["pools"], "pool", "p");
    for (member, value) in [
        ("/protocol", json!("openai")),
        ("/models", json!(["m"])),
        ("/slots", json!({"used": 1, "max": 1})),
        ("/waiting", json!(3)),
        ("/shedding", json!("none")),
        ("/backends/0/backend", json!(engine.addr())),
        ("/backends/0/up", json!(true)),
        ("/backends/0/slots", json!({"used": 1, "max": null})),
    ] {
        assert_eq!(pool.pointer(member), Some(&value), "{member}: {pool}");
    }
    assert!(pool["mean_wait_ms"].is_u64(), "{pool}");
    end(&turns, &gateway, streams);
}

#[test]
fn requests_are_shown_as_their_records_the_oldest_first() {
    let turns = Turns::default();
    let engine = turns.engine();
    let (gateway, streams) = busy(&turns, &engine);
    let doc = get(&gateway, "/api/requests");
    let rows = doc["requests"].as_array().unwrap();
    let shown: Vec<(&str, &str, &str)> = rows
        .iter()
        .map(|r| ["request_id", "tenant", "state"].map(|m| r[m].as_str().unwrap_or_default()))
        .map(|[id, tenant, state]| (id, tenant, state))
        .collect();
    let expected = [
        ("runs", "acme", "STREAMING"),
        ("waits-0", "acme", "QUEUED"),
        ("waits-1", "acme", "QUEUED"),
        ("waits-2", "other", "QUEUED"),
    ];
    assert_eq!(shown, expected);
    assert_eq!(rows[1], gateway.record("waits-0"));
    end(&turns, &gateway, streams);
    assert_eq!(get(&gateway, "/api/requests"), json!({"requests": []}));
}

fn cancel(gateway: &Gateway, tenant: &str, id: &str) -> Answer {
    let path = format!("/api/tenants/{tenant}/requests/{id}/cancel");
    gateway.admin(&Ask::post(path).no_key())
}

#[test]
fn any_tenants_request_is_cancelled_by_its_id_whether_it_runs_or_waits() {
    let turns = Turns::default();
    let engine = turns.engine();
    let (gateway, mut streams) = busy(&turns, &engine);
    assert_eq!(
        cancel(&gateway, "other", "runs").status,
        404,
        "another's id"
    );
    let waits = cancel(&gateway, "other", "waits-2");
    assert_eq!(waits.status, 202, "{}", waits.text());
    assert_eq!(waits.json()["request_id"], "waits-2");
    streams
        .pop()
        .unwrap()
        .answer()
        .must_refuse(499, "cancelled");
    let ended = gateway.ended_of(OTHER_KEY, "waits-2");
    assert_eq!(ended["ended_by"], "cancel_api", "{ended}");
    let again = cancel(&gateway, "other", "waits-2");
    assert_eq!((again.status, again.json()), (200, ended));
    let runs = cancel(&gateway, "acme", "runs");
    assert_eq!(runs.status, 202, "{}", runs.text());
    let told = events::final_error(&streams.remove(0).rest());
    assert_eq!(told["code"], "cancelled");
    for mut stream in streams {
        must_be_served(&mut stream, Dialect::Chat);
    }
    for path in [
        "/api/tenants/acme/requests/never-was/cancel",
        "/api/tenants/nobody/requests/runs/cancel",
    ] {
        let unknown = gateway.admin(&Ask::post(path).no_key());
        assert_eq!(unknown.status, 404, "{path}: {}", unknown.text());
        assert_eq!(unknown.json()["error"]["code"], "unknown_request", "{path}");
    }
    turns.let_go();
    gateway.settled();
}

#[test]
fn a_reload_says_what_it_found_and_a_bad_file_changes_nothing() {
    let engine = cost::engine(3, 1);
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("weight = 1")
        .start();
    let reload = || gateway.admin(&Ask::post("/api/reload").no_key());
    let weight =
        || row(&get(&gateway, "/api/tenants")["tenants"], "tenant", "acme")["weight"].clone();
    gateway.written.replace("weight = 1", "weight = 2");
    let good = reload();
    assert_eq!((good.status, good.json()), (200, json!({"reloaded": true})));
    assert_eq!(weight(), 2);
    gateway
        .written
        .replace("weight = 2", "weight = 3\nwieght = 4\nmax_streams = -1");
    let bad = reload();
    assert_eq!(bad.status, 400, "{}", bad.text());
    let findings = bad.json()["findings"].clone();
    let line = gateway
        .written
        .text()
        .lines()
        .position(|l| l.starts_with("wieght"))
        .unwrap()
        + 1;
    for (at, word) in [(line, "wieght"), (line + 1, "max_streams")] {
        let place = format!("{}:{at}:", gateway.written.file());
        let told = findings
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str);
        let found = told.filter(|told| told.starts_with(&place) && told.contains(word));
        assert_eq!(found.count(), 1, "{word}: {findings}");
    }
    assert_eq!(weight(), 2, "a bad file was taken in part");
    assert_eq!(gateway.answer(&chat()).status, 200);
    gateway.written.replace("wieght = 4\nmax_streams = -1", "");
    assert_eq!(reload().status, 200);
    assert_eq!(weight(), 3);
}

#[test]
fn a_process_that_drains_takes_no_other_config() {
    let turns = Turns::default();
    let engine = turns.engine();
    let mut gateway = Gateway::before(&engine);
    let mut hold = turns.holds(&gateway, &chat(), "hold");
    gateway.signal(Signal::Term);
    wait::until("/readyz to say that it drains", || {
        let answer = gateway.admin(&Ask::get("/readyz").no_key());
        match answer.status {
            503 => Ok(()),
            _ => Err(answer.text()),
        }
    });
    let answer = gateway.admin(&Ask::post("/api/reload").no_key());
    assert_eq!(answer.status, 503, "{}", answer.text());
    let requests = get(&gateway, "/api/requests");
    assert_eq!(requests["requests"][0]["request_id"], "hold", "{requests}");
    turns.let_go();
    must_be_served(&mut hold, Dialect::Chat);
    assert_eq!(gateway.exit(), 0);
}

#[test]
fn other_methods_are_told_which_to_use_and_a_head_has_no_body() {
    let engine = cost::engine(3, 1);
    let gateway = Gateway::before(&engine);
    for path in GETS.into_iter().chain(["/healthz", "/readyz"]) {
        let answer = gateway.admin(&Ask::post(path).no_key().body("{}"));
        assert_eq!(answer.status, 405, "{path}: {}", answer.text());
        assert_eq!(answer.headers.get("allow"), Some("GET, HEAD"), "{path}");
    }
    for path in ["/api/reload", "/api/tenants/acme/requests/a/cancel"] {
        let answer = gateway.admin(&Ask::get(path).no_key());
        assert_eq!(answer.status, 405, "{path}: {}", answer.text());
        assert_eq!(answer.headers.get("allow"), Some("POST"), "{path}");
    }
    for path in [
        "/api",
        "/api/",
        "/api/tenants/",
        "/api/nothing",
        "/v1/models",
    ] {
        let answer = gateway.admin(&Ask::get(path).no_key());
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    for path in GETS.into_iter().chain(["/healthz", "/readyz"]) {
        let mut stream = Stream::connect(&gateway.written.admin);
        stream.write(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        let head = stream.next_head();
        assert_eq!(head.status, 200, "{path}");
        // whatever follows is the next answer, and not a body
        stream.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let next = stream.next_answer();
        assert_eq!(
            (next.status, next.text()),
            (200, "ok\n".to_owned()),
            "after HEAD {path}"
        );
    }
}

const TOKEN: &str = "admin-token-of-the-test";

fn with_token(engine: &Engine) -> Builder {
    Gateway::builder()
        .backend(engine.addr())
        .admin("token = { file = \"token\" }")
        .file("token", &format!("{TOKEN}\n"))
}

#[test]
fn with_a_token_nothing_but_the_probes_is_told_without_it() {
    let engine = cost::engine(3, 1);
    let gateway = with_token(&engine).start();
    let posts = ["/api/reload", "/api/tenants/acme/requests/a/cancel"];
    let asks = GETS.map(Ask::get).into_iter().chain(posts.map(Ask::post));
    for ask in asks {
        for wrong in [
            ask.clone().no_key(),
            ask.clone().key("wrong"),
            ask.clone().key(""),
        ] {
            let answer = gateway.admin(&wrong);
            assert_eq!(answer.status, 401, "{wrong:?}: {}", answer.text());
            assert!(!answer.text().contains("acme"), "{}", answer.text());
            assert_eq!(answer.headers.get("www-authenticate"), Some("Bearer"));
        }
        let right = gateway.admin(&ask.clone().key(TOKEN));
        assert_ne!(right.status, 401, "{ask:?}: {}", right.text());
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(
            gateway.admin(&Ask::get(path).no_key()).status,
            200,
            "{path}"
        );
    }
    // who shows the token may come from where it will
    let elsewhere = Ask::get("/api/pools")
        .key(TOKEN)
        .header("Origin", "https://ops.example");
    assert_eq!(gateway.admin(&elsewhere).status, 200);
}

#[test]
fn a_reload_that_takes_the_admin_section_away_does_not_open_what_is_still_served() {
    let engine = cost::engine(3, 1);
    let gateway = with_token(&engine).start();
    let reload = || gateway.admin(&Ask::post("/api/reload").key(TOKEN));
    let denied = |why: &str| {
        let answer = gateway.admin(&Ask::get("/api/tenants").no_key());
        assert_eq!(answer.status, 401, "{why}: {}", answer.text());
    };
    let section = format!(
        "[admin]\naddr = \"{}\"\ntoken = {{ file = \"token\" }}",
        gateway.written.admin
    );
    // another address, which would need no token
    gateway
        .written
        .replace(&section, "[admin]\naddr = \"127.0.0.1:1\"");
    assert_eq!(reload().status, 200);
    denied("another address");
    gateway
        .written
        .replace("[admin]\naddr = \"127.0.0.1:1\"", "");
    assert_eq!(reload().status, 200);
    denied("no admin section");
    // the same address with another token
    let other = section.replace("token\" }", "other\" }");
    gateway
        .written
        .scratch
        .write("other", "another-token-of-the-test\n");
    gateway.written.replace("[log]", &format!("{other}\n[log]"));
    assert_eq!(reload().status, 200);
    assert_eq!(reload().status, 401, "the old token");
    let new = Ask::get("/api/tenants").key("another-token-of-the-test");
    assert_eq!(gateway.admin(&new).status, 200);
}

#[test]
fn without_a_token_a_page_of_another_site_is_told_nothing() {
    let engine = cost::engine(3, 1);
    let gateway = Gateway::before(&engine);
    let reads = GETS.map(Ask::get).into_iter();
    for ask in reads.chain([Ask::post("/api/reload")]) {
        let ask = ask.no_key();
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost.evil.example",
        ] {
            let answer = gateway.admin(&ask.clone().header("Origin", origin));
            assert_eq!(answer.status, 403, "{origin}: {}", answer.text());
            assert!(!answer.text().contains("acme"), "{}", answer.text());
        }
        let own = gateway.admin(&ask.header("Origin", "http://localhost"));
        assert_eq!(own.status, 200, "{}", own.text());
    }
    let mut bent = Stream::connect(&gateway.written.admin);
    bent.write(b"GET /api/tenants HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    assert_eq!(
        bent.next_answer().status,
        403,
        "a name that was bent to this address"
    );
}
