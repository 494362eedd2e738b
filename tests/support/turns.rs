//! Requests that wait in line for a slot: an engine that lets some hold theirs and notes in which order all reached it.

use super::ask::Ask;
use super::client::Stream;
use super::dialect::Dialect;
use super::engine::{Call, Engine, Played};
use super::gateway::Gateway;
use super::script::{Door, completion};
use super::{KEY, events, wait};
use serde_json::Value;
use std::sync::{Arc, Mutex};

/// The lines of a pool with one slot and a long line.
pub const ONE_SLOT: &str = "max_streams = 1\nqueue = { max_wait = \"20s\", max_len = 64 }";

/// The requests by name, in the order they ran, and the door before which those wait that hold their slot.
#[derive(Clone, Default)]
pub struct Turns {
    order: Arc<Mutex<Vec<String>>>,
    door: Door,
}

impl Turns {
    /// Says one word to each request, in its API's own words. One that holds says it at once and ends once it is let go.
    pub fn engine(&self) -> Engine {
        let turns = self.clone();
        Engine::scripted(move |call| turns.play(call))
    }

    fn play(&self, call: &mut Call) -> Played {
        let header = |name: &str| call.seen.headers.get(name).map(str::to_owned);
        let (name, holds) = (header("x-turn"), header("x-holds").is_some());
        self.order
            .lock()
            .expect("the order")
            .push(name.unwrap_or_default());
        if !call.is_stream() {
            if holds {
                self.door.pass()?;
            }
            return call.answer(
                200,
                "application/json",
                completion(1).to_string().as_bytes(),
            );
        }
        let dialect = spoken_at(&call.seen.path);
        call.head()?;
        call.chunk(&dialect.say("t0 "))?;
        if holds {
            self.door.pass()?;
        }
        call.chunk(&dialect.end())?;
        call.end()
    }

    pub fn order(&self) -> Vec<String> {
        self.order.lock().expect("the order").clone()
    }

    /// Sends a request that gets its slot at once; it holds it when this returns.
    #[track_caller]
    pub fn holds(&self, gateway: &Gateway, ask: &Ask, name: &str) -> Stream {
        let stream = gateway.send(&named(ask, name).header("X-Holds", "1"));
        wait::until(format!("{name} to run"), || {
            let order = self.order();
            match order.iter().any(|ran| ran == name) {
                true => Ok(()),
                false => Err(format!("{order:?} ran")),
            }
        });
        stream
    }

    /// Lets one that holds go on to its end.
    pub fn let_go(&self) {
        self.door.open();
    }
}

/// A request with a name, which is also its id.
pub fn named(ask: &Ask, name: &str) -> Ask {
    ask.clone().id(name).header("X-Turn", name)
}

/// Sends a request of `acme` that has to wait; it is in line when this returns.
#[track_caller]
pub fn lines_up(gateway: &Gateway, ask: &Ask, name: &str) -> Stream {
    lines_up_as(KEY, gateway, ask, name)
}

/// As `lines_up`, by the key of any tenant.
#[track_caller]
pub fn lines_up_as(key: &str, gateway: &Gateway, ask: &Ask, name: &str) -> Stream {
    let stream = gateway.send(&named(ask, name).key(key));
    is_queued(gateway, key, name);
    stream
}

/// Waits until a request is in line.
#[track_caller]
pub fn is_queued(gateway: &Gateway, key: &str, id: &str) -> Value {
    let record = Ask::get(format!("/generations/{id}")).key(key);
    wait::until(format!("{id} to be in line"), || {
        let answer = gateway.answer(&record);
        match answer.status {
            200 if answer.json()["state"] == "QUEUED" => Ok(answer.json()),
            _ => Err(answer.text()),
        }
    })
}

/// Fails unless the answer is a whole one of this engine.
#[track_caller]
pub fn must_be_served(stream: &mut Stream, dialect: Dialect) {
    assert_eq!(stream.status(), 200, "{stream:?}");
    let body = stream.rest();
    let text = String::from_utf8_lossy(&body);
    assert_eq!(dialect.texts(&body), ["t0 "], "{text}");
    assert!(
        events::find(&body, dialect.client_end()).is_some(),
        "{text}"
    );
}

/// The API that an engine is asked by.
fn spoken_at(path: &str) -> Dialect {
    match path {
        "/v1/messages" => Dialect::Messages,
        "/v1/responses" => Dialect::Responses,
        "/v1/completions" => Dialect::Completions,
        _ => Dialect::Chat,
    }
}
