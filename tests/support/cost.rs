//! Engines whose answers cost what a test says, and requests of which it is known what they reserve.

use super::ask::{Ask, chat};
use super::engine::{Call, Engine, Played};
use super::{events, script};
use serde_json::{Value, json};

/// What the prompt of `chat` is estimated at.
pub const INPUT: u64 = 3;

/// A chat that reserves this many units.
pub fn reserving(units: u64) -> Ask {
    chat().set("max_tokens", units - INPUT)
}

/// An engine that reports this usage of every chat, stream or not.
pub fn engine(input: u64, output: u64) -> Engine {
    Engine::scripted(costing(input, output))
}

pub fn costing(input: u64, output: u64) -> impl Fn(&mut Call) -> Played + Send + Sync + 'static {
    move |call| {
        if call.is_stream() {
            call.head()?;
            call.delta("t0 ")?;
            call.chunk(&events::event(&events::usage(input, output).to_string()))?;
            return call.done();
        }
        let mut doc: Value = script::completion(1);
        doc["usage"] = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
        call.answer(200, "application/json", doc.to_string().as_bytes())
    }
}
