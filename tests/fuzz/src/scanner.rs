//! What must hold of the scanner: any split gives the events of the specification and the bytes as they came.

use crate::book;
use crate::case::{Case, Random};
use crate::sse::{Event, HELD_MAX, Oversize, Scanner, Sink, Verdict};
use bytes::Bytes;

/// The events as the scanner tells them, large ones put together again.
#[derive(Default)]
struct Log {
    events: Vec<book::Event>,
    large: Vec<u8>,
}

impl Log {
    fn take(&mut self, name: Option<&[u8]>, data: Option<Vec<u8>>) {
        let event = book::Event {
            name: name.map(<[u8]>::to_vec),
            data,
        };
        if event != book::Event::default() {
            self.events.push(event);
        }
    }
}

impl Sink for Log {
    fn event(&mut self, event: &Event<'_>) -> Verdict {
        self.take(event.name, event.data.map(<[u8]>::to_vec));
        Verdict::Pass
    }

    fn data_piece(&mut self, piece: &[u8]) {
        self.large.extend_from_slice(piece);
    }

    fn data_end(&mut self, event: &Event<'_>) {
        let data = std::mem::take(&mut self.large);
        self.take(event.name, event.data.map(|_| data));
    }
}

/// Names over this length are cut in large events: no event the gateway knows has one.
const NAME_MAX: usize = 64;

pub fn check(case: &Case<'_>) {
    let mut random = Random::new(case.seed ^ 0xa5a5);
    let limit = [8, 100, HELD_MAX][random.below(3)];
    let pieces = case.pieces();
    let cut = random.below(pieces.len());
    let mut scanner = Scanner::new(limit, Oversize::Pass);
    let mut log = Log::default();
    let mut out = Vec::new();
    for (n, piece) in pieces.into_iter().enumerate() {
        out.extend_from_slice(&scanner.feed(&Bytes::copy_from_slice(piece), &mut log));
        assert!(scanner.tail().len() <= limit, "more is held than the limit");
        if n == cut {
            closes(&scanner, &out);
        }
    }
    out.extend_from_slice(scanner.tail());
    assert_eq!(out, case.stream, "bytes were changed");
    assert_eq!(
        capped(log.events),
        capped(book::events(case.stream)),
        "other events"
    );
}

/// What is shown in part can be closed at any time: an event written behind it stands alone.
fn closes(scanner: &Scanner, out: &[u8]) {
    let closed = [out, scanner.closing(), b"data: last\n\n".as_slice()].concat();
    let last = book::events(&closed).pop().and_then(|event| event.data);
    assert_eq!(
        last.as_deref(),
        Some(b"last".as_slice()),
        "an event shown in part was not closed"
    );
}

fn capped(mut events: Vec<book::Event>) -> Vec<book::Event> {
    for name in events.iter_mut().filter_map(|event| event.name.as_mut()) {
        name.truncate(NAME_MAX);
    }
    events
}
