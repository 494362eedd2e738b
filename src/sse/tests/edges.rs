//! What single bytes and reads do.

use super::*;

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
