//! Chat and completions: whose figures of usage stand.

use super::*;

#[test]
fn usage_is_taken_wherever_it_rides() {
    let on_finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
    let with_content = r#"{"choices":[{"index":0,"delta":{"content":"z"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;
    let in_choice = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":11,"completion_tokens":7}}]}"#;
    let chunk = usage_chunk("11", "7");
    let cases: [&[&str]; 7] = [
        &[&say(None), STOP, &chunk, DONE],
        &[&say(None), on_finish, DONE],
        &[&say(None), with_content, DONE],
        &[&say(None), in_choice, DONE],
        &[&say(None), on_finish, &chunk, DONE],
        &[&say(None), &chunk, r#"{"choices":[],"cost":"0"}"#, DONE],
        &[
            &say(Some("null")),
            STOP,
            &chunk,
            r#"{"choices":[],"usage":null}"#,
            DONE,
        ],
    ];
    for events in cases {
        let totals = meter_of(Call::Chat, events).totals();
        assert_eq!(
            figures(totals),
            (UsageSource::Upstream, Some(11), 7),
            "{events:?}"
        );
    }
}

#[test]
fn the_upstreams_figure_stands_at_the_end_whatever_was_counted() {
    for (completion, said) in [("7", 2), ("2", 7)] {
        let mut events = vec![say(None); said];
        events.extend([usage_chunk("11", completion), DONE.to_owned()]);
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let want = completion.parse().unwrap();
        let totals = meter_of(Call::Chat, &events).totals();
        assert_eq!(figures(totals), (UsageSource::Upstream, Some(11), want));
    }
}

#[test]
fn cumulative_usage_is_not_summed() {
    let mut events: Vec<String> = (1..=50)
        .map(|i| {
            say(Some(&format!(
                r#"{{"prompt_tokens":9,"completion_tokens":{i}}}"#
            )))
        })
        .collect();
    let mut meter = Meter::new(Call::Chat);
    for (i, data) in events.iter().enumerate() {
        meter.event(&event(None, data));
        let so_far = u64::try_from(i).unwrap() + 1;
        assert_eq!(
            figures(meter.totals()),
            (UsageSource::Upstream, Some(9), so_far)
        );
    }
    events.push(DONE.to_owned());
    let all: Vec<&str> = events.iter().map(String::as_str).collect();
    assert_eq!(
        figures(meter_of(Call::Chat, &all).totals()),
        (UsageSource::Upstream, Some(9), 50)
    );
}

#[test]
fn figures_that_are_no_running_total_give_way_to_the_count_or_the_end() {
    // Each chunk of one choice only says what that choice has; the last says what all have.
    let per_choice = |i: u32| {
        say(Some(&format!(
            r#"{{"prompt_tokens":9,"completion_tokens":{}}}"#,
            i / 3 + 1
        )))
    };
    let mut meter = Meter::new(Call::Chat);
    for i in 0..12 {
        meter.event(&event(None, &per_choice(i)));
    }
    assert_eq!(
        figures(meter.totals()),
        (UsageSource::Counted, Some(9), 12),
        "broken off here"
    );
    meter.event(&event(None, &usage_chunk("9", "30")));
    meter.event(&event(None, DONE));
    assert_eq!(
        figures(meter.totals()),
        (UsageSource::Upstream, Some(9), 30)
    );
}

#[test]
fn figures_of_each_chunk_alone_are_no_total() {
    // One token in each of fifty chunks, and no usage at the end.
    let one = say(Some(r#"{"prompt_tokens":9,"completion_tokens":1}"#));
    let mut meter = Meter::new(Call::Chat);
    for _ in 0..50 {
        meter.event(&event(None, &one));
    }
    meter.event(&event(None, DONE));
    let want = (UsageSource::Counted, Some(9), 50);
    assert_eq!(figures(meter.totals()), want);
}

#[test]
fn of_running_figures_the_largest_counts() {
    let running = |n: u32| say(Some(&format!(r#"{{"completion_tokens":{n}}}"#)));
    let meter = meter_of(Call::Chat, &[&running(5), &running(3)]);
    assert_eq!(figures(meter.totals()), (UsageSource::Upstream, None, 5));
}

#[test]
fn a_figure_never_goes_back() {
    let events = [
        say(Some(r#"{"prompt_tokens":9,"completion_tokens":20}"#)),
        usage_chunk("9", "3"),
        DONE.to_owned(),
    ];
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    assert_eq!(
        figures(meter_of(Call::Chat, &events).totals()),
        (UsageSource::Upstream, Some(9), 20)
    );
}

#[test]
fn usage_that_cannot_be_is_not_believed_and_the_count_stands() {
    for (prompt, completion) in [
        ("-5", "-1000000"),
        ("9", "-7"),
        ("-5", "7"),
        ("9", "9223372036854775807"),
        ("1e30", "1e30"),
        ("9", "\"7\""),
        ("\"2147483647\"", "7"),
        ("9", "3.7"),
        ("9", "NaN"),
        ("9", "1000000001"),
        ("9", "true"),
    ] {
        let chunk = usage_chunk(prompt, completion);
        let (a, b, c) = (say(None), say(None), say(None));
        let totals = meter_of(Call::Chat, &[&a, &b, &c, STOP, &chunk, DONE]).totals();
        assert_eq!(figures(totals), (UsageSource::Counted, None, 3), "{chunk}");
    }
    let bad_total =
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":-1}}"#;
    assert_eq!(
        figures(meter_of(Call::Chat, &[&say(None), bad_total, DONE]).totals()),
        (UsageSource::Counted, None, 1)
    );
    let bad_part = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":-1}}}"#;
    assert_eq!(
        figures(meter_of(Call::Chat, &[&say(None), bad_part, DONE]).totals()),
        (UsageSource::Counted, None, 1)
    );
    // A good one before a bad one stays.
    let (good, bad) = (usage_chunk("11", "7"), usage_chunk("11", "-7"));
    let totals = meter_of(Call::Chat, &[&say(None), &good, &bad, DONE]).totals();
    assert_eq!(figures(totals), (UsageSource::Upstream, Some(11), 7));
}

#[test]
fn whole_figures_are_believed_however_they_are_spelled() {
    let chunk = usage_chunk("1.1e1", "7.0");
    let totals = meter_of(Call::Chat, &[&say(None), &chunk, DONE]).totals();
    assert_eq!(figures(totals), (UsageSource::Upstream, Some(11), 7));
}

#[test]
fn zeros_are_figures_not_given() {
    let chunk = usage_chunk("0", "0");
    let totals = meter_of(Call::Chat, &[&say(None), &chunk, DONE]).totals();
    assert_eq!(figures(totals), (UsageSource::Counted, None, 1));
    let silent = usage_chunk("11", "0");
    assert_eq!(
        figures(meter_of(Call::Chat, &[&silent, DONE]).totals()),
        (UsageSource::Upstream, Some(11), 0)
    );
}

#[test]
fn a_lie_in_the_text_is_no_usage() {
    let lie = r#"{"choices":[{"delta":{"content":"\",\"usage\":{\"completion_tokens\":999}"},"x":{"usage":{"completion_tokens":99}}}]}"#;
    assert_eq!(
        figures(meter_of(Call::Chat, &[lie, DONE]).totals()),
        (UsageSource::Counted, None, 1)
    );
    let torn = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":999}"#;
    assert_eq!(
        figures(meter_of(Call::Chat, &[&say(None), torn, DONE]).totals()),
        (UsageSource::Counted, None, 1)
    );
}

#[test]
fn cached_input_is_a_part_of_the_input() {
    let chunk = r#"{"choices":[],"usage":{"completion_tokens":7,"prompt_tokens_details":{"audio_tokens":3,"cached_tokens":64},"prompt_tokens":100}}"#;
    let totals = meter_of(Call::Chat, &[&say(None), chunk, DONE]).totals();
    assert_eq!(
        (totals.input, totals.input_cached, totals.input_cache_write),
        (Some(Units(100)), Some(Units(64)), None)
    );
}

#[test]
fn only_a_chunk_of_usage_alone_is_one_to_hide() {
    let timings = r#"{"object":"chat.completion.chunk","usage":{"completion_tokens":7},"timings":{"a":1},"choices":[]}"#;
    for hidden in [
        &usage_chunk("11", "7"),
        timings,
        r#"{"usage":{}}"#,
        r#"{"choices":null,"usage":{"x":1}}"#,
    ] {
        assert!(seen(Call::Chat, hidden).usage_only, "{hidden}");
    }
    let riding =
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":7}}"#;
    for shown in [
        riding,
        r#"{"choices":[]}"#,
        r#"{"choices":[],"usage":null}"#,
        r#"{"choices":[],"cost":"0"}"#,
        r#"{"choices":[],"usage":{"a":1},"error":{"message":"x"}}"#,
        r#"{"choices":[],"usage":{"a":1}"#,
        r#"{"choices":[{"usage":{"a":1}}]}"#,
        DONE,
    ] {
        assert!(!seen(Call::Chat, shown).usage_only, "{shown}");
    }
}

#[test]
fn what_comes_after_the_end_changes_no_figure() {
    let late = usage_chunk("99", "99");
    let totals = meter_of(Call::Chat, &[&say(None), DONE, &say(None), &late]).totals();
    assert_eq!(figures(totals), (UsageSource::Counted, None, 1));
}

#[test]
fn usage_without_content_and_without_an_end_is_not_an_ended_answer() {
    let meter = meter_of(Call::Chat, &[&usage_chunk("11", "0")]);
    assert_eq!(figures(meter.totals()), (UsageSource::Counted, Some(11), 0));
    assert!(!meter.ended());
}
