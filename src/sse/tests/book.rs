//! The scanner against the specification, read by the letter.

use super::*;

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
