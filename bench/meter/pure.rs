//! The scanner and the meters alone: no socket, no task, one thread.

use crate::samples;
use bytes::Bytes;
use std::time::{Duration, Instant};
use streamgate::api::{Answer, AnswerOptions, Call, Shape};
use streamgate::config::LineEnds;
use streamgate::sse::{Event, HELD_MAX, Oversize, Scanner, Sink, Verdict};

const ROUNDS: usize = 5;

/// How long one round of one case takes, about.
const ROUND: Duration = Duration::from_millis(200);

/// One case over all rounds.
pub struct Alone {
    pub name: String,
    pub bytes_per_event: usize,
    /// Nanoseconds per event, a round each.
    pub ns: Vec<f64>,
}

pub fn measure() -> Vec<Alone> {
    let mut cases = vec![scanner()];
    for sample in samples::all() {
        let event = Bytes::from(sample.event);
        cases.push(case(sample.name.to_owned(), event.len(), 1, || {
            reads(sample.call, vec![event.clone()])
        }));
        if sample.name == "chat" {
            let (head, tail) = (
                event.slice(..event.len() / 2),
                event.slice(event.len() / 2..),
            );
            cases.push(case(
                "chat, each event in two reads".to_owned(),
                event.len(),
                1,
                || reads(sample.call, vec![head.clone(), tail.clone()]),
            ));
            let many = Bytes::from(event.repeat(64));
            cases.push(case(
                "chat, 64 events in a read".to_owned(),
                event.len(),
                64,
                || reads(sample.call, vec![many.clone()]),
            ));
        }
    }
    cases.push(large());
    cases.push(document());
    cases
}

/// Runs a case that makes a turn of `events` events at each call of what `begin` gives.
fn case<F: FnMut()>(
    name: String,
    bytes_per_event: usize,
    events: usize,
    begin: impl Fn() -> F,
) -> Alone {
    let ns = (0..ROUNDS)
        .map(|_| per_turn(&mut begin()) / events as f64)
        .collect();
    Alone {
        name,
        bytes_per_event,
        ns,
    }
}

/// Nanoseconds of one turn, over as many as fill a round.
fn per_turn(turn: &mut impl FnMut()) -> f64 {
    const BATCH: u32 = 64;
    let start = Instant::now();
    let mut turns = 0_u32;
    loop {
        (0..BATCH).for_each(|_| turn());
        turns += BATCH;
        if start.elapsed() >= ROUND {
            return start.elapsed().as_secs_f64() * 1e9 / f64::from(turns);
        }
    }
}

fn answer(call: Call, shape: Shape) -> Answer {
    let options = AnswerOptions {
        hide_usage: true,
        line_ends: LineEnds::Keep,
        bytes_per_unit: 4,
    };
    Answer::new(call, shape, options)
}

/// An answer that is fed these reads over and over, and must pass every byte.
fn reads(call: Call, reads: Vec<Bytes>) -> impl FnMut() {
    let mut answer = answer(call, Shape::Events);
    move || {
        let sent: usize = reads.iter().map(Bytes::len).sum();
        let passed: usize = reads
            .iter()
            .map(|read| answer.feed(read.clone()).bytes.len())
            .sum();
        assert_eq!(passed, sent, "bytes were held back");
    }
}

/// Where events end and what their fields are, and nothing of what they mean.
fn scanner() -> Alone {
    struct Nobody;
    impl Sink for Nobody {
        fn event(&mut self, _: &Event<'_>) -> Verdict {
            Verdict::Pass
        }
        fn data_piece(&mut self, _: &[u8]) {}
        fn data_end(&mut self, _: &Event<'_>) {}
    }
    let event = Bytes::from(samples::chat());
    case("chat, the scanner alone".to_owned(), event.len(), 1, || {
        let event = event.clone();
        let mut scanner = Scanner::new(HELD_MAX, Oversize::Pass);
        move || assert_eq!(scanner.feed(&event, &mut Nobody).len(), event.len())
    })
}

/// One event of 8 MiB in reads of 1 KiB: the time must be that of its bytes.
fn large() -> Alone {
    const LENGTH: usize = 8 << 20;
    let text = "lorem ipsum ".repeat(LENGTH / 12);
    let event = Bytes::from(samples::chat_with(&text));
    let turn = || {
        let mut answer = answer(Call::Chat, Shape::Events);
        let start = Instant::now();
        for at in (0..event.len()).step_by(1024) {
            answer.feed(event.slice(at..(at + 1024).min(event.len())));
        }
        assert_eq!(answer.totals().generated.0, 1, "the event was not counted");
        start.elapsed().as_secs_f64() * 1e9
    };
    Alone {
        name: "chat, one event of 8 MiB in reads of 1 KiB".to_owned(),
        bytes_per_event: event.len(),
        ns: (0..ROUNDS).map(|_| turn()).collect(),
    }
}

/// A whole answer that is not a stream.
fn document() -> Alone {
    let text = "words and more words, \\n".repeat(40_000);
    let document = Bytes::from(format!(
        "{{\"id\":\"x\",\"choices\":[{{\"message\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}],\
         \"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":6}}}}"
    ));
    let turn = || {
        let mut answer = answer(Call::Chat, Shape::Whole);
        let start = Instant::now();
        answer.feed(document.clone());
        answer.finish();
        assert_eq!(answer.totals().generated.0, 6, "the usage was not found");
        start.elapsed().as_secs_f64() * 1e9
    };
    Alone {
        name: "chat, a document of 1 MB".to_owned(),
        bytes_per_event: document.len(),
        ns: (0..ROUNDS).map(|_| turn()).collect(),
    }
}
