//! Cleartext HTTP/2 with prior knowledge: streams, several on one connection, and leaving by RST_STREAM.

use crate::support::KEY;
use crate::support::ask::chat;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::http2::Http2;
use crate::support::script::{holding, tokens};
use crate::support::wait::{PATIENCE, ms};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::Request;

fn gateway(engine: &Engine) -> Gateway {
    Gateway::builder()
        .backend(engine.addr())
        .listen("h2c = true")
        .start()
}

/// Runs a conversation over one connection.
fn over_one_connection<F: Future>(
    gateway: &Gateway,
    talk: impl FnOnce(SendRequest<Bytes>) -> F,
) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(gateway.addr())
            .await
            .unwrap();
        let (client, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::spawn(connection);
        tokio::time::timeout(PATIENCE, talk(client))
            .await
            .expect("the conversation ends in time")
    })
}

async fn send(client: SendRequest<Bytes>, id: &str) -> (ResponseFuture, SendStream<Bytes>) {
    let request = Request::post("http://localhost/v1/chat/completions")
        .header("authorization", format!("Bearer {KEY}"))
        .header("content-type", "application/json")
        .header("idempotency-key", id)
        .body(())
        .unwrap();
    let mut client = client.ready().await.unwrap();
    let (response, mut body) = client.send_request(request, false).unwrap();
    let doc = chat().document().to_string();
    body.send_data(doc.into(), true).unwrap();
    (response, body)
}

/// Reads until some text was seen, or to the end.
async fn read(body: &mut RecvStream, until: &str) -> Vec<u8> {
    let mut all = Vec::new();
    while events::count(&all, until.as_bytes()) == 0 {
        let Some(piece) = body.data().await else {
            break;
        };
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        all.extend_from_slice(&piece);
    }
    all
}

#[test]
fn several_streams_run_on_one_connection() {
    let engine = Engine::scripted(tokens(5, ms(10)));
    let gateway = gateway(&engine);
    let bodies = over_one_connection(&gateway, |client| async move {
        let mut answers = Vec::new();
        for n in 0..5 {
            answers.push(send(client.clone(), &format!("h2-{n}")).await.0);
        }
        let mut bodies = Vec::new();
        for answer in answers {
            let mut answer = answer.await.unwrap();
            assert_eq!(answer.status(), 200);
            assert!(answer.headers().contains_key("x-request-id"));
            bodies.push(read(answer.body_mut(), "no such text").await);
        }
        bodies
    });
    for body in &bodies {
        assert_eq!(
            events::contents(body).len(),
            5,
            "{}",
            String::from_utf8_lossy(body)
        );
        assert!(events::is_done(body));
    }
    assert_eq!(gateway.ended("h2-4")["state"], "COMPLETED");
    gateway.settled();
}

#[test]
fn a_stream_that_is_reset_has_its_upstream_aborted_and_the_connection_lives_on() {
    let (hold, run) = (holding(2), tokens(2, ms(0)));
    let engine = Engine::scripted(move |call| {
        if call.seen.number == 0 {
            hold(call)
        } else {
            run(call)
        }
    });
    let gateway = gateway(&engine);
    over_one_connection(&gateway, |client| async {
        let (answer, mut sending) = send(client.clone(), "h2-left").await;
        let mut answer = answer.await.unwrap();
        read(answer.body_mut(), "t1 ").await;
        sending.send_reset(Reason::CANCEL);
        drop(answer);
        let (next, _sending) = send(client, "h2-next").await;
        let mut next = next.await.unwrap();
        assert!(events::is_done(
            &read(next.body_mut(), "no such text").await
        ));
        engine.call(0).closed();
    });
    let record = gateway.ended("h2-left");
    assert_eq!(record["state"], "CANCELLED", "{record}");
    assert_eq!(record["ended_by"], "client_closed", "{record}");
    gateway.settled();
}

#[test]
fn http_1_goes_on_beside_it() {
    let engine = Engine::scripted(tokens(2, ms(0)));
    let gateway = gateway(&engine);
    assert!(events::is_done(&gateway.chat("h1-1").rest()));
}

/// Streams that are opened and reset, faster than any work can be done for them.
#[test]
fn a_flood_of_resets_leaves_nothing_behind() {
    let engine = Engine::scripted(holding(1));
    let gateway = gateway(&engine);
    for round in 0..4 {
        let connection = Http2::connect(gateway.addr());
        for n in 0..500 {
            // the gateway may have enough of it and close
            match connection.try_send(&chat().id(&format!("flood-{round}-{n}"))) {
                Ok(stream) => stream.reset(),
                Err(_) => break,
            }
        }
        connection.close();
    }
    gateway.settled();
    let mut stream = Http2::connect(gateway.addr()).send(&chat().id("after"));
    stream.until(|body| events::count(body, b"t0 ") > 0);
    assert_eq!(stream.status, 200);
    stream.reset();
    gateway.settled();
}
