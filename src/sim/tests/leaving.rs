//! Clients that leave.

use super::*;

/// Where a request stands when its client leaves: faults, whether it streams, and what has come by then.
const PHASES: [(&str, &str, bool, &str); 6] = [
    ("in prefill", "", true, "\r\n\r\n"),
    ("in prefill of a document", "", false, ""),
    ("before the head", "header-delay=1m", true, ""),
    (
        "before the head of a document",
        "header-delay=1m",
        false,
        "",
    ),
    ("in a stall", "stall=1m@2", true, "t1 "),
    (
        "in a stall before the first token",
        "stall=1m@0",
        true,
        "assistant",
    ),
];

#[tokio::test]
async fn a_client_that_leaves_is_noticed_at_once_in_every_phase() {
    for (phase, faults, stream, seen) in PHASES {
        for by_reset in [false, true] {
            let options = if faults.contains("stall") {
                quick()
            } else {
                stuck()
            };
            let sim = start(options).await;
            let mut client = Client::connect(&sim).await;
            client
                .post("/v1/chat/completions", faults, &ask(100, stream))
                .await;
            until_metric(&sim, "num_requests_running", 1).await;
            client.until(seen).await;
            let made = metric(&sim, "generation_tokens_total").await;
            match by_reset {
                true => client.reset(),
                false => drop(client),
            }
            until_metric(&sim, "num_requests_running", 0).await;
            assert_eq!(
                metric(&sim, "generation_tokens_total").await,
                made,
                "{phase}"
            );
            assert_eq!(metric(&sim, "request_success_total").await, 0, "{phase}");
        }
    }
}

#[tokio::test]
async fn a_client_that_leaves_mid_stream_or_while_it_does_not_read_stops_the_generation() {
    let sim = start(quick()).await;
    for faults in ["", "event-bytes=8MiB"] {
        let mut client = Client::connect(&sim).await;
        client
            .post("/v1/chat/completions", faults, &ask(1_000_000, true))
            .await;
        client.until("t0 ").await;
        drop(client);
        until_metric(&sim, "num_requests_running", 0).await;
        let made = metric(&sim, "generation_tokens_total").await;
        assert!(made < 1_000_000, "{made}");
    }
}

#[tokio::test]
async fn with_notice_on_write_a_document_is_made_to_its_end_for_nobody() {
    let sim = start(Options {
        notice: Notice::OnWrite,
        ..quick()
    })
    .await;
    let mut client = Client::connect(&sim).await;
    client
        .post("/v1/messages", "stall=50ms@0", &ask(20, false))
        .await;
    until_metric(&sim, "num_requests_running", 1).await;
    drop(client);
    until_metric(&sim, "generation_tokens_total", 20).await;
    until_metric(&sim, "num_requests_running", 0).await;
}

#[tokio::test]
async fn with_notice_on_write_a_stream_runs_on_until_a_write_fails() {
    let sim = start(Options {
        notice: Notice::OnWrite,
        ..quick()
    })
    .await;
    let mut client = Client::connect(&sim).await;
    client
        .post("/v1/messages", "stall=100ms@3", &ask(1_000_000, true))
        .await;
    client.until("t2 ").await;
    client.reset();
    until_metric(&sim, "num_requests_running", 0).await;
    assert!(metric(&sim, "generation_tokens_total").await > 3);
    assert_eq!(metric(&sim, "request_success_total").await, 0);
}

#[tokio::test]
async fn dropping_the_simulator_ends_its_connections() {
    let sim = start(stuck()).await;
    let mut client = Client::connect(&sim).await;
    client.post("/v1/messages", "", &ask(1, true)).await;
    client.until("\r\n\r\n").await;
    drop(sim);
    client.ends().await;
}
