//! Many requests, and bytes of any kind.

use super::*;

#[test]
fn edited_requests_are_json_and_read_the_same_but_for_the_edits() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let mut members = vec![r#""model":"m""#.to_owned()];
        for _ in 0..random.below(6) {
            members.push(
                random
                    .pick(&[
                        r#""stream":true"#,
                        r#""stream_options":{}"#,
                        r#""stream_options":{ "a":[{"b":"}"}] }"#,
                        r#""max_tokens":7"#,
                        r#""max_tokens": 1000 "#,
                        r#""max_completion_tokens":null"#,
                        r#""x":"\"}],{[\\""#,
                        r#""y" :{"model":"z","max_tokens":1}"#,
                    ])
                    .to_owned(),
            );
        }
        let last = members.len() - 1;
        members.swap(0, random.below(last + 1));
        let body = Bytes::from(format!("{{ {} }}", members.join(" , ")));
        let Ok(request) = Request::parse(Call::Chat, &body) else {
            continue;
        };
        let edits = Edits {
            model: "up",
            cap: Some(Units(100)),
            ..EDITS
        };
        let out = request.upstream_body(&body, &edits);
        let again = Request::parse(Call::Chat, &out).unwrap();
        assert_eq!(again.model, "up");
        assert!(again.cap.is_some_and(|cap| cap <= Units(100)));
        assert_eq!(again.usage_asked, again.stream);
        let strip = |bytes: &[u8]| {
            let mut value: serde_json::Value = serde_json::from_slice(bytes).unwrap();
            let object = value.as_object_mut().unwrap();
            for edited in [
                "model",
                "max_tokens",
                "max_completion_tokens",
                "stream_options",
            ] {
                object.remove(edited);
            }
            value
        };
        assert_eq!(strip(&out), strip(&body), "seed {seed}");
        let edited_again = again.upstream_body(&out, &edits);
        assert_eq!(edited_again, out, "an edited body needs no edit");
    }
}

#[test]
fn bytes_of_any_kind_do_no_harm() {
    let seeds = [
        ODD,
        r#"{"model":"m","stream_options":{"include_usage":false},"prompt":[[1],[2]],"tools":[{"type":"image","input":{}}]}"#,
    ];
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let mut body = random.pick(&seeds).as_bytes().to_vec();
        for _ in 0..random.below(6) {
            if body.is_empty() {
                break;
            }
            let at = random.below(body.len());
            match random.below(3) {
                0 => drop(body.remove(at)),
                1 => body.insert(at, b"{}[],:\"\\ u0-.\xffe"[random.below(15)]),
                _ => body.truncate(at),
            }
        }
        for call in Call::ALL {
            if let Ok(request) = Request::parse(*call, &body) {
                request.upstream_body(&Bytes::from(body.clone()), &EDITS);
            }
        }
    }
}
