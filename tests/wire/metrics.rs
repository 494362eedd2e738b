//! `/metrics`: the contract's names, types and labels, true values, and nothing unbounded or secret.

use crate::support::ask::{Ask, chat};
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::metrics;
use crate::support::script::{holding_some, tokens};
use crate::support::wait::ms;
use crate::support::{KEY, events, sha256};

/// Name, type, labels.
const FAMILIES: [(&str, &str, &[&str]); 24] = [
    (
        "streamgate_requests_total",
        "counter",
        &["tenant", "pool", "api", "state", "ended_by"],
    ),
    ("streamgate_rejected_total", "counter", &["tenant", "code"]),
    ("streamgate_streams", "gauge", &["tenant", "pool", "state"]),
    ("streamgate_slots", "gauge", &["pool"]),
    ("streamgate_slots_max", "gauge", &["pool"]),
    (
        "streamgate_units_total",
        "counter",
        &["tenant", "pool", "kind"],
    ),
    ("streamgate_units_reserved", "gauge", &["tenant"]),
    ("streamgate_units_held", "gauge", &["tenant"]),
    ("streamgate_budget_remaining_units", "gauge", &["tenant"]),
    ("streamgate_heartbeats_total", "counter", &["pool"]),
    ("streamgate_backend_up", "gauge", &["pool", "backend"]),
    ("streamgate_ledger_open", "gauge", &[]),
    ("streamgate_ledger_unknown", "gauge", &[]),
    ("streamgate_ledger_up", "gauge", &[]),
    ("streamgate_ledger_unwritten", "gauge", &[]),
    ("streamgate_ledger_failures_total", "counter", &[]),
    ("streamgate_loop_lag_seconds", "gauge", &[]),
    ("streamgate_open_fds", "gauge", &[]),
    ("streamgate_first_output_seconds", "histogram", &["pool"]),
    ("streamgate_inter_event_seconds", "histogram", &["pool"]),
    ("streamgate_inter_event_seconds_max", "gauge", &["pool"]),
    ("streamgate_release_seconds", "histogram", &["cause"]),
    (
        "streamgate_upstream_connect_seconds",
        "histogram",
        &["pool"],
    ),
    ("streamgate_ledger_commit_seconds", "histogram", &[]),
];

/// A gateway that has served one whole stream with a silence in it, one that was cancelled, one client that left, and
/// one refusal.
fn after_some_traffic(engine: &Engine) -> Gateway {
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("budget = { units = 100000, period = \"day\" }")
        .pool("max_streams = 8\nstream = { heartbeat = \"100ms\" }")
        .start();
    gateway
        .send(&chat().id("metric-id-1").set("user", "run"))
        .rest();
    let mut cancelled = gateway.send(&chat().id("metric-id-2").set("user", "hold"));
    cancelled.says("t0 ");
    gateway.cancel("metric-id-2");
    cancelled.rest();
    let mut left = gateway.send(&chat().id("metric-id-3").set("user", "hold"));
    left.says("t0 ");
    left.close();
    gateway.ended("metric-id-3");
    gateway.answer(&chat().set("model", "nope").id("metric-id-4"));
    gateway.settled();
    gateway
}

fn engine() -> Engine {
    Engine::scripted(holding_some(tokens(3, ms(250))))
}

#[test]
fn every_family_has_its_name_type_and_labels() {
    let engine = engine();
    let gateway = after_some_traffic(&engine);
    let text = gateway.scrape();
    let types = metrics::types(&text);
    for (name, kind, labels) in FAMILIES {
        assert!(
            types.contains(&(name, kind)),
            "{name} is not a {kind}: {types:?}"
        );
        let suffix = if kind == "histogram" { "_count" } else { "" };
        let wanted = format!("{name}{suffix}");
        let series: Vec<_> = metrics::parse(&text).filter(|s| s.name == wanted).collect();
        assert!(!series.is_empty(), "{wanted} has no series");
        for one in series {
            let found: Vec<&str> = one.labels.iter().map(|(label, _)| *label).collect();
            assert!(
                same_set(&found, labels),
                "{wanted} has the labels {found:?}, not {labels:?}"
            );
        }
    }
    assert!(
        types.contains(&("streamgate_build_info", "gauge")),
        "{types:?}"
    );
}

fn same_set(one: &[&str], other: &[&str]) -> bool {
    one.len() == other.len() && one.iter().all(|label| other.contains(label))
}

#[test]
fn counters_say_what_happened() {
    let engine = engine();
    let gateway = after_some_traffic(&engine);
    let requests = |state: &str, ended_by: &str| {
        let labels = [
            ("tenant", "acme"),
            ("pool", "p"),
            ("api", "chat"),
            ("state", state),
            ("ended_by", ended_by),
        ];
        gateway.metric("streamgate_requests_total", &labels)
    };
    assert_eq!(requests("COMPLETED", "upstream"), 1.0);
    assert_eq!(requests("CANCELLED", "cancel_api"), 1.0);
    assert_eq!(requests("CANCELLED", "client_closed"), 1.0);
    assert_eq!(gateway.metric("streamgate_requests_total", &[]), 3.0);
    let rejected = [("tenant", "acme"), ("code", "model_not_found")];
    assert_eq!(gateway.metric("streamgate_rejected_total", &rejected), 1.0);
    assert!(gateway.metric("streamgate_heartbeats_total", &[("pool", "p")]) >= 2.0);
    assert_eq!(
        gateway.metric(
            "streamgate_backend_up",
            &[("pool", "p"), ("backend", engine.addr())]
        ),
        1.0
    );
    assert_eq!(
        gateway.metric("streamgate_first_output_seconds_count", &[("pool", "p")]),
        3.0
    );
    assert_eq!(gateway.metric("streamgate_release_seconds_count", &[]), 2.0);
}

#[test]
fn units_agree_with_the_records() {
    let engine = engine();
    let gateway = after_some_traffic(&engine);
    let records: Vec<_> = (1..=3)
        .map(|n| gateway.ended(&format!("metric-id-{n}")))
        .collect();
    for kind in ["input", "generated", "delivered", "charged"] {
        let member = format!("{kind}_units");
        let sum: f64 = records
            .iter()
            .map(|record| record[&member].as_f64().unwrap())
            .sum();
        let labels = [("tenant", "acme"), ("pool", "p"), ("kind", kind)];
        assert_eq!(
            gateway.metric("streamgate_units_total", &labels),
            sum,
            "{kind}"
        );
    }
    let charged: f64 = records
        .iter()
        .map(|record| record["charged_units"].as_f64().unwrap())
        .sum();
    let left = gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]);
    assert_eq!(left, 100_000.0 - charged);
}

#[test]
fn gauges_show_a_stream_while_it_runs() {
    let engine = engine();
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.send(&chat().id("running-1").set("user", "hold"));
    stream.says("t0 ");
    gateway.reaches("running-1", "STREAMING");
    let streaming = [("tenant", "acme"), ("pool", "p"), ("state", "STREAMING")];
    assert_eq!(gateway.metric("streamgate_streams", &streaming), 1.0);
    assert_eq!(gateway.metric("streamgate_slots", &[("pool", "p")]), 1.0);
    assert_eq!(
        gateway.metric("streamgate_units_reserved", &[("tenant", "acme")]),
        103.0
    );
    assert_eq!(gateway.metric("streamgate_ledger_open", &[]), 1.0);
    stream.close();
    gateway.settled();
}

#[test]
fn no_label_is_an_id_a_key_a_path_or_what_a_client_made_up() {
    let engine = engine();
    let gateway = after_some_traffic(&engine);
    gateway.answer(&chat().key("sk-test-nobody-9999"));
    gateway.answer(&Ask::get("/made-up-path"));
    gateway.answer(&chat().set("model", "made-up-model"));
    let text = gateway.scrape();
    for secret in [
        "metric-id-",
        KEY,
        &sha256(KEY),
        "/v1/chat",
        "nobody",
        "made-up",
    ] {
        assert_eq!(
            events::count(text.as_bytes(), secret.as_bytes()),
            0,
            "{secret:?} is in the metrics"
        );
    }
}

#[test]
fn the_admin_routes_are_on_the_admin_listener_alone() {
    let engine = engine();
    let gateway = Gateway::before(&engine);
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(
            gateway.admin(&Ask::get(path).no_key()).status,
            200,
            "{path}"
        );
        assert_eq!(
            gateway.answer(&Ask::get(path)).status,
            404,
            "{path} on the public listener"
        );
    }
    let api = gateway.admin(&chat()).status;
    assert!(
        matches!(api, 404 | 405),
        "the API on the admin listener: {api}"
    );
}

#[test]
fn an_admin_token_is_asked_for_where_one_is_set() {
    let engine = engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .file("admin.token", "let-me-in\n")
        .admin("token = { file = \"admin.token\" }")
        .start();
    assert_eq!(gateway.admin(&Ask::get("/metrics").no_key()).status, 401);
    assert_eq!(
        gateway.admin(&Ask::get("/metrics").key("wrong")).status,
        401
    );
    assert_eq!(
        gateway.admin(&Ask::get("/metrics").key("let-me-in")).status,
        200
    );
}
