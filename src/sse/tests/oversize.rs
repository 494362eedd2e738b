//! Events too large to be held.

use super::*;

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
