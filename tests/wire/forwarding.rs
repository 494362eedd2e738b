//! Headers on their way through: what belongs to one connection stays there, what a client may not say is not passed
//! on, and what the gateway says cannot be taken away.

use crate::support::KEY;
use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::engine::{Engine, Seen};
use crate::support::gateway::Gateway;
use crate::support::script::{completion, tokens};
use crate::support::wait::ms;

/// What a client sends, and what an engine gets of it: `None` is nothing.
fn cases() -> Vec<(&'static str, &'static str, Option<&'static str>)> {
    vec![
        // what belongs to the connection
        ("Connection", "keep-alive, X-Named, x-other", None),
        ("X-Named", "1", None),
        ("X-OTHER", "1", None),
        ("Keep-Alive", "timeout=5", None),
        ("Proxy-Connection", "keep-alive", None),
        ("Proxy-Authorization", "Basic eA==", None),
        ("Proxy-Authenticate", "Basic", None),
        ("TE", "trailers", None),
        ("Trailer", "X-Sum", None),
        ("Upgrade", "h2c", None),
        // keys, in every place and spelling
        ("Api-Key", "sk-1", None),
        ("X-Goog-Api-Key", "sk-2", None),
        ("xi-api-key", "sk-3", None),
        ("X_Api_Key", "sk-4", None),
        // what only the gateway may say
        ("X-Streamgate-Tenant", "other", None),
        ("x_streamgate_tenant", "other", None),
        ("X-Real-IP", "6.6.6.6", None),
        ("Forwarded", "for=6.6.6.6", None),
        ("X-Forwarded-For", "6.6.6.6, 7.7.7.7", Some("127.0.0.1")),
        ("X_Forwarded_For", "6.6.6.6", None),
        ("X-Forwarded-Proto", "https", Some("http")),
        ("X-Forwarded-Host", "elsewhere", None),
        // what is for the engine
        ("X-Request-Id", "trace-1", Some("trace-1")),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ),
        ("OpenAI-Organization", "org-1", Some("org-1")),
        ("X-Odd", "a, b;c=\"d\"", Some("a, b;c=\"d\"")),
        ("User-Agent", "test/1", Some("test/1")),
    ]
}

fn ask() -> Ask {
    cases()
        .into_iter()
        .fold(whole_chat(), |ask, (name, value, _)| {
            ask.header(name, value)
        })
}

#[track_caller]
fn one_value(call: &Seen, name: &str) -> Option<String> {
    assert!(
        call.headers.count(name) <= 1,
        "{name} more than once: {:?}",
        call.headers
    );
    call.headers.get(name).map(str::to_owned)
}

#[test]
fn the_engine_gets_what_is_meant_for_it_and_nothing_else() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    assert_eq!(gateway.answer(&ask()).status, 200);
    let call = engine.call(0);
    for (name, _, expected) in cases() {
        assert_eq!(
            one_value(&call, name).as_deref(),
            expected,
            "{name}: {:?}",
            call.headers
        );
    }
    assert_eq!(one_value(&call, "host").as_deref(), Some(engine.addr()));
    assert_eq!(
        one_value(&call, "content-type").as_deref(),
        Some("application/json")
    );
    assert_eq!(call.headers.count("authorization"), 0);
}

#[test]
fn what_the_gateway_says_cannot_be_named_away() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .file("upstream.key", "sk-upstream-0003\n")
        .pool("api_key = { file = \"upstream.key\" }")
        .start();
    let named = "keep-alive, Authorization, Content-Length, Host, X-Request-Id, X-Forwarded-For, Accept-Encoding, close";
    let answer = gateway.answer(&whole_chat().header("Connection", named));
    if answer.status == 400 {
        // naming what goes from end to end may be refused; it is never obeyed
        answer.must_refuse(400, "invalid_request");
        assert_eq!(engine.calls().len(), 0);
        return;
    }
    assert_eq!(answer.status, 200, "{}", answer.text());
    let call = engine.call(0);
    let length = call.body.len().to_string();
    let expected = [
        ("authorization", "Bearer sk-upstream-0003"),
        ("host", engine.addr()),
        ("content-length", &length),
        ("x-forwarded-for", "127.0.0.1"),
        ("accept-encoding", "identity"),
    ];
    for (name, value) in expected {
        assert_eq!(one_value(&call, name).as_deref(), Some(value), "{name}");
    }
    let id = answer.headers.get("x-request-id").unwrap();
    assert_eq!(one_value(&call, "x-request-id").as_deref(), Some(id));
}

#[test]
fn a_trusted_proxy_is_believed_and_goes_on_the_chain() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .server("trusted_proxies = [\"127.0.0.0/8\", \"10.0.0.0/8\"]")
        .start();
    // the chain the proxy sends, what the engine gets, who it is in the access log
    let cases = [
        ("6.6.6.6", "6.6.6.6, 127.0.0.1", "6.6.6.6"),
        (
            "7.7.7.7, 6.6.6.6, 10.0.0.1",
            "7.7.7.7, 6.6.6.6, 10.0.0.1, 127.0.0.1",
            "6.6.6.6",
        ),
        ("2001:db8::1", "2001:db8::1, 127.0.0.1", "2001:db8::1"),
    ];
    for (n, (chain, sent, client)) in cases.into_iter().enumerate() {
        let id = format!("chain-{n}");
        let ask = chat()
            .id(&id)
            .header("X-Forwarded-For", chain)
            .header("X-Forwarded-Proto", "https");
        assert_eq!(gateway.answer(&ask).status, 200);
        let call = engine.call(n);
        assert_eq!(one_value(&call, "x-forwarded-for").as_deref(), Some(sent));
        assert_eq!(
            one_value(&call, "x-forwarded-proto").as_deref(),
            Some("https")
        );
        assert_eq!(gateway.access_line(&id)["client"], client);
    }
}

#[test]
fn an_untrusted_client_is_itself_in_the_access_log() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    assert_eq!(
        gateway
            .answer(&chat().id("itself").header("X-Forwarded-For", "6.6.6.6"))
            .status,
        200
    );
    assert_eq!(gateway.access_line("itself")["client"], "127.0.0.1");
}

#[test]
fn what_belongs_to_the_upstreams_connection_does_not_reach_the_client() {
    let engine = Engine::scripted(|call| {
        let body = completion(1).to_string();
        let length = body.len().to_string();
        call.head_with(
            200,
            &[
                ("Content-Type", "application/json"),
                ("Content-Length", &length),
                ("Connection", "close, X-Private"),
                ("X-Private", "1"),
                ("Keep-Alive", "timeout=5"),
                ("Proxy-Authenticate", "Basic"),
                ("Trailer", "X-Sum"),
                ("Upgrade", "h3"),
                ("X-Request-Id", "theirs-1"),
                ("X-Public", "1"),
                ("openai-processing-ms", "7"),
            ],
        )?;
        call.raw(body.as_bytes())?;
        call.fin()
    });
    let gateway = Gateway::before(&engine);
    let mut stream = gateway.send(&whole_chat().id("hop-1"));
    let answer = stream.next_answer();
    assert_eq!(answer.status, 200);
    for gone in [
        "x-private",
        "keep-alive",
        "proxy-authenticate",
        "trailer",
        "upgrade",
    ] {
        assert_eq!(
            answer.headers.count(gone),
            0,
            "{gone}: {:?}",
            answer.headers
        );
    }
    for (kept, value) in [
        ("x-public", "1"),
        ("openai-processing-ms", "7"),
        ("x-request-id", "hop-1"),
    ] {
        assert_eq!(
            answer.headers.get(kept),
            Some(value),
            "{:?}",
            answer.headers
        );
        assert_eq!(answer.headers.count(kept), 1, "{:?}", answer.headers);
    }
    assert_eq!(gateway.ended("hop-1")["upstream_request_id"], "theirs-1");
    // that the upstream closes its connection is nothing to the client's
    stream.write(&Ask::get("/v1/models").key(KEY).bytes());
    assert_eq!(stream.next_answer().status, 200);
}
