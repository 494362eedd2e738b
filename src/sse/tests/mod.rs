//! Any split of a stream gives the same events and the same bytes.

mod book;
mod edges;
mod oversize;

use super::{Event, HELD_MAX, Oversize, Scanner, Sink, ToLf, Verdict};
use bytes::Bytes;

/// Reproducible chance: xorshift64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % limit.max(1)
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// The pieces of `bytes` between cuts at random places.
pub(crate) fn random_pieces<'a>(bytes: &'a [u8], random: &mut Random) -> Vec<&'a [u8]> {
    let count = [0, 1, 3, 20, 200][random.below(5)];
    let mut cuts: Vec<usize> = (0..count).map(|_| random.below(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect()
}

/// Name and data.
type Seen = (Option<String>, Option<String>);

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
    large: Vec<u8>,
    /// Events with this data are hidden.
    hides: Option<&'static [u8]>,
}

fn text(bytes: Option<&[u8]>) -> Option<String> {
    bytes.map(|b| String::from_utf8_lossy(b).into_owned())
}

impl Sink for Log {
    fn event(&mut self, event: &Event<'_>) -> Verdict {
        if *event != Event::default() {
            self.seen.push((text(event.name), text(event.data)));
        }
        if self.hides.is_some() && event.data == self.hides {
            Verdict::Hide
        } else {
            Verdict::Pass
        }
    }

    fn data_piece(&mut self, piece: &[u8]) {
        self.large.extend_from_slice(piece);
    }

    fn data_end(&mut self, event: &Event<'_>) {
        let data = std::mem::take(&mut self.large);
        self.seen
            .push((text(event.name), event.data.and(text(Some(&data)))));
    }
}

/// What came out of a run over pieces.
#[derive(Debug, PartialEq)]
struct Run {
    seen: Vec<Seen>,
    out: Vec<u8>,
    tail: Vec<u8>,
}

fn run_with(limit: usize, hides: Option<&'static [u8]>, pieces: &[&[u8]]) -> Run {
    let mut scanner = Scanner::new(limit, Oversize::Pass);
    let mut log = Log {
        hides,
        ..Log::default()
    };
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&scanner.feed(&Bytes::copy_from_slice(piece), &mut log));
    }
    Run {
        seen: log.seen,
        out,
        tail: scanner.tail().to_vec(),
    }
}

fn run(pieces: &[&[u8]]) -> Run {
    run_with(HELD_MAX, None, pieces)
}

/// A stream of odd events, from a seed.
pub(crate) fn random_stream(random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    if random.below(5) == 0 {
        out.extend_from_slice("\u{feff}".as_bytes());
    }
    let style = random.below(4);
    for _ in 0..random.below(40) {
        let line = random.pick(&[
            "",
            "",
            "",
            "data: x",
            "data:y",
            "data",
            "data: ",
            "data:  é😀",
            ": note",
            ":",
            "event: e",
            "event",
            "id: 5",
            "retry: 1",
            "foo: data: z",
            "\u{feff}data: b",
            "dat",
            "data : q",
        ]);
        let end = ["\n", "\r\n", "\r"][if style == 3 { random.below(3) } else { style }];
        let line = if random.below(30) == 0 {
            "data: ".to_owned() + &"z".repeat(random.below(3000))
        } else {
            line.to_owned()
        };
        out.extend_from_slice(line.as_bytes());
        out.extend_from_slice(end.as_bytes());
    }
    out
}

const TRANSCRIPTS: [&str; 12] = [
    "data: a\n\ndata: [DONE]\n\n",
    "data: {\"content\":\"北京 😀 é\"}\r\n\r\nevent: x\r\ndata: b\r\n\r\n",
    "data: a\r\rdata: b\r\rdata: [DONE]\r\r",
    "data: A\r\ndata: B\r\ndata: C\r\n\r\n",
    "data: a\n\r\ndata: b\r\n\rdata: c\r\n\n\n\n\rdata: d\n\n",
    "\u{feff}data: first\n\n\u{feff}data: not a field\n\ndata: \u{feff}kept\n\n",
    ": hello\n\n:\n:x\nretry: 3000\n\nid: 7\nevent: message\nfoo: bar\nfoo\ndata: a\n\ndata:\n\nevent: ping\n\n",
    "data:a\n\ndata:  b\n\ndata\n\ndata\ndata\n\ndata:[DONE]\n\n",
    "\n\n\r\r\n\ndata: x\n\n",
    "event: a\nevent: b\ndata: 1\ndata: 2\n\ntail without its end",
    "\u{feff}\n\ndata: x\r\n\r",
    "\u{feff}",
];

/// The events by the letter of the specification: slow, simple, and over the whole bytes.
fn by_the_book(bytes: &[u8]) -> Vec<Seen> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut seen = Vec::new();
    let (mut name, mut data): (Option<String>, Option<String>) = (None, None);
    let mut lines: Vec<&str> = unified.split('\n').collect();
    lines.pop();
    for line in lines {
        if line.is_empty() {
            let block = (name.take(), data.take());
            if block != (None, None) {
                seen.push(block);
            }
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "event" => name = Some(value),
            "data" => {
                data = Some(match data.take() {
                    None => value,
                    Some(before) => format!("{before}\n{value}"),
                });
            }
            _ => {}
        }
    }
    seen
}
