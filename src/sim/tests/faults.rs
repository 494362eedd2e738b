//! The faults of X-Sim, one by one.

use super::*;

#[tokio::test]
async fn a_scripted_reset_or_close_comes_after_that_many_events() {
    let sim = start(quick()).await;
    for path in STREAMED {
        for (fault, kind, whole_events) in [
            ("reset", ErrorKind::ConnectionReset, true),
            ("fin", ErrorKind::UnexpectedEof, true),
            ("torn", ErrorKind::ConnectionReset, false),
        ] {
            for after in [0, 5, 8] {
                let answer = post(&sim, path, &format!("{fault}@{after}"), &ask(8, true)).await;
                let case = format!("{path} {fault}@{after}: {answer:?}");
                assert_eq!(answer.status, 200, "{case}");
                assert_eq!(answer.broke, Some(kind), "{case}");
                let (whole, half) = answer
                    .text()
                    .rsplit_once("\n\n")
                    .unwrap_or(("", answer.text()));
                assert_eq!(whole_events, half.is_empty(), "{case}");
                let read = Answer {
                    body: whole.as_bytes().to_vec(),
                    ..answer
                };
                assert_eq!(tokens_of(&read), first_tokens(after), "{case}");
            }
        }
    }
    assert_eq!(metric(&sim, "request_success_total").await, 0);
    assert_eq!(metric(&sim, "num_requests_running").await, 0);
}

#[tokio::test]
async fn a_cut_after_more_events_than_there_are_never_comes() {
    let sim = start(quick()).await;
    let answer = post(&sim, "/v1/messages", "reset@9", &ask(8, true)).await;
    assert!(answer.whole, "{answer:?}");
}

#[tokio::test]
async fn a_document_is_cut_in_half() {
    let sim = start(quick()).await;
    for (fault, kind) in [
        ("reset@1", ErrorKind::ConnectionReset),
        ("torn@1", ErrorKind::ConnectionReset),
        ("fin@1", ErrorKind::UnexpectedEof),
    ] {
        let answer = post(&sim, "/v1/chat/completions", fault, &ask(8, false)).await;
        assert_eq!(answer.broke, Some(kind), "{fault}");
        let length: usize = answer
            .header("content-length")
            .expect("a length")
            .parse()
            .expect("a number");
        assert_eq!(answer.body.len(), length / 2, "{fault}");
    }
}

#[tokio::test]
async fn a_scripted_error_ends_the_stream_without_the_protocols_end() {
    let sim = start(quick()).await;
    for path in STREAMED {
        let answer = post(&sim, path, "error@3", &ask(8, true)).await;
        assert!(answer.whole && answer.status == 200, "{answer:?}");
        assert_eq!(tokens_of(&answer), first_tokens(3));
        let events = answer.events();
        let last = events.last().expect("events");
        assert!(
            last["error"].is_object() || last["type"] == "error",
            "{last}"
        );
        assert!(!answer.text().contains("[DONE]"));
        let whole = post(&sim, path, "error@3", &ask(8, false)).await;
        assert_eq!(whole.status, 500);
        assert!(whole.json()["error"].is_object());
    }
    assert_eq!(metric(&sim, "request_success_total").await, 0);
}

#[tokio::test]
async fn a_scripted_status_is_answered_in_the_apis_shape_and_the_connection_goes_on() {
    let sim = start(quick()).await;
    for path in STREAMED
        .iter()
        .chain(&["/v1/embeddings", "/v1/messages/count_tokens"])
    {
        let mut client = Client::connect(&sim).await;
        for status in [400, 429, 503, 529, 599] {
            let faults = format!("status={status}");
            client.post(path, &faults, &ask(8, true)).await;
            let answer = client.answer().await;
            assert_eq!(answer.status, status, "{path}");
            let retry = (status == 429).then_some("1");
            assert_eq!(answer.header("retry-after"), retry, "{path}");
            let doc = answer.json();
            assert!(doc["error"]["message"].is_string(), "{doc}");
            match path.starts_with("/v1/messages") {
                true => assert_eq!(doc["request_id"].as_str(), answer.header("x-request-id")),
                false => assert_eq!(doc["error"]["code"], status),
            }
        }
    }
    assert_eq!(metric(&sim, "generation_tokens_total").await, 0);
}

#[tokio::test]
async fn stalls_and_delays_take_their_time() {
    let sim = start(quick()).await;
    for (faults, stream) in [
        ("stall=60ms@3", true),
        ("stall=30ms@0 stall=30ms@8", true),
        ("header-delay=60ms", true),
        ("header-delay=60ms status=503", true),
        ("stall=60ms@3", false),
        ("header-delay=60ms", false),
    ] {
        let started = clock::instant();
        assert!(
            post(&sim, "/v1/messages", faults, &ask(8, stream))
                .await
                .whole
        );
        assert!(started.elapsed() >= Duration::from_millis(60), "{faults}");
    }
}

#[tokio::test]
async fn a_stream_without_its_end_still_closes_its_chunks() {
    let sim = start(quick()).await;
    for path in STREAMED {
        let answer = post(&sim, path, "no-done", &ask(8, true)).await;
        assert!(answer.whole, "{answer:?}");
        assert_eq!(tokens_of(&answer), first_tokens(8));
        for end in ["[DONE]", "message_stop", "response.completed"] {
            assert!(!answer.text().contains(end), "{path}: {end}");
        }
    }
}

#[tokio::test]
async fn line_ends_are_those_asked_for() {
    let sim = start(quick()).await;
    for path in STREAMED {
        let plain = post(&sim, path, "", &ask(2, true)).await;
        let crlf = post(&sim, path, "crlf", &ask(2, true)).await;
        let cr = post(&sim, path, "cr", &ask(2, true)).await;
        let lines = plain.text().matches('\n').count();
        assert_eq!(crlf.text().matches("\r\n").count(), lines);
        assert_eq!(crlf.text().matches('\n').count(), lines);
        assert_eq!(crlf.text().matches('\r').count(), lines);
        assert_eq!(cr.text().matches('\r').count(), lines);
        assert!(!cr.text().contains('\n'));
    }
}

#[tokio::test]
async fn a_split_body_is_the_same_body_in_small_pieces() {
    let sim = start(quick()).await;
    for stream in [true, false] {
        let mut reads = Vec::new();
        for faults in ["", "split=1"] {
            let mut client = Client::connect(&sim).await;
            client
                .post("/v1/chat/completions", faults, &ask(3, stream))
                .await;
            let answer = client.answer().await;
            assert!(answer.whole && answer.text().contains("t2 "), "{answer:?}");
            reads.push(client.reads);
        }
        assert!(reads[1] > 2 * reads[0], "{reads:?}");
    }
}

#[tokio::test]
async fn content_events_are_as_long_as_asked_for() {
    let sim = start(quick()).await;
    for (path, bytes) in [("/v1/chat/completions", 2 << 20), ("/v1/messages", 4096)] {
        let faults = format!("event-bytes={bytes}");
        let answer = post(&sim, path, &faults, &ask(2, true)).await;
        let long = answer
            .text()
            .split_inclusive("\n\n")
            .filter(|e| e.len() == bytes);
        assert_eq!(long.count(), 2, "{path}");
        assert!(tokens_of(&answer)[1].starts_with("t1 xxx"));
    }
    let small = post(&sim, "/v1/messages", "event-bytes=1", &ask(2, true)).await;
    assert_eq!(tokens_of(&small), first_tokens(2));
}
