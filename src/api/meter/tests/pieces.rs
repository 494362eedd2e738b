//! Any bytes, in any pieces.

use super::*;

/// All that is known of a whole body that came in these pieces.
fn whole_of(pieces: &[&[u8]]) -> (bool, Totals, Option<String>) {
    let mut meter = Meter::new(Call::Chat);
    for piece in pieces {
        meter.body(piece);
    }
    let whole = meter.body_ends();
    let failure = meter.failure().map(str::to_owned);
    (whole, meter.body_totals(4), failure)
}

fn spelled_out(name: &str) -> String {
    name.bytes().map(|b| format!("\\u{b:04x}")).collect()
}

/// Bytes behind the document, and what is too long to be kept of a token that is cut.
#[test]
fn a_whole_body_in_any_pieces_says_the_same() {
    const USAGE: &str = r#""usage":{"prompt_tokens":5,"completion_tokens":6}"#;
    let long_number = format!("7.{}1", "0".repeat(600));
    let (name, words) = (
        spelled_out("completion_tokens"),
        "lost it \"北\" ".repeat(60),
    );
    let said = |words: &str| format!(r#"{{"error":{{"message":"{words}"}}}}"#);
    let (plain, escaped) = (words.replace('"', "\\\""), spelled_out(&words));
    for body in [
        format!("{{{USAGE}}}  \0\0"),
        format!("{{{USAGE}}}{{{USAGE}}}"),
        format!(r#"{{"usage":{{"completion_tokens":{long_number}}}}}"#),
        format!(r#"{{"usage":{{"prompt_tokens":5,"{name}":6}}}}"#),
        said(&plain),
        said(&escaped),
    ] {
        let bytes = body.as_bytes();
        let want = whole_of(&[bytes]);
        for cut in 0..=bytes.len() {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(whole_of(&[a, b]), want, "{body} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(whole_of(&single), want, "{body}");
    }
    let (_, _, failure) = whole_of(&[said(&plain).as_bytes()]);
    let failure = failure.unwrap();
    assert!(failure.starts_with("lost it \"北\" "), "{failure}");
    assert!(failure.ends_with('…'), "{failure}");
    let (whole, totals, _) = whole_of(&[format!("{{{USAGE}}} x").as_bytes()]);
    assert!(!whole);
    assert_eq!(figures(totals), (UsageSource::Upstream, Some(5), 6));
}

#[test]
fn a_document_in_any_pieces_says_the_same() {
    let chat = usage_chunk("11", "7");
    let samples = [
        (
            Call::Chat,
            say(Some(r#"{"prompt_tokens":9,"completion_tokens":12}"#)),
        ),
        (Call::Chat, chat),
        (
            Call::Chat,
            delta(r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"北"}}]}"#),
        ),
        (
            Call::Messages,
            begin(r#"{"input_tokens":317,"output_tokens":1}"#),
        ),
        (Call::Messages, text_bit()),
        (Call::Messages, FINISH.to_owned()),
        (Call::Responses, RESPONSE_END.to_owned()),
        (
            Call::Responses,
            typed("response.output_text.delta", r#""delta":"a""#),
        ),
        (
            Call::Chat,
            r#"{"error":{"message":"engine lost"}}"#.to_owned(),
        ),
    ];
    for (call, document) in samples {
        let mut meter = Meter::new(call);
        let whole = (meter.event(&event(None, &document)), meter.totals());
        for cut in 0..=document.len() {
            let mut meter = Meter::new(call);
            meter.piece(&document.as_bytes()[..cut]);
            meter.piece(&document.as_bytes()[cut..]);
            let got = (meter.event_ends(None), meter.totals());
            assert_eq!(got, whole, "{document} cut at {cut}");
        }
    }
}

#[test]
fn bytes_of_any_kind_do_no_harm() {
    let samples = [
        say(None),
        usage_chunk("1", "2"),
        RESPONSE_END.to_owned(),
        begin(r#"{"input_tokens":1}"#),
        text_bit(),
        STOP.to_owned(),
    ];
    const ODD: &[u8] = b"{}[],:\"\\ u0-.\xffe\n";
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut data = samples[random.below(samples.len())].clone().into_bytes();
        for _ in 0..random.below(8) {
            let at = random.below(data.len());
            match random.below(2) {
                0 if !data.is_empty() => drop(data.remove(at)),
                _ => data.insert(at, ODD[random.below(ODD.len())]),
            }
        }
        for call in Call::ALL {
            let mut meter = Meter::new(*call);
            meter.event(&Event {
                name: None,
                data: Some(&data),
            });
            let mut pieces = Meter::new(*call);
            for piece in random_pieces(&data, &mut random) {
                pieces.piece(piece);
            }
            pieces.event_ends(None);
            assert_eq!(meter.totals(), pieces.totals(), "seed {seed}");
        }
    }
}
