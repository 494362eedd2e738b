//! What is measured on: the simulator, the scripted engine, the gateway before both, the broken relays.

use crate::relays::{self, Fault};
use crate::support::ask::{Ask, chat};
use crate::support::engine::{Call, Engine, Played};
use crate::support::gateway::Gateway;
use crate::support::script::{silent, token};
use crate::support::sim::Sim;
use crate::support::wait::ms;
use serde_json::json;
use std::time::Duration;

pub const TOKENS: usize = 300;
pub const PROMPT_WORDS: usize = 200;
pub const PREFILL: Duration = ms(20 + PROMPT_WORDS as u64);
pub const PACE: Duration = ms(10);

/// The scripted engine's model.
const SCRIPTED: &str = "scripted";

pub struct Ground {
    pub sim: Sim,
    pub engine: Engine,
    pub gateway: Gateway,
    /// Relays before the simulator.
    pub buffers_all: String,
    pub never_flushes: String,
    /// Before the scripted engine.
    pub deaf: String,
}

impl Ground {
    pub fn start() -> Ground {
        let times = [
            "--prefill-ms",
            "20",
            "--prefill-ms-per-token",
            "1",
            "--decode-ms",
            "10",
            "--notice",
            "at-once",
        ];
        let sim = Sim::with(&times);
        let engine = Engine::scripted(script);
        let scripted = format!(
            "[[pool]]\nname = \"scripted\"\nmodels = [\"{SCRIPTED}\"]\nbackends = [{{ addr = \"{}\" }}]",
            engine.addr()
        );
        let gateway = Gateway::builder()
            .threads(0)
            .backend(sim.addr())
            .extra(&scripted)
            .start();
        Ground {
            buffers_all: relays::start(Fault::BuffersAll, sim.addr()),
            never_flushes: relays::start(Fault::NeverFlushes, sim.addr()),
            deaf: relays::start(Fault::Deaf, engine.addr()),
            sim,
            engine,
            gateway,
        }
    }
}

/// The chat every measurement asks of the simulator.
pub fn long_chat() -> Ask {
    let words = vec!["word"; PROMPT_WORDS].join(" ");
    chat()
        .set("messages", json!([{"role": "user", "content": words}]))
        .set("max_tokens", TOKENS)
}

/// The same, for the scripted engine.
pub fn scripted_chat(how: &str) -> Ask {
    long_chat().set("model", SCRIPTED).set("user", how)
}

/// The scripted engine: the simulator's times, or nothing at all.
fn script(call: &mut Call) -> Played {
    match call.member("user").as_str() {
        "says nothing" => silent(call),
        "says its head" => {
            call.head()?;
            call.hold()
        }
        _ => paced(call),
    }
}

fn paced(call: &mut Call) -> Played {
    call.pause(PREFILL)?;
    call.head()?;
    let mut due = std::time::Instant::now();
    for n in 0..TOKENS {
        call.pause(due.saturating_duration_since(std::time::Instant::now()))?;
        call.delta(&token(n))?;
        due += PACE;
    }
    call.done()
}
