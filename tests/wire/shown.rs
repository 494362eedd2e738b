//! STREAMING begins with the first output, and what was delivered is not what was made.

use crate::support::ask::{Ask, chat};
use crate::support::dialect::{self, Dialect, named};
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::script::Door;
use crate::support::wait::seconds;
use serde_json::{Value, json};

fn chunk(delta: Value) -> Vec<u8> {
    events::event(&events::chunk(delta).to_string())
}

/// Events of each API: first one that is no output, then one that is.
fn borders() -> Vec<(&'static str, Dialect, Vec<u8>, Vec<u8>)> {
    let role = || chunk(json!({"role": "assistant", "content": ""}));
    let tool = json!({"tool_calls": [{"index": 0, "id": "t1", "type": "function", "function": {"name": "f", "arguments": ""}}]});
    let block = |block: Value| {
        named(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
    };
    let item = |item: Value| {
        named(&json!({"type": "response.output_item.added", "output_index": 0, "item": item}))
    };
    vec![
        (
            "text",
            Dialect::Chat,
            role(),
            chunk(json!({"content": "a"})),
        ),
        (
            "reasoning",
            Dialect::Chat,
            role(),
            chunk(json!({"reasoning_content": "hm"})),
        ),
        (
            "reasoning of another spelling",
            Dialect::Chat,
            role(),
            chunk(json!({"reasoning": "hm"})),
        ),
        (
            "a tool call",
            Dialect::Chat,
            chunk(json!({"content": null})),
            chunk(tool),
        ),
        (
            "a refusal",
            Dialect::Chat,
            role(),
            chunk(json!({"refusal": "no"})),
        ),
        (
            "text",
            Dialect::Completions,
            Dialect::Completions.say(""),
            Dialect::Completions.say("a"),
        ),
        (
            "text",
            Dialect::Responses,
            item(json!({"type": "message"})),
            Dialect::Responses.say("a"),
        ),
        (
            "a function call",
            Dialect::Responses,
            item(json!({"type": "reasoning"})),
            item(json!({"type": "function_call", "name": "f"})),
        ),
        (
            "reasoning",
            Dialect::Responses,
            Dialect::Responses.preamble(),
            named(&json!({"type": "response.reasoning_summary_text.delta", "delta": "hm"})),
        ),
        (
            "text",
            Dialect::Messages,
            Dialect::Messages.preamble(),
            Dialect::Messages.say("a"),
        ),
        (
            "a tool use",
            Dialect::Messages,
            block(json!({"type": "text", "text": ""})),
            block(json!({"type": "tool_use", "id": "t", "name": "f", "input": {}})),
        ),
        (
            "thinking",
            Dialect::Messages,
            named(&json!({"type": "ping"})),
            named(
                &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
            ),
        ),
    ]
}

#[test]
fn a_request_is_streaming_from_its_first_output_on() {
    for (what, dialect, quiet, output) in borders() {
        let before = events::blocks(&quiet).len();
        let door = Door::default();
        let engine = Engine::scripted({
            let door = door.clone();
            move |call| {
                call.head()?;
                call.chunk(&quiet)?;
                door.pass()?;
                call.chunk(&output)?;
                door.pass()?;
                call.chunk(&dialect.end())?;
                call.end()
            }
        });
        let gateway = dialect::gateway(&engine, "");
        let mut stream = gateway.send(&dialect.ask().id("border"));
        for _ in 0..before {
            let event = stream.event();
            assert!(
                event.is_some(),
                "{what} of {dialect:?}: without consent nothing is held"
            );
        }
        let record = gateway.record("border");
        assert_eq!(
            record["state"], "RUNNING",
            "before {what} of {dialect:?}: {record}"
        );
        assert_eq!(record["first_output_at"], json!(null), "{record}");
        door.open();
        assert!(stream.event().is_some());
        let record = gateway.record("border");
        assert_eq!(
            record["state"], "STREAMING",
            "{what} of {dialect:?}: {record}"
        );
        assert!(record["first_output_at"].is_string(), "{record}");
        door.open();
        stream.rest();
        let record = gateway.ended("border");
        assert_eq!(
            record["state"], "COMPLETED",
            "{what} of {dialect:?}: {record}"
        );
        assert_eq!(
            (&record["generated_units"], &record["delivered_units"]),
            (&json!(1), &json!(1)),
            "{what} of {dialect:?}: {record}"
        );
    }
}

#[test]
fn a_native_request_is_streaming_from_its_first_delta_on() {
    let door = Door::default();
    let engine = Engine::scripted({
        let door = door.clone();
        move |call| {
            call.head()?;
            call.chunk(&Dialect::Native.preamble())?;
            door.pass()?;
            call.delta("a")?;
            call.hold()
        }
    });
    let gateway = dialect::gateway(&engine, "");
    let mut stream = gateway.send(&Dialect::Native.ask().id("border"));
    assert!(
        stream.event().is_some_and(|e| e.contains("started")),
        "{stream:?}"
    );
    assert_eq!(gateway.record("border")["state"], "RUNNING");
    door.open();
    assert!(
        stream.event().is_some_and(|e| e.contains("delta")),
        "{stream:?}"
    );
    assert_eq!(gateway.record("border")["state"], "STREAMING");
}

#[test]
fn what_a_slow_reader_was_not_sent_is_not_delivered() {
    // far more than the sockets on the way can hold, to a client that stops reading
    const EVENTS: usize = 2000;
    let engine = Engine::scripted(|call| {
        call.head()?;
        let piece = events::delta(&"x".repeat(20_000));
        (0..EVENTS).try_for_each(|_| call.chunk(&piece))?;
        call.done()
    });
    let gateway = dialect::gateway(&engine, "stream = { write_timeout = \"500ms\" }");
    let mut stream = gateway.chat("slow");
    stream.content();
    let record = gateway.ended("slow");
    assert_eq!(
        (&record["state"], &record["ended_by"]),
        (&json!("CANCELLED"), &json!("slow_reader")),
        "{record}"
    );
    let units = |name: &str| record[name].as_u64().unwrap_or_default();
    assert!(units("delivered_units") > 0, "{record}");
    assert!(
        units("delivered_units") < units("generated_units"),
        "{record}"
    );
    assert!(
        units("generated_units") < EVENTS as u64,
        "the upstream was read on for nobody: {record}"
    );
    assert_eq!(
        units("charged_units"),
        units("input_units") + units("generated_units"),
        "{record}"
    );
    gateway.settled();
}

#[test]
fn a_whole_answer_is_delivered_whole() {
    let engine = Engine::scripted(|call| {
        call.answer(
            200,
            "application/json",
            br#"{"choices":[{"message":{"content":"abcdefgh"}}]}"#,
        )
    });
    let gateway = dialect::gateway(&engine, "");
    let ask: Ask = chat().without("stream").id("whole");
    assert_eq!(gateway.answer(&ask).status, 200);
    let record = gateway.ended("whole");
    // eight bytes of text at four bytes a unit
    assert_eq!(
        (&record["generated_units"], &record["delivered_units"]),
        (&json!(2), &json!(2)),
        "{record}"
    );
    assert_eq!(record["usage_source"], "counted", "{record}");
}

#[test]
fn what_was_delivered_to_a_client_that_left_is_what_it_had_been_sent() {
    dialect::each(|dialect| {
        let engine = Engine::scripted(move |call| {
            call.head()?;
            for _ in 0..3 {
                call.chunk(&dialect.say("a"))?;
            }
            call.hold()
        });
        let gateway = dialect::gateway(&engine, "");
        let mut stream = gateway.send(&dialect.ask().id("left")).patience(seconds(5));
        while dialect.texts(stream.body()).len() < 3 {
            assert!(stream.try_more().is_ok(), "{dialect:?}: {stream:?}");
        }
        gateway.reaches("left", "STREAMING");
        stream.close();
        engine.call(0).closed();
        let record = gateway.ended("left");
        assert_eq!(
            (&record["state"], &record["ended_by"]),
            (&json!("CANCELLED"), &json!("client_closed")),
            "{dialect:?}: {record}"
        );
        assert_eq!(
            (&record["generated_units"], &record["delivered_units"]),
            (&json!(3), &json!(3)),
            "{dialect:?}: {record}"
        );
        gateway.settled();
    });
}
