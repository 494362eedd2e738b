//! Usage: asked for on behalf of a client that did not, hidden from it, and believed only where it can be.

use crate::support::ask::{Ask, chat};
use crate::support::dialect::{self, Dialect, named};
use crate::support::engine::Engine;
use crate::support::events::{self, delta, done, event};
use crate::support::gateway::Gateway;
use serde_json::{Value, json};

/// What a request may say of usage, whether that asks for it, and what the upstream is sent with `usage = "inject"`.
fn options() -> Vec<(Option<Value>, bool, Value)> {
    let asked = json!({"include_usage": true});
    vec![
        (None, false, asked.clone()),
        (Some(json!(null)), false, asked.clone()),
        (Some(json!({})), false, asked.clone()),
        (Some(json!({"include_usage": false})), false, asked.clone()),
        (Some(json!({"include_usage": null})), false, asked.clone()),
        (
            Some(json!({"x_unknown": [1], "include_usage": false})),
            false,
            json!({"x_unknown": [1], "include_usage": true}),
        ),
        (
            Some(json!({"x_unknown": 1.5})),
            false,
            json!({"x_unknown": 1.5, "include_usage": true}),
        ),
        (Some(asked.clone()), true, asked),
    ]
}

fn streamed(path: &str, options: Option<Value>) -> Ask {
    let ask = match path {
        "/v1/completions" => Dialect::Completions.ask(),
        _ => chat(),
    };
    match options {
        Some(options) => ask.set("stream_options", options),
        None => ask,
    }
}

/// The usage chunk that vLLM and OpenAI send.
fn usage_chunk() -> Vec<u8> {
    event(&events::usage(5, 7).to_string())
}

/// An engine that sends usage where it is asked to, as the real ones do.
fn engine() -> Engine {
    Engine::scripted(|call| {
        call.head()?;
        call.delta("a")?;
        if call.json()["stream_options"]["include_usage"] == true {
            call.chunk(&usage_chunk())?;
        }
        call.done()
    })
}

#[test]
fn a_client_sees_the_usage_it_asked_for_and_no_other() {
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let engine = engine();
        let gateway = Gateway::before(&engine);
        for (number, (options, asked, upstream)) in options().into_iter().enumerate() {
            let id = format!("inject-{number}");
            let body = gateway
                .answer(&streamed(path, options.clone()).id(&id))
                .body;
            let text = String::from_utf8_lossy(&body);
            assert_eq!(
                engine.call(number).json()["stream_options"],
                upstream,
                "{path} {options:?}"
            );
            let seen = if asked { usage_chunk() } else { Vec::new() };
            let whole = [delta("a"), seen, done()].concat();
            assert_eq!(text, String::from_utf8_lossy(&whole), "{path} {options:?}");
            let record = gateway.ended(&id);
            assert_eq!(record["usage_source"], "upstream", "{options:?}: {record}");
            assert_eq!(
                (&record["input_units"], &record["generated_units"]),
                (&json!(5), &json!(7)),
                "{record}"
            );
        }
        gateway.settled();
    }
}

#[test]
fn with_keep_a_request_stays_as_it_came() {
    let engine = engine();
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("stream = { usage = \"keep\" }")
        .start();
    for (number, (options, asked, _)) in options().into_iter().enumerate() {
        let id = format!("keep-{number}");
        let ask = streamed("/v1/chat/completions", options.clone()).id(&id);
        let body = gateway.answer(&ask).body;
        let sent = engine.call(number).json();
        assert_eq!(sent.get("stream_options"), options.as_ref(), "{options:?}");
        assert_eq!(
            events::count(&body, b"\"usage\""),
            usize::from(asked),
            "{options:?}"
        );
        let record = gateway.ended(&id);
        let source = if asked { "upstream" } else { "counted" };
        assert_eq!(record["usage_source"], source, "{options:?}: {record}");
        assert_eq!(
            record["generated_units"],
            if asked { 7 } else { 1 },
            "{options:?}: {record}"
        );
    }
    gateway.settled();
}

/// How engines place and spell usage in a stream of two texts: the events, and the input and output to be recorded.
fn spellings() -> Vec<(&'static str, Vec<Vec<u8>>, (u64, u64))> {
    let with = |text: &str, usage: Value| {
        let mut chunk = events::chunk(json!({"content": text}));
        chunk["usage"] = usage;
        event(&chunk.to_string())
    };
    let usage = |input: u64, output: u64| json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    let finish = |usage: Value| {
        let doc = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage});
        event(&doc.to_string())
    };
    let own = |usage: Value| event(&json!({"choices": [], "usage": usage}).to_string());
    let two = || [delta("a"), delta("b")].concat();
    vec![
        (
            "in a chunk of its own",
            vec![two(), own(usage(5, 7))],
            (5, 7),
        ),
        (
            "null in every chunk",
            vec![
                with("a", json!(null)),
                with("b", json!(null)),
                own(usage(5, 7)),
            ],
            (5, 7),
        ),
        (
            "on the chunk that finishes",
            vec![two(), finish(usage(5, 7))],
            (5, 7),
        ),
        (
            "on that and in one of its own",
            vec![two(), finish(usage(5, 7)), own(usage(5, 7))],
            (5, 7),
        ),
        (
            "cumulative",
            vec![
                with("a", usage(5, 1)),
                with("b", usage(5, 2)),
                own(usage(5, 2)),
            ],
            (5, 2),
        ),
        (
            "second to last",
            vec![
                two(),
                own(usage(5, 7)),
                event(r#"{"choices":[],"cost":"0"}"#),
            ],
            (5, 7),
        ),
    ]
}

#[test]
fn usage_is_found_wherever_an_engine_puts_it_and_counted_once() {
    for (what, sent, (input, output)) in spellings() {
        let body = [sent.concat(), done()].concat();
        let engine = Engine::scripted(move |call| {
            call.head()?;
            call.chunk(&body)?;
            call.end()
        });
        let gateway = Gateway::before(&engine);
        let answer = gateway.answer(&chat().id("placed"));
        assert_eq!(events::contents(&answer.body), ["a", "b"], "{what}");
        let record = gateway.ended("placed");
        assert_eq!(record["usage_source"], "upstream", "{what}: {record}");
        assert_eq!(
            (&record["input_units"], &record["generated_units"]),
            (&json!(input), &json!(output)),
            "{what}: {record}"
        );
        assert_eq!(record["charged_units"], input + output, "{what}: {record}");
        gateway.settled();
    }
}

#[test]
fn only_the_chunk_that_is_nothing_but_usage_is_hidden() {
    for (what, sent, _) in spellings() {
        let shown: Vec<u8> = sent
            .iter()
            .filter(|piece| !piece.starts_with(b"data: {\"choices\":[],\"usage\""))
            .flatten()
            .copied()
            .collect();
        let body = [sent.concat(), done()].concat();
        let engine = Engine::scripted(move |call| {
            call.head()?;
            call.chunk(&body)?;
            call.end()
        });
        let gateway = Gateway::before(&engine);
        let got = gateway.answer(&chat()).body;
        let want = [shown, done()].concat();
        assert_eq!(
            String::from_utf8_lossy(&got),
            String::from_utf8_lossy(&want),
            "{what}"
        );
    }
}

#[test]
fn usage_that_nobody_can_have_counted_is_not_believed() {
    for absurd in [
        "-1000000",
        "9223372036854775807",
        "\"2147483647\"",
        "1e30",
        "3.7",
        "1000000001",
        "true",
        "[7]",
    ] {
        let usage = event(&format!(
            "{{\"choices\":[],\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{absurd},\"total_tokens\":12}}}}"
        ));
        let body = [delta("a"), delta("b"), usage, done()].concat();
        let engine = Engine::scripted(move |call| {
            call.head()?;
            call.chunk(&body)?;
            call.end()
        });
        let gateway = Gateway::before(&engine);
        let answer = gateway.answer(&chat().id("absurd"));
        assert!(
            events::is_done(&answer.body),
            "{absurd}: the stream is unharmed"
        );
        let record = gateway.ended("absurd");
        assert_eq!(record["state"], "COMPLETED", "{absurd}: {record}");
        assert_eq!(
            (&record["usage_source"], &record["generated_units"]),
            (&json!("counted"), &json!(2)),
            "{absurd}: {record}"
        );
        gateway.settled();
    }
}

#[test]
fn anthropic_usage_is_put_together_from_its_two_places_and_never_summed() {
    let start = |usage: Value| {
        named(&json!({"type": "message_start", "message": {"id": "m1", "usage": usage}}))
    };
    let stop = |usage: Value| {
        named(
            &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
        )
    };
    let cases = [
        (
            "cumulative, cache named twice",
            start(
                json!({"input_tokens": 317, "cache_creation_input_tokens": 4425, "output_tokens": 1}),
            ),
            vec![stop(
                json!({"input_tokens": 317, "cache_creation_input_tokens": 4425, "output_tokens": 47}),
            )],
            (317 + 4425, 47),
        ),
        (
            "a zero in the delta",
            start(json!({"input_tokens": 15, "output_tokens": 1})),
            vec![stop(json!({"input_tokens": 0, "output_tokens": 9}))],
            (15, 9),
        ),
        (
            "input only in the delta",
            start(json!({"input_tokens": 0, "output_tokens": 0})),
            vec![stop(
                json!({"input_tokens": 18, "cache_read_input_tokens": 8831, "output_tokens": 5}),
            )],
            (18 + 8831, 5),
        ),
        (
            "several deltas",
            start(json!({"input_tokens": 4, "output_tokens": 1})),
            vec![
                stop(json!({"output_tokens": 3})),
                stop(json!({"output_tokens": 8})),
            ],
            (4, 8),
        ),
    ];
    for (what, start, deltas, (input, output)) in cases {
        let body = [
            start,
            Dialect::Messages.say("a"),
            deltas.concat(),
            Dialect::Messages.end(),
        ]
        .concat();
        let engine = Engine::scripted(move |call| {
            call.head()?;
            call.chunk(&body)?;
            call.end()
        });
        let gateway = dialect::gateway(&engine, "");
        assert_eq!(
            gateway.answer(&Dialect::Messages.ask().id("two")).status,
            200
        );
        let record = gateway.ended("two");
        assert_eq!(
            (&record["input_units"], &record["generated_units"]),
            (&json!(input), &json!(output)),
            "{what}: {record}"
        );
        assert_eq!(record["usage_source"], "upstream", "{what}: {record}");
    }
}
