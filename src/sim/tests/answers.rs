//! What each API answers, and when.

use super::*;

#[tokio::test]
async fn every_api_streams_its_tokens_to_its_own_end() {
    let sim = start(quick()).await;
    for (path, end) in STREAMED.iter().zip([
        "data: [DONE]",
        "data: [DONE]",
        "event: response.completed",
        "event: message_stop",
    ]) {
        let answer = post(&sim, path, "", &ask(5, true)).await;
        assert_eq!(answer.status, 200);
        assert!(answer.whole, "{path}: {answer:?}");
        assert_eq!(tokens_of(&answer), first_tokens(5), "{path}");
        let kind = answer.header("content-type").expect("a type");
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        let events = answer.text().trim_end().split("\n\n");
        assert!(events.last().expect("events").starts_with(end), "{path}");
    }
    assert_eq!(metric(&sim, "generation_tokens_total").await, 20);
    assert_eq!(metric(&sim, "prompt_tokens_total").await, 8);
    assert_eq!(metric(&sim, "request_success_total").await, 4);
    assert_eq!(metric(&sim, "num_requests_running").await, 0);
}

#[tokio::test]
async fn every_api_answers_with_one_document() {
    let sim = start(quick()).await;
    for (path, text) in [
        ("/v1/chat/completions", "/choices/0/message/content"),
        ("/v1/completions", "/choices/0/text"),
        ("/v1/responses", "/output/0/content/0/text"),
        ("/v1/messages", "/content/0/text"),
    ] {
        let answer = post(&sim, path, "", &ask(3, false)).await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let doc = answer.json();
        assert_eq!(doc.pointer(text), Some(&json!("t0 t1 t2 ")), "{doc}");
        let usage = doc["usage"].to_string();
        assert!(
            usage.contains(":2") && usage.contains(":3"),
            "{path}: {usage}"
        );
    }
    assert_eq!(metric(&sim, "generation_tokens_total").await, 12);
    let vectors = post(&sim, "/v1/embeddings", "", &json!({"input": ["a", "b c"]})).await;
    assert_eq!(vectors.json()["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(vectors.json()["usage"]["prompt_tokens"], 3);
    let count = post(&sim, "/v1/messages/count_tokens", "", &ask(3, false)).await;
    assert_eq!(count.json(), json!({"input_tokens": 2}));
    assert_eq!(metric(&sim, "request_success_total").await, 5);
}

#[tokio::test]
async fn models_and_health_are_served_and_anything_else_is_not_found() {
    let sim = start(quick()).await;
    let models = get(&sim, "/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "sim-1");
    assert_eq!(models["data"][1]["id"], "m");
    assert_eq!(get(&sim, "/health?x=1").await.status, 200);
    for path in ["/", "/v1/chat/completions", "/v2/models"] {
        let answer = get(&sim, path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.json()["error"]["message"].is_string());
    }
    let other = post(&sim, "/health", "", &json!({})).await;
    assert_eq!(other.status, 404);
    let anthropic = get(&sim, "/v1/messages/batches").await.json();
    assert_eq!(anthropic["error"]["type"], "not_found_error");
}

#[tokio::test]
async fn each_answer_has_a_request_id_of_its_own() {
    let sim = start(quick()).await;
    let mut ids = Vec::new();
    for stream in [true, false] {
        let answer = post(&sim, "/v1/chat/completions", "", &ask(1, stream)).await;
        ids.push(answer.header("x-request-id").expect("an id").to_owned());
    }
    assert!(ids[0] != ids[1] && ids[0].len() == 32, "{ids:?}");
}

#[tokio::test]
async fn usage_comes_only_where_it_is_asked_for() {
    let sim = start(quick()).await;
    let mut body = ask(3, true);
    let plain = post(&sim, "/v1/chat/completions", "", &body).await;
    assert!(!plain.text().contains("usage"));
    body["stream_options"] = json!({"include_usage": true});
    let asked = post(&sim, "/v1/chat/completions", "", &body).await;
    assert_eq!(asked.text().matches("usage").count(), 1);
    let last = &asked.events()[5];
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 3);
    assert_eq!(last["usage"]["prompt_tokens"], 2);
    body["stream_options"]["continuous_usage_stats"] = json!(true);
    let always = post(&sim, "/v1/completions", "", &body).await;
    assert_eq!(always.events()[1]["usage"]["completion_tokens"], 2);
    let none = post(&sim, "/v1/completions", "no-usage", &body).await;
    assert!(!none.text().contains("usage"));
}

#[tokio::test]
async fn an_answer_takes_its_prefill_and_a_step_for_each_further_token() {
    let sim = start(Options {
        prefill: Duration::from_millis(10),
        prefill_per_token: Duration::from_millis(15),
        decode: Duration::from_micros(2500),
        ..quick()
    })
    .await;
    for stream in [true, false] {
        let started = clock::instant();
        assert!(
            post(&sim, "/v1/completions", "", &ask(5, stream))
                .await
                .whole
        );
        let took = started.elapsed();
        assert!(took >= Duration::from_millis(10 + 30 + 10), "took {took:?}");
    }
}

#[tokio::test]
async fn no_more_than_the_allowed_number_runs_at_once() {
    let sim = start(Options {
        max_running: Some(2),
        ..stuck()
    })
    .await;
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = Client::connect(&sim).await;
        client.post("/v1/messages", "", &ask(1, true)).await;
        client.until("\r\n\r\n").await;
        clients.push(client);
    }
    until_metric(&sim, "num_requests_waiting", 3).await;
    assert_eq!(metric(&sim, "num_requests_running").await, 2);
    drop(clients.remove(0));
    until_metric(&sim, "num_requests_waiting", 2).await;
    assert_eq!(metric(&sim, "num_requests_running").await, 2);
    drop(clients);
    until_metric(&sim, "num_requests_running", 0).await;
    assert_eq!(metric(&sim, "num_requests_waiting").await, 0);
}
