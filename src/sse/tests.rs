//! Any split of a stream gives the same events and the same bytes.

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

#[test]
fn every_cut_gives_the_same_events_and_the_same_bytes() {
    for transcript in TRANSCRIPTS {
        let bytes = transcript.as_bytes();
        let want = by_the_book(bytes);
        let whole = run(&[bytes]);
        assert_eq!(whole.seen, want, "{transcript:?}");
        assert_eq!([whole.out.as_slice(), &whole.tail].concat(), bytes);
        for cut in 0..=bytes.len() {
            for second in cut..=bytes.len() {
                let pieces = [&bytes[..cut], &bytes[cut..second], &[], &bytes[second..]];
                let got = run(&pieces);
                assert_eq!(got, whole, "{transcript:?} cut at {cut} and {second}");
            }
        }
        let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(run(&bytewise), whole, "{transcript:?} a byte at a time");
    }
}

#[test]
fn an_event_leaves_with_its_last_byte() {
    for transcript in TRANSCRIPTS {
        let mut scanner = Scanner::new(HELD_MAX, Oversize::Pass);
        let mut log = Log::default();
        for (at, byte) in transcript.bytes().enumerate() {
            scanner.feed(&Bytes::copy_from_slice(&[byte]), &mut log);
            // A blank line's CR ends an event at once: its LF, if one comes, adds nothing.
            let so_far = &transcript.as_bytes()[..=at];
            if std::str::from_utf8(so_far).is_ok() {
                assert_eq!(log.seen, by_the_book(so_far), "{transcript:?} up to {at}");
            }
        }
    }
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

#[test]
fn random_streams_read_as_the_specification_says_and_pass_unchanged() {
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let bytes = random_stream(&mut random);
        let pieces = random_pieces(&bytes, &mut random);
        let got = run(&pieces);
        assert_eq!(got.seen, by_the_book(&bytes), "seed {seed}");
        assert_eq!([got.out, got.tail].concat(), bytes, "seed {seed}");
        // A limit that events outgrow changes neither events nor bytes; only comments alone are told apart no more.
        let small = run_with(9, None, &pieces);
        let named = |seen: &[Seen]| -> Vec<Seen> {
            seen.iter()
                .filter(|s| **s != (None, None))
                .cloned()
                .collect()
        };
        assert_eq!(
            named(&small.seen),
            by_the_book(&bytes),
            "seed {seed}, small limit"
        );
        assert_eq!(
            [small.out, small.tail].concat(),
            bytes,
            "seed {seed}, small limit"
        );
    }
}

#[test]
fn bytes_of_any_kind_do_no_harm() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..random.below(400))
            .map(|_| b"\r\n:d\xef\xbb\xbfataevn \xff\0"[random.below(16)])
            .collect();
        let pieces = random_pieces(&bytes, &mut random);
        let got = run(&pieces);
        assert_eq!([got.out, got.tail].concat(), bytes, "seed {seed}");
    }
}

#[test]
fn a_chunk_of_whole_events_passes_without_a_copy() {
    let chunk = Bytes::from_static(b"data: a\n\n: x\n\ndata: b\r\n\r\n");
    let mut scanner = Scanner::new(HELD_MAX, Oversize::Pass);
    let out = scanner.feed(&chunk, &mut Log::default());
    assert_eq!((out.as_ptr(), out.len()), (chunk.as_ptr(), chunk.len()));
}

#[test]
fn a_hidden_event_leaves_nothing_behind_wherever_it_is_cut() {
    for end in ["\n", "\r\n", "\r"] {
        let event = |data: &str| format!("data: {data}{end}{end}");
        let text = [event("a"), event("hide"), event("[DONE]")].concat();
        let want = [event("a"), event("[DONE]")].concat();
        for cut in 0..=text.len() {
            for second in cut..=text.len() {
                let pieces = [&text[..cut], &text[cut..second], &text[second..]].map(str::as_bytes);
                let got = run_with(HELD_MAX, Some(b"hide"), &pieces);
                let got = String::from_utf8(got.out).unwrap();
                assert_eq!(got, want, "{text:?} cut at {cut} and {second}");
            }
        }
    }
}

#[test]
fn a_lf_is_owed_after_a_cr_until_the_next_byte() {
    let mut scanner = Scanner::new(HELD_MAX, Oversize::Pass);
    let mut log = Log::default();
    let mut feed = |bytes: &'static [u8]| {
        let out = scanner.feed(&Bytes::from_static(bytes), &mut log);
        (out, scanner.may_owe_lf())
    };
    assert_eq!(
        feed(b"data: a\r\n\r"),
        (Bytes::from_static(b"data: a\r\n\r"), true)
    );
    assert_eq!(feed(b""), (Bytes::new(), true));
    assert_eq!(feed(b"\n"), (Bytes::from_static(b"\n"), false));
    assert_eq!(
        feed(b"data: b\r"),
        (Bytes::new(), false),
        "that CR has not been shown"
    );
    assert_eq!(feed(b"\r"), (Bytes::from_static(b"data: b\r\r"), true));
    assert_eq!(feed(b"d"), (Bytes::new(), false));
}

#[test]
fn an_event_over_the_limit_passes_as_it_comes_and_is_read_to_its_end() {
    for n in [65_535, 65_537, 1_048_577] {
        for end in ["\n", "\r\n", "\r"] {
            let big = format!(
                "event: big{end}data: {}{end}data: y{end}{end}",
                "x".repeat(n)
            );
            let text = format!("data: a{end}{end}{big}data: [DONE]{end}{end}");
            let mut scanner = Scanner::new(HELD_MAX, Oversize::Pass);
            let mut log = Log::default();
            let mut out = Vec::new();
            for piece in text.as_bytes().chunks(1000) {
                let read = out.len();
                out.extend_from_slice(&scanner.feed(&Bytes::copy_from_slice(piece), &mut log));
                assert!(scanner.tail().len() <= HELD_MAX);
                assert!(!scanner.mid_event_shown() || out.len() > read);
            }
            assert_eq!(out, text.as_bytes());
            let data = format!("{}\ny", "x".repeat(n));
            let seen =
                |name: Option<&str>, data: &str| (name.map(str::to_owned), Some(data.to_owned()));
            let want = [
                seen(None, "a"),
                seen(Some("big"), &data),
                seen(None, "[DONE]"),
            ];
            assert_eq!(log.seen, want);
        }
    }
}

#[test]
fn an_event_shown_in_part_is_closed_by_what_makes_its_last_line_blank() {
    for (shown, closing) in [
        ("data: x", "\n\n"),
        ("data: x\n", "\n"),
        ("data: x\r\n", "\n"),
        ("data: x\r", "\n\n"),
        ("data: x\ne", "\n\n"),
    ] {
        let mut scanner = Scanner::new(4, Oversize::Pass);
        let mut log = Log::default();
        assert_eq!(scanner.closing(), b"", "nothing is shown yet");
        let out = scanner.feed(&Bytes::from(shown), &mut log);
        assert!(scanner.mid_event_shown());
        assert_eq!(scanner.closing(), closing.as_bytes(), "{shown:?}");
        let closed = [out.as_ref(), closing.as_bytes(), b"data: e\n\n"].concat();
        let last = by_the_book(&closed).pop().unwrap();
        assert_eq!(last, (None, Some("e".to_owned())), "{shown:?}");
    }
}

#[test]
fn an_event_that_never_ends_is_not_kept() {
    for line in [": giant comment ", "data: x\n", "data: no line end "] {
        let mut scanner = Scanner::new(HELD_MAX, Oversize::Pass);
        let chunk = Bytes::from(line.repeat(1000));
        struct Nothing;
        impl Sink for Nothing {
            fn event(&mut self, _: &Event<'_>) -> Verdict {
                Verdict::Pass
            }
            fn data_piece(&mut self, _: &[u8]) {}
            fn data_end(&mut self, _: &Event<'_>) {}
        }
        let (mut read, mut passed) = (0, 0);
        for _ in 0..500 {
            read += chunk.len();
            passed += scanner.feed(&chunk, &mut Nothing).len();
            assert!(read - passed <= HELD_MAX);
            assert_eq!(scanner.tail().len(), read - passed);
        }
    }
}

#[test]
fn a_bom_behind_other_bytes_is_left_out() {
    let text = "\u{feff}data: a\n\n".as_bytes();
    for cut in 0..=text.len() {
        let mut scanner = Scanner::new(HELD_MAX, Oversize::Pass);
        let mut log = Log::default();
        scanner.other_bytes_sent();
        let mut out = scanner
            .feed(&Bytes::copy_from_slice(&text[..cut]), &mut log)
            .to_vec();
        out.extend_from_slice(&scanner.feed(&Bytes::copy_from_slice(&text[cut..]), &mut log));
        assert_eq!(out, b"data: a\n\n", "cut at {cut}");
        assert_eq!(log.seen, [(None, Some("a".to_owned()))]);
    }
}

#[test]
fn a_part_of_a_bom_is_a_line_like_any_other() {
    let mut scanner = Scanner::new(HELD_MAX, Oversize::Pass);
    let mut log = Log::default();
    assert_eq!(
        scanner.feed(&Bytes::from_static(b"\xef\xbb\n"), &mut log),
        ""
    );
    let out = scanner.feed(&Bytes::from_static(b"data: a\n\n"), &mut log);
    assert_eq!(out, &b"\xef\xbb\ndata: a\n\n"[..]);
}

#[test]
fn a_tail_reads_as_the_event_it_would_be() {
    for tail in [
        "data: [DONE]",
        "data: [DONE]\n",
        "data: [DONE]\r\n",
        "data: [DONE]\r",
    ] {
        let mut scanner = Scanner::new(HELD_MAX, Oversize::Pass);
        let out = scanner.feed(
            &Bytes::from(format!("data: a\n\n{tail}")),
            &mut Log::default(),
        );
        assert_eq!(out, "data: a\n\n");
        assert_eq!(scanner.tail_event().data, Some(&b"[DONE]"[..]), "{tail:?}");
        assert_eq!(scanner.take_tail(), tail);
    }
}

#[test]
fn lf_mode_agrees_with_the_book_on_random_streams() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let bytes = random_stream(&mut random);
        let mut to_lf = ToLf::default();
        let mut out = Vec::new();
        for piece in random_pieces(&bytes, &mut random) {
            out.extend_from_slice(&to_lf.apply(Bytes::copy_from_slice(piece)));
        }
        let text = String::from_utf8(bytes).unwrap();
        let want = text.replace("\r\n", "\n").replace('\r', "\n");
        assert_eq!(String::from_utf8(out).unwrap(), want, "seed {seed}");
    }
}
