//! The headers that tell a client its rates, in the form that its API's SDKs read.

use crate::clock::Timestamp;
use crate::record::Api;
use crate::tenant::RateState;
use std::time::Duration;

/// A tenant's two rates; `None` where it has no such limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    pub requests: Option<RateState>,
    pub units: Option<RateState>,
}

/// Name and value of each header. `x-ratelimit-*` with durations as OpenAI writes them (`6m0s`, `500ms`);
/// `anthropic-ratelimit-*` with moments (RFC 3339) on `/v1/messages`.
pub fn headers(api: Api, rates: &Rates, now: Timestamp) -> Vec<(&'static str, String)> {
    let (requests, units) = match api {
        Api::Messages => (ANTHROPIC_REQUESTS, ANTHROPIC_TOKENS),
        Api::Chat | Api::Completions | Api::Embeddings | Api::Responses | Api::Native => {
            (OPENAI_REQUESTS, OPENAI_TOKENS)
        }
    };
    let mut headers = Vec::with_capacity(6);
    for (names, state) in [(requests, rates.requests), (units, rates.units)] {
        let Some(state) = state else {
            continue;
        };
        let [limit, remaining, reset] = names;
        headers.push((limit, state.limit.to_string()));
        headers.push((remaining, state.remaining.to_string()));
        headers.push((
            reset,
            match api {
                Api::Messages => moment(now.plus(state.reset)),
                Api::Chat | Api::Completions | Api::Embeddings | Api::Responses | Api::Native => {
                    span(state.reset)
                }
            },
        ));
    }
    headers
}

/// All names that may be told.
pub const NAMES: [[&str; 3]; 4] = [
    OPENAI_REQUESTS,
    OPENAI_TOKENS,
    ANTHROPIC_REQUESTS,
    ANTHROPIC_TOKENS,
];

const OPENAI_REQUESTS: [&str; 3] = [
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
];
const OPENAI_TOKENS: [&str; 3] = [
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
];
const ANTHROPIC_REQUESTS: [&str; 3] = [
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
];
const ANTHROPIC_TOKENS: [&str; 3] = [
    "anthropic-ratelimit-tokens-limit",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
];

/// A duration as Go writes it: under a second in milliseconds, else hours, minutes and seconds from the largest that
/// is not nought.
fn span(duration: Duration) -> String {
    let ms = duration.as_millis();
    if (1..1000).contains(&ms) {
        return format!("{ms}ms");
    }
    let (hours, minutes) = (ms / 3_600_000, ms / 60_000 % 60);
    let seconds = seconds(ms % 60_000);
    match (hours, minutes) {
        (0, 0) => seconds,
        (0, _) => format!("{minutes}m{seconds}"),
        _ => format!("{hours}h{minutes}m{seconds}"),
    }
}

fn seconds(ms: u128) -> String {
    let (whole, rest) = (ms / 1000, ms % 1000);
    let fraction = format!("{rest:03}");
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}s"),
        fraction => format!("{whole}.{fraction}s"),
    }
}

/// A moment in whole seconds, never early.
fn moment(at: Timestamp) -> String {
    let t = at.plus(Duration::from_micros(999_999)).date_time();
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        t.year(),
        u8::from(t.month()),
        t.day(),
        t.hour(),
        t.minute(),
        t.second()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

    fn rates() -> Rates {
        let state = |limit, remaining, ms| RateState {
            limit,
            remaining,
            reset: Duration::from_millis(ms),
        };
        Rates {
            requests: Some(state(10, 9, 6000)),
            units: Some(state(200_000, 150_000, 15_250)),
        }
    }

    #[test]
    fn openai_routes_tell_durations() {
        let told = headers(Api::Chat, &rates(), NOW);
        let told: Vec<_> = told.iter().map(|(n, v)| (*n, v.as_str())).collect();
        assert_eq!(
            told,
            [
                ("x-ratelimit-limit-requests", "10"),
                ("x-ratelimit-remaining-requests", "9"),
                ("x-ratelimit-reset-requests", "6s"),
                ("x-ratelimit-limit-tokens", "200000"),
                ("x-ratelimit-remaining-tokens", "150000"),
                ("x-ratelimit-reset-tokens", "15.25s"),
            ]
        );
    }

    #[test]
    fn messages_tell_moments_and_never_too_early() {
        let told = headers(Api::Messages, &rates(), NOW);
        let told: Vec<_> = told.iter().map(|(n, v)| (*n, v.as_str())).collect();
        assert_eq!(
            told,
            [
                ("anthropic-ratelimit-requests-limit", "10"),
                ("anthropic-ratelimit-requests-remaining", "9"),
                ("anthropic-ratelimit-requests-reset", "2023-11-14T22:13:26Z"),
                ("anthropic-ratelimit-tokens-limit", "200000"),
                ("anthropic-ratelimit-tokens-remaining", "150000"),
                ("anthropic-ratelimit-tokens-reset", "2023-11-14T22:13:36Z"),
            ]
        );
    }

    #[test]
    fn a_rate_without_a_limit_is_not_told() {
        assert!(headers(Api::Chat, &Rates::default(), NOW).is_empty());
        let only = Rates {
            units: None,
            ..rates()
        };
        assert_eq!(headers(Api::Native, &only, NOW).len(), 3);
    }

    #[test]
    fn durations_are_written_as_go_does() {
        for (ms, text) in [
            (0, "0s"),
            (1, "1ms"),
            (500, "500ms"),
            (999, "999ms"),
            (1000, "1s"),
            (8640, "8.64s"),
            (59_999, "59.999s"),
            (60_000, "1m0s"),
            (360_000, "6m0s"),
            (179_560, "2m59.56s"),
            (3_600_000, "1h0m0s"),
            (90_061_005, "25h1m1.005s"),
        ] {
            assert_eq!(span(Duration::from_millis(ms)), text);
        }
    }
}
