//! The scanner reads the same tokens in any pieces, and takes for JSON what is JSON.

use super::{Grammar, Kind, Scanner, Str, Visitor, decoded};
use crate::sse::tests::{Random, random_pieces};

/// The tokens as text, each with its offset.
#[derive(Default)]
struct Tokens(Vec<String>);

impl Visitor for Tokens {
    fn key(&mut self, key: Str<'_>, at: usize) {
        let name = key.named(|name| String::from_utf8_lossy(name).into_owned());
        self.0
            .push(format!("{at} key {name} {} {}", key.len, key.raw_len));
    }

    fn string(&mut self, value: Str<'_>, at: usize) {
        let text = value.beginning();
        self.0.push(format!(
            "{at} string {text:?} {} {} {}",
            value.len, value.raw_len, value.escaped
        ));
    }

    fn bare(&mut self, raw: &[u8], at: usize) {
        self.0.push(format!("{at} bare {raw:?}"));
    }

    fn open(&mut self, kind: Kind, at: usize) {
        self.0.push(format!("{at} open {kind:?}"));
    }

    fn close(&mut self, at: usize) {
        self.0.push(format!("{at} close"));
    }
}

fn tokens(grammar: Grammar, pieces: &[&[u8]]) -> (Vec<String>, bool) {
    let mut scanner = Scanner::new(grammar);
    let mut tokens = Tokens::default();
    for piece in pieces {
        scanner.feed(piece, &mut tokens);
    }
    let whole = scanner.finish(&mut tokens);
    (tokens.0, whole)
}

#[test]
fn every_cut_gives_the_same_tokens() {
    let long_key = "k".repeat(70);
    for document in [
        r#"{"choices":[{"delta":{"content":"北😀 \"q\" \\ \u5317\ud83d\ude00\n"}}],"usage":null}"#,
        r#" { "a" : [ 1 , -2.5e3 , true , { } , [ ] ] , "mod\u0065l" : "\\\"" } "#,
        r#"[[],{},"",0,null,false]"#,
        "\"alone\"",
        " 123 ",
        "true",
        &format!(r#"{{"{long_key}":"{long_key}","\u006b{long_key}":12345}}"#),
    ] {
        let bytes = document.as_bytes();
        let whole = tokens(Grammar::Strict, &[bytes]);
        assert!(whole.1, "{document}");
        for cut in 0..=bytes.len() {
            for second in cut..=bytes.len() {
                let pieces = [&bytes[..cut], &bytes[cut..second], &bytes[second..]];
                let got = tokens(Grammar::Strict, &pieces);
                assert_eq!(got, whole, "{document} cut at {cut} and {second}");
            }
        }
        let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(tokens(Grammar::Strict, &bytewise), whole);
    }
}

fn random_json(random: &mut Random, depth: usize, out: &mut String) {
    match random.below(if depth > 4 { 3 } else { 6 }) {
        0 => out.push_str(random.pick(&[
            "0",
            "-1",
            "1.5",
            "1e3",
            "12345678901234567890",
            "-0.0",
            "2E-2",
        ])),
        1 => out.push_str(random.pick(&["true", "false", "null"])),
        2 => random_string(random, out),
        3 | 4 => {
            out.push('{');
            for i in 0..random.below(4) {
                if i > 0 {
                    out.push(',');
                }
                random_string(random, out);
                out.push_str(random.pick(&[":", " : ", ":\n"]));
                random_json(random, depth + 1, out);
            }
            out.push('}');
        }
        _ => {
            out.push('[');
            for i in 0..random.below(4) {
                if i > 0 {
                    out.push_str(random.pick(&[",", " ,\t"]));
                }
                random_json(random, depth + 1, out);
            }
            out.push(']');
        }
    }
}

fn random_string(random: &mut Random, out: &mut String) {
    out.push('"');
    for _ in 0..random.below(20) {
        out.push_str(random.pick(&[
            "a",
            "usage",
            "\\\"",
            "\\\\",
            "\\n",
            "\\u00e9",
            "\\ud83d\\ude00",
            "北",
            "😀",
            "{",
            "]",
            ":",
            "content",
        ]));
    }
    out.push('"');
}

#[test]
fn what_is_json_is_decided_as_by_another_parser() {
    let mut valid = 0;
    for seed in 0..4000 {
        let mut random = Random::new(seed);
        let mut text = String::new();
        random_json(&mut random, 0, &mut text);
        let mut bytes = text.into_bytes();
        for _ in 0..random.below(3) {
            // Break it, perhaps.
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, b"{}[],:\"\\ x0-.\n\x01e"[random.below(16)]),
                _ => bytes.truncate(at),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let Ok(text) = std::str::from_utf8(&bytes) else {
            continue;
        };
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
        let pieces = random_pieces(&bytes, &mut random);
        let ours = tokens(Grammar::Strict, &[&bytes]);
        assert_eq!(ours.1, theirs, "seed {seed}: {text}");
        assert_eq!(
            tokens(Grammar::Strict, &pieces),
            ours,
            "seed {seed}: {text}"
        );
        valid += usize::from(theirs);
    }
    assert!(
        (1000..3500).contains(&valid),
        "{valid} of 4000 are JSON: both kinds must be tried"
    );
}

#[test]
fn a_string_says_how_many_bytes_it_stands_for() {
    struct Len;
    impl Visitor for Len {
        fn key(&mut self, _: Str<'_>, _: usize) {}
        fn string(&mut self, value: Str<'_>, _: usize) {
            assert_eq!(Some(value.len), decoded(value.raw).map(|t| t.len()));
        }
        fn bare(&mut self, _: &[u8], _: usize) {}
        fn open(&mut self, _: Kind, _: usize) {}
        fn close(&mut self, _: usize) {}
    }
    for seed in 0..500 {
        let mut text = String::new();
        random_string(&mut Random::new(seed), &mut text);
        let mut scanner = Scanner::new(Grammar::Strict);
        scanner.feed(text.as_bytes(), &mut Len);
        assert!(scanner.finish(&mut Len), "{text}");
    }
}

#[test]
fn depth_is_bounded() {
    for (depth, fits) in [(1, true), (128, true), (129, false), (1_000_000, false)] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = format!("{}0{}", open.repeat(depth), close.repeat(depth));
            let (_, whole) = tokens(Grammar::Strict, &[text.as_bytes()]);
            assert_eq!(whole, fits, "{depth} times {open}");
        }
    }
}

#[test]
fn lenient_reading_forgives_what_engines_write_and_no_more() {
    for (text, strict, lenient) in [
        ("{\"a\":NaN}", false, true),
        ("{\"a\":-Infinity}", false, true),
        ("{\"a\":\"x\ny\"}", false, true),
        ("{\"a\":1}x", false, false),
        ("{\"a\" 1}", false, false),
        ("{\"a\":1,}", false, false),
        ("{a:1}", false, false),
        ("upstream exploded", false, false),
        ("", false, false),
    ] {
        assert_eq!(
            tokens(Grammar::Strict, &[text.as_bytes()]).1,
            strict,
            "{text}"
        );
        assert_eq!(
            tokens(Grammar::Lenient, &[text.as_bytes()]).1,
            lenient,
            "{text}"
        );
    }
}

#[test]
fn bytes_of_any_kind_do_no_harm() {
    const ODD: &[u8] = b"{}[]:,\"\\u0d8e1.-tfn \n\xff\xe5";
    for seed in 0..2000 {
        let mut random = Random::new(seed);
        let bytes: Vec<u8> = (0..random.below(200))
            .map(|_| ODD[random.below(ODD.len())])
            .collect();
        let pieces = random_pieces(&bytes, &mut random);
        for grammar in [Grammar::Strict, Grammar::Lenient] {
            let whole = tokens(grammar, &[&bytes]);
            assert_eq!(tokens(grammar, &pieces), whole, "seed {seed}");
        }
    }
}
