//! The scripted engine: it is told by a request's `user` what to play.

use crate::support::engine::{Call, Engine, Played};
use crate::support::events;
use crate::support::script::silent;
use crate::support::wait::ms;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Between two events of a stream that is read.
pub const PACE: Duration = ms(20);

/// A healthy stream's length.
pub const EVENTS: usize = 100;

/// Text of one event for those who read nothing.
const LARGE: usize = 32 << 10;

pub fn start() -> Engine {
    now();
    Engine::scripted(|call| match call.member("user").as_str() {
        "says nothing" => silent(call),
        "says its head" => {
            call.head()?;
            call.hold()
        }
        "goes on" => goes_on(call),
        "flood" => flood(call),
        _ => stamped(call),
    })
}

/// Microseconds since the program's start, the same clock for engine and clients.
pub fn now() -> u128 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_micros()
}

/// Events without an end, close together.
fn goes_on(call: &mut Call) -> Played {
    call.head()?;
    loop {
        call.delta("and ")?;
        call.pause(ms(2))?;
    }
}

/// Each event says when it was written.
fn stamped(call: &mut Call) -> Played {
    call.head()?;
    let mut due = Instant::now();
    for _ in 0..EVENTS {
        due += PACE;
        call.pause(due.saturating_duration_since(Instant::now()))?;
        call.delta(&now().to_string())?;
    }
    call.done()
}

/// As much as is taken.
fn flood(call: &mut Call) -> Played {
    call.head()?;
    let event = events::delta(&"w".repeat(LARGE));
    loop {
        call.chunk(&event)?;
        call.count_made();
    }
}
