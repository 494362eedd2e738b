//! What the client gets of an answer, in any pieces, to its end or torn.

mod chance;
mod endings;
mod native;
mod passing;

use crate::api::native::About;
use crate::api::{Answer, AnswerOptions, Call, Code, Fault, Fed, Shape};
use crate::budget::Units;
use crate::config::LineEnds;
use crate::record::UsageSource;
use crate::sse::tests::{Random, random_pieces};
use bytes::Bytes;

const OPTIONS: AnswerOptions = AnswerOptions {
    hide_usage: false,
    line_ends: LineEnds::Keep,
    bytes_per_unit: 4,
};

const HIDING: AnswerOptions = AnswerOptions {
    hide_usage: true,
    ..OPTIONS
};

const FAULT: Fault<'static> = Fault {
    code: Code::UpstreamBroken,
    message: "the upstream broke off",
    param: None,
    request_id: "r-1",
};

fn events(end: &str, datas: &[&str]) -> String {
    datas
        .iter()
        .map(|data| format!("data: {data}{end}{end}"))
        .collect()
}

fn say(text: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#)
}

const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;

const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

const USAGE: &str = r#"{"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":7}}"#;

const DONE: &str = "[DONE]";

/// Everything a client got and the gateway knows at the end.
#[derive(Debug, PartialEq)]
struct Run {
    out: String,
    content: u32,
    ended: bool,
    failure: Option<String>,
    generated: Units,
    source: UsageSource,
}

fn run_answer(mut answer: Answer, pieces: &[&[u8]]) -> Run {
    let mut all = Vec::new();
    let mut content = 0;
    let mut take = |fed: Fed| {
        all.extend_from_slice(&fed.bytes);
        content += fed.content;
    };
    for piece in pieces {
        take(answer.feed(Bytes::copy_from_slice(piece)));
    }
    take(answer.finish());
    Run {
        out: String::from_utf8_lossy(&all).into_owned(),
        content,
        ended: answer.ended(),
        failure: answer.failure().map(str::to_owned),
        generated: answer.totals().generated,
        source: answer.totals().source,
    }
}

fn run(call: Call, options: AnswerOptions, pieces: &[&[u8]]) -> Run {
    run_answer(Answer::new(call, Shape::Events, options), pieces)
}

/// The same run over every cut into two pieces and a byte at a time.
fn check_cuts(call: Call, options: AnswerOptions, stream: &str, want: &Run) {
    let bytes = stream.as_bytes();
    for cut in 0..=bytes.len() {
        let got = run(call, options, &[&bytes[..cut], &bytes[cut..]]);
        assert_eq!(&got, want, "cut at {cut} of {stream:?}");
    }
    let bytewise: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(
        &run(call, options, &bytewise),
        want,
        "a byte at a time: {stream:?}"
    );
}

fn ended(out: &str, content: u32, generated: u64, source: UsageSource) -> Run {
    Run {
        out: out.to_owned(),
        content,
        ended: true,
        failure: None,
        generated: Units(generated),
        source,
    }
}

fn about() -> About {
    About {
        request_id: "n-1".to_owned(),
        model: "fast".to_owned(),
        input_estimate: Units(4),
    }
}
