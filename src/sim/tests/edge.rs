//! Odd, old and broken requests, and many on one connection.

use super::*;

#[tokio::test]
async fn one_connection_serves_many_requests_also_sent_ahead() {
    let sim = start(quick()).await;
    let mut client = Client::connect(&sim).await;
    for stream in [true, false, true] {
        client
            .post("/v1/chat/completions", "", &ask(2, stream))
            .await;
    }
    client
        .send("GET /health HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n")
        .await;
    for _ in 0..4 {
        let answer = client.answer().await;
        assert!(answer.whole && answer.status == 200, "{answer:?}");
    }
    assert!(client.ends().await);
}

#[tokio::test]
async fn chunked_bodies_and_expected_continues_are_taken() {
    let sim = start(quick()).await;
    let mut client = Client::connect(&sim).await;
    client
        .send("POST /v1/completions HTTP/1.1\r\nHost: sim\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    client.until("HTTP/1.1 100 Continue\r\n\r\n").await;
    client.buffer.clear();
    for piece in [
        "8",
        ";x=y\r",
        "\n{\"prompt",
        "\r\n",
        "12\r\n\":\"one two three\"}\r\n0\r\nTrailer: x\r\n\r\n",
    ] {
        client.send(piece).await;
        tokio::task::yield_now().await;
    }
    let answer = client.answer().await;
    assert_eq!(answer.json()["usage"]["prompt_tokens"], 3);
}

#[tokio::test]
async fn an_old_client_gets_a_stream_that_lasts_until_the_close() {
    let sim = start(quick()).await;
    let mut client = Client::connect(&sim).await;
    let body = ask(2, true).to_string();
    let length = body.len();
    client
        .send(format!(
            "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
        .await;
    let answer = client.answer().await;
    assert!(!answer.head.contains("chunked"));
    assert!(answer.text().ends_with("data: [DONE]\n\n"), "{answer:?}");
}

#[tokio::test]
async fn wrong_bodies_and_unknown_faults_are_refused_and_the_connection_goes_on() {
    let sim = start(quick()).await;
    for path in STREAMED {
        let mut client = Client::connect(&sim).await;
        client.post(path, "", &json!(["no object"])).await;
        assert_eq!(client.answer().await.status, 400);
        client.post(path, "explode@5", &ask(1, true)).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, 400);
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains("explode@5"), "{message}");
        let shape = path.starts_with("/v1/messages");
        assert_eq!(answer.json()["type"] == "error", shape);
        client.post(path, "", &ask(1, true)).await;
        assert_eq!(client.answer().await.status, 200);
    }
}

#[tokio::test]
async fn what_is_no_request_is_answered_and_the_connection_closed() {
    let sim = start(quick()).await;
    let long_head = format!("GET / HTTP/1.1\r\nA: {}", "a".repeat(70_000));
    let chunked = "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let long_line = format!("{chunked}{}", "1".repeat(9000));
    let odd_size = format!("{chunked}xyz\r\n");
    let huge_chunk = format!("{chunked}5000000\r\n");
    let wrong_end = format!("{chunked}1\r\nab\r\n");
    for (bytes, status) in [
        ("\x16\x03\x01\x02\x00\x01", 400),
        ("NONSENSE\r\n\r\n", 400),
        (
            "POST /v1/messages HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            413,
        ),
        (&long_head, 431),
        (&long_line, 400),
        (&odd_size, 400),
        (&huge_chunk, 413),
        (&wrong_end, 400),
    ] {
        let mut client = Client::connect(&sim).await;
        client.send(bytes).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, status, "{bytes:.60}");
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(answer.json()["error"]["message"].is_string());
        assert!(client.ends().await, "{bytes:.60}");
    }
    let mut half = Client::connect(&sim).await;
    half.send("POST /v1/messages HTTP/1.1\r\nContent-Length: 10\r\n\r\n{")
        .await;
    half.stream.shutdown().await.expect("half closed");
    assert!(half.ends().await);
    assert_eq!(get(&sim, "/health").await.status, 200);
}
