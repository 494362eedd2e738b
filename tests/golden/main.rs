//! Golden streams of each API: a stream as an engine sends it, a line of dashes, and what must come of it.
//!
//! The second part says how many events had data and how many of them output, the units and whose figures they are,
//! whether the protocol's own end came, and the upstream's error where it told one. A third part, behind another line
//! of dashes, is what a client sees that did not ask for usage, where that is not the stream itself. Every stream is
//! read whole, a byte at a time and in other pieces, and with each kind of line end.
#![allow(
    clippy::wildcard_enum_match_arm,
    clippy::too_many_lines,
    clippy::type_complexity,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tables of cases are long, look at the few cases they are about, and hold small numbers"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../support/random.rs"]
mod random;

use bytes::Bytes;
use random::Random;
use std::fmt::Write;
use std::path::Path;
use streamgate::api::{Answer, AnswerOptions, Call, Shape, native};
use streamgate::budget::Units;
use streamgate::config::LineEnds;

const DASHES: &str = "----\n";

/// Reads every file of a folder.
fn check_all(folder: &str, call: Call, fewest: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(folder);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).expect("the folder of golden streams") {
        let path = entry.expect("an entry of the folder").path();
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        check(call, &path.display().to_string(), &text);
        count += 1;
    }
    assert!(
        count >= fewest,
        "{}: only {count} streams",
        folder.display()
    );
}

fn check(call: Call, name: &str, text: &str) {
    let mut parts = text.split(DASHES);
    let (Some(stream), Some(expected)) = (parts.next(), parts.next()) else {
        panic!("{name} has no line of dashes");
    };
    let shown = parts.next().unwrap_or(stream);
    for end in ["\n", "\r\n", "\r"] {
        let sent = stream.replace('\n', end);
        let shown = if call == Call::Native {
            shown.to_owned()
        } else {
            shown.replace('\n', end)
        };
        for (how, pieces) in cuts(sent.as_bytes()) {
            let what = format!("{name}, line ends {end:?}, {how}");
            let hiding = Run::of(call, true, &pieces);
            assert_eq!(hiding.told, expected, "{what}");
            assert_eq!(hiding.shown, shown, "{what}: what the client sees");
            let asked = Run::of(call, false, &pieces);
            assert_eq!(asked.told, expected, "{what}, usage asked for");
            if call != Call::Native {
                assert!(sent.starts_with(&asked.shown), "{what}: bytes were changed");
                assert!(
                    asked.shown.len() >= shown.len(),
                    "{what}: bytes are missing"
                );
            }
        }
    }
}

/// The stream in pieces of several kinds.
fn cuts(stream: &[u8]) -> Vec<(String, Vec<&[u8]>)> {
    let mut cuts = vec![
        ("whole".to_owned(), vec![stream]),
        ("a byte at a time".to_owned(), stream.chunks(1).collect()),
    ];
    for seed in 0..20 {
        let pieces = Random::new(seed).pieces(stream, 8);
        cuts.push((format!("cut by seed {seed}"), pieces));
    }
    cuts
}

struct Run {
    shown: String,
    told: String,
}

impl Run {
    fn of(call: Call, hide_usage: bool, pieces: &[&[u8]]) -> Run {
        let mut answer = answer(call, hide_usage);
        let (mut shown, mut events, mut content) = (Vec::new(), 0, 0);
        for piece in pieces {
            let fed = answer.feed(Bytes::copy_from_slice(piece));
            shown.extend_from_slice(&fed.bytes);
            events += fed.events;
            content += fed.content;
        }
        let fed = answer.finish();
        shown.extend_from_slice(&fed.bytes);
        Run {
            shown: String::from_utf8(shown).expect("whole characters"),
            told: told(&answer, events + fed.events, content + fed.content),
        }
    }
}

fn answer(call: Call, hide_usage: bool) -> Answer {
    let options = AnswerOptions {
        hide_usage,
        line_ends: LineEnds::Keep,
        bytes_per_unit: 4,
    };
    if call != Call::Native {
        return Answer::new(call, Shape::Events, options);
    }
    let about = native::About {
        request_id: "r-1".to_owned(),
        model: "m".to_owned(),
        input_estimate: Units(3),
    };
    Answer::native(Shape::Events, options, about)
}

/// What the second part of a file says.
fn told(answer: &Answer, events: u32, content: u32) -> String {
    let totals = answer.totals();
    let number =
        |units: Option<Units>| units.map_or("not named".to_owned(), |units| units.to_string());
    let end = if answer.ended() { "yes" } else { "no" };
    let mut told = format!("events: {events}, with output: {content}\n");
    write!(told, "input: {}", number(totals.input)).unwrap();
    if let Some(cached) = totals.input_cached {
        write!(told, ", from the cache: {cached}").unwrap();
    }
    if let Some(written) = totals.input_cache_write {
        write!(told, ", into the cache: {written}").unwrap();
    }
    writeln!(
        told,
        "\noutput: {}, {}\nend: {end}",
        totals.generated, totals.source
    )
    .unwrap();
    if let Some(failure) = answer.failure() {
        writeln!(told, "error: {failure}").unwrap();
    }
    told
}

#[test]
fn chat() {
    check_all("chat", Call::Chat, 15);
}

#[test]
fn completions() {
    check_all("completions", Call::Completions, 3);
}

#[test]
fn responses() {
    check_all("responses", Call::Responses, 5);
}

#[test]
fn messages() {
    check_all("messages", Call::Messages, 7);
}

#[test]
fn native_generations() {
    check_all("native", Call::Native, 4);
}

#[test]
#[should_panic(expected = "with output")]
fn a_golden_stream_that_is_wrong_is_found() {
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n----\nevents: 2, with output: 2\n";
    check(Call::Chat, "a wrong one", text);
}
