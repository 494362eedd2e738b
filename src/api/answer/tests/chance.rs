//! Any bytes, any pieces.

use super::*;

fn odd_stream(random: &mut Random) -> (String, u32) {
    let end = random.pick(&["\n", "\r\n", "\r"]);
    let mut out = String::new();
    let mut content = 0;
    for _ in 0..random.below(20) {
        let (block, counts): (String, u32) = match random.below(8) {
            0 => (events(end, &[ROLE]), 0),
            1 => (events(end, &[STOP]), 0),
            2 => (format!(": note{end}"), 0),
            3 => (
                format!(
                    "event: message{end}data: {{\"choices\":{end}data: [{{\"delta\":{{\"content\":\"m\"}}}}]}}{end}{end}"
                ),
                1,
            ),
            4 => (
                events(
                    end,
                    &[&say(&"z"
                        .repeat(random.below(90_000))
                        .replace("zz", "z\\n"))],
                ),
                0,
            ),
            _ => (events(end, &[&say("北 \\\" {}[]")]), 1),
        };
        out.push_str(&block);
        content += counts + u32::from(block.contains("content\":\"z"));
    }
    (out + &events(end, &[DONE]), content)
}

#[test]
fn random_streams_pass_unchanged_and_are_counted_right() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let (stream, content) = odd_stream(&mut random);
        let pieces = random_pieces(stream.as_bytes(), &mut random);
        let got = run(Call::Chat, HIDING, &pieces);
        assert_eq!(
            got,
            ended(&stream, content, u64::from(content), UsageSource::Counted),
            "seed {seed}"
        );
    }
}

#[test]
fn bytes_of_any_kind_do_no_harm() {
    let samples = [
        events("\r\n", &[ROLE, &say("a"), USAGE, DONE]),
        events(
            "\n",
            &[r#"{"type":"message_delta","usage":{"output_tokens":9}}"#],
        ),
    ];
    for seed in 0..800 {
        let mut random = Random::new(seed);
        let mut bytes = samples[random.below(samples.len())].clone().into_bytes();
        for _ in 0..random.below(10) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, b"\r\n:{}\",[\xff\\"[random.below(10)]),
                _ => bytes[at] = bytes[at].wrapping_add(1),
            }
        }
        let pieces = random_pieces(&bytes, &mut random);
        for call in Call::ALL {
            let whole = run(*call, OPTIONS, &[&bytes]);
            assert_eq!(run(*call, OPTIONS, &pieces), whole, "seed {seed}");
            let native = run_answer(Answer::native(Shape::Events, OPTIONS, about()), &pieces);
            let again = run_answer(Answer::native(Shape::Events, OPTIONS, about()), &[&bytes]);
            assert_eq!(native, again, "seed {seed}");
        }
    }
}
