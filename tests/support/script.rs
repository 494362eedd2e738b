//! Scripts many tests share, and the means to hold one until the test says go.

use super::engine::{Call, Gone, Played};
use super::{events, wait};
use serde_json::{Value, json};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// `t0 `, `t1 ` … with a gap between, then `[DONE]`; or the same as one document. The usage it reports is the true one.
pub fn tokens(count: usize, gap: Duration) -> impl Fn(&mut Call) -> Played + Send + Sync + 'static {
    move |call| {
        if !call.is_stream() {
            for n in 0..count {
                pause_between(call, n, gap)?;
                call.count_made();
            }
            return call.answer(
                200,
                "application/json",
                completion(count).to_string().as_bytes(),
            );
        }
        call.head()?;
        for n in 0..count {
            pause_between(call, n, gap)?;
            call.delta(&token(n))?;
        }
        if call.json()["stream_options"]["include_usage"] == true {
            call.chunk(&events::event(&events::usage(5, count as u64).to_string()))?;
        }
        call.done()
    }
}

/// Sends the head and some tokens, then waits to be left.
pub fn holding(count: usize) -> impl Fn(&mut Call) -> Played + Send + Sync + 'static {
    move |call| {
        call.head()?;
        for n in 0..count {
            call.delta(&token(n))?;
        }
        call.hold()
    }
}

/// Holds a request whose `user` is `hold` after one token; plays the others.
pub fn holding_some(
    others: impl Fn(&mut Call) -> Played + Send + Sync + 'static,
) -> impl Fn(&mut Call) -> Played + Send + Sync + 'static {
    let hold = holding(1);
    move |call| {
        if call.member("user") == "hold" {
            hold(call)
        } else {
            others(call)
        }
    }
}

/// Says nothing at all and waits to be left.
pub fn silent(call: &mut Call) -> Played {
    call.hold()
}

/// Sends pieces as chunks, with some time between two, and the last chunk. An empty piece is only a silence.
pub fn pieces(
    pieces: Vec<Vec<u8>>,
    gap: Duration,
) -> impl Fn(&mut Call) -> Played + Send + Sync + 'static {
    move |call| {
        call.head()?;
        for (n, piece) in pieces.iter().enumerate() {
            pause_between(call, n, gap)?;
            if !piece.is_empty() {
                call.chunk(piece)?;
            }
        }
        call.end()
    }
}

/// The text of a token by its number.
pub fn token(n: usize) -> String {
    format!("t{n} ")
}

fn pause_between(call: &mut Call, n: usize, gap: Duration) -> Played {
    if n > 0 && !gap.is_zero() {
        call.pause(gap)
    } else {
        Ok(())
    }
}

/// A chat's whole answer.
pub fn completion(count: usize) -> Value {
    let text: String = (0..count).map(token).collect();
    json!({
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text.trim_end()}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": count, "total_tokens": count + 5},
    })
}

/// A door that lets one script through for each `open`.
#[derive(Clone, Default)]
pub struct Door {
    inside: Arc<(Mutex<usize>, Condvar)>,
}

impl Door {
    pub fn open(&self) {
        *self.inside.0.lock().expect("the door") += 1;
        self.inside.1.notify_all();
    }

    /// Waits until the door is opened once more than it was passed; a test that never opens it ends the script.
    pub fn pass(&self) -> Played {
        let (lock, moved) = &*self.inside;
        let count = lock.lock().expect("the door");
        let waited = moved.wait_timeout_while(count, wait::PATIENCE, |count| *count == 0);
        let (mut count, timeout) = waited.expect("the door");
        if timeout.timed_out() {
            return Err(Gone);
        }
        *count -= 1;
        Ok(())
    }
}

/// Counts those who are inside, and the most that ever were at once.
#[derive(Clone, Default)]
pub struct Gauge {
    inside: Arc<Mutex<(usize, usize)>>,
}

/// One who is inside, until dropped.
pub struct Inside {
    gauge: Gauge,
}

impl Gauge {
    pub fn enter(&self) -> Inside {
        let mut counts = self.inside.lock().expect("the gauge");
        counts.0 += 1;
        counts.1 = counts.1.max(counts.0);
        Inside {
            gauge: self.clone(),
        }
    }

    pub fn peak(&self) -> usize {
        self.inside.lock().expect("the gauge").1
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.gauge.inside.lock().expect("the gauge").0 -= 1;
    }
}
