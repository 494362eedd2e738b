//! What must hold of an answer on its way, whatever the upstream sent and however it was cut.

use crate::api::{Answer, Call, Code, Fault, Fed, Totals, heartbeat};
use crate::book;
use crate::budget::Units;
use crate::case::{Case, Random};
use crate::config::LineEnds;
use bytes::Bytes;
use serde_json::Value;

const FAULT: Fault<'static> = Fault {
    code: Code::UpstreamBroken,
    message: "the upstream broke off",
    param: None,
    request_id: "r-1",
};

pub fn check(case: &Case<'_>) {
    let whole = Run::of(case, &[case.stream]);
    let cut = Run::of(case, &case.pieces());
    assert_eq!(cut, whole, "the cut changed what came of it");
    whole.figures_are_believable();
    match (case.passes_events(), case.call) {
        (true, _) => {
            passes(case, &whole.out);
            bears_heartbeats(case, &whole.out);
        }
        (false, Call::Native) => whole.is_numbered(),
        (false, _) => assert_eq!(whole.out, case.stream, "a whole body was changed"),
    }
    can_fail_anywhere(case);
}

/// All that is known at the end.
#[derive(Debug, PartialEq)]
struct Run {
    out: Vec<u8>,
    events: u32,
    content: u32,
    ended: bool,
    shown: bool,
    failure: Option<String>,
    totals: Totals,
}

impl Run {
    fn of(case: &Case<'_>, pieces: &[&[u8]]) -> Run {
        let mut answer = case.answer();
        let mut sum = Sum::default();
        for piece in pieces {
            sum.take(answer.feed(Bytes::copy_from_slice(piece)));
        }
        sum.take(answer.finish());
        Run {
            out: sum.out,
            events: sum.events,
            content: sum.content,
            ended: answer.ended(),
            shown: answer.shown(),
            failure: answer.failure().map(str::to_owned),
            totals: answer.totals(),
        }
    }

    fn figures_are_believable(&self) {
        let counted =
            Units(u64::from(self.content).max(u64::try_from(self.out.len()).unwrap_or(u64::MAX)));
        assert!(
            self.totals.generated <= Units::BELIEVABLE_MAX.plus(counted),
            "{:?}",
            self.totals
        );
        let most = Units(Units::BELIEVABLE_MAX.0 * 3);
        assert!(
            self.totals.input.is_none_or(|units| units <= most),
            "{:?}",
            self.totals
        );
    }

    /// A native stream's events are numbered from 1, hold JSON, and say `completed` where and only where it ended; a
    /// native document is one.
    fn is_numbered(&self) {
        if !self.out.starts_with(b"id: ") {
            assert!(self.out.is_empty() || serde_json::from_slice::<Value>(&self.out).is_ok());
            return;
        }
        let mut names = Vec::new();
        for (n, block) in book::blocks(&self.out).into_iter().enumerate() {
            let number = format!("id: {}\n", n + 1);
            assert!(
                block.starts_with(number.as_bytes()),
                "the events are not numbered on"
            );
            let event = book::events(block).pop().unwrap_or_default();
            assert!(serde_json::from_slice::<Value>(&event.data.unwrap_or_default()).is_ok());
            names.push(event.name.unwrap_or_default());
        }
        assert_eq!(
            names.first().map(Vec::as_slice),
            Some(b"started".as_slice())
        );
        assert_eq!(names.iter().any(|name| name == b"completed"), self.ended);
    }
}

#[derive(Default)]
struct Sum {
    out: Vec<u8>,
    events: u32,
    content: u32,
}

impl Sum {
    fn take(&mut self, fed: Fed) {
        self.out.extend_from_slice(&fed.bytes);
        self.events += fed.events;
        self.content += fed.content;
    }
}

/// The client gets the upstream's bytes, but for the usage it did not ask for and what is torn at the end.
fn passes(case: &Case<'_>, out: &[u8]) {
    let came = match case.options.line_ends {
        LineEnds::Keep => case.stream.to_vec(),
        LineEnds::Lf => book::to_lf(case.stream),
    };
    if !case.options.hide_usage {
        assert!(came.starts_with(out), "bytes were changed");
        assert_eq!(
            book::events(out),
            book::events(&came),
            "a whole event was held back"
        );
        return;
    }
    let mut rest = out;
    for block in book::blocks(&came) {
        match rest.strip_prefix(block) {
            Some(after) => rest = after,
            None => assert!(
                speaks_of_usage(block),
                "something else than usage was left out"
            ),
        }
    }
    assert!(came.ends_with(rest), "bytes were changed");
}

/// The block names usage, perhaps with letters escaped.
fn speaks_of_usage(block: &[u8]) -> bool {
    let has = |piece: &[u8]| block.windows(piece.len()).any(|window| window == piece);
    has(b"usage") || has(b"\\u")
}

/// Heartbeats wherever one fits change neither the events a client sees nor a byte of the upstream's.
fn bears_heartbeats(case: &Case<'_>, plain: &[u8]) {
    let beat = heartbeat(case.call.api());
    let mut answer = case.answer();
    let (mut out, mut unbeaten) = (Vec::new(), Vec::new());
    for piece in case.pieces() {
        if answer.heartbeat_fits() {
            out.extend_from_slice(&beat);
            answer.heartbeat_sent();
        }
        let fed = answer.feed(Bytes::copy_from_slice(piece)).bytes;
        out.extend_from_slice(&fed);
        unbeaten.extend_from_slice(&fed);
    }
    let last = answer.finish().bytes;
    out.extend_from_slice(&last);
    unbeaten.extend_from_slice(&last);
    let without_bom = plain.strip_prefix(b"\xef\xbb\xbf").unwrap_or(plain);
    assert!(
        unbeaten == plain || unbeaten == without_bom,
        "a heartbeat changed the upstream's bytes"
    );
    assert_eq!(
        but_pings(&out, &beat),
        but_pings(plain, &beat),
        "a heartbeat changed the events"
    );
}

fn but_pings(bytes: &[u8], beat: &[u8]) -> Vec<book::Event> {
    let ping = book::events(beat);
    let mut events = book::events(bytes);
    events.retain(|event| !ping.contains(event));
    events
}

/// Broken off anywhere, the error event stands alone behind what was shown.
fn can_fail_anywhere(case: &Case<'_>) {
    if !case.passes_events() {
        return;
    }
    let mut answer: Answer = case.answer();
    let pieces = case.pieces();
    let cut = Random::new(case.seed ^ 0x5a5a).below(pieces.len() + 1);
    let mut out = Vec::new();
    for piece in &pieces[..cut] {
        out.extend_from_slice(&answer.feed(Bytes::copy_from_slice(piece)).bytes);
    }
    let before = book::events(&out).len();
    out.extend_from_slice(&answer.error_event(&FAULT));
    let events = book::events(&out);
    assert_eq!(
        events.len(),
        before + 1,
        "the error event does not stand alone"
    );
    let data = events
        .last()
        .and_then(|event| event.data.clone())
        .unwrap_or_default();
    let document: Value = serde_json::from_slice(&data).unwrap_or_default();
    assert_eq!(document["error"]["code"], "upstream_broken");
}
