//! `streamgate demo`: lines to paste that work, and a clean stop.

use crate::support::ask::Ask;
use crate::support::client::Stream;
use crate::support::events;
use crate::support::process::{Process, Signal};
use crate::support::scratch::Scratch;
use crate::support::wait;
use serde_json::json;

/// The demo, once it has printed its lines.
fn demo(scratch: &Scratch) -> (Process, String) {
    let mut process = Process::start(&["demo"], scratch.path(), "demo.log");
    let output = wait::until("the demo's curl lines", || {
        process.must_run();
        let output = process.output();
        if output.matches("curl").count() >= 4 {
            Ok(output)
        } else {
            Err(output)
        }
    });
    (process, output)
}

/// What follows a mark, as far as its characters are of a kind.
#[track_caller]
fn after(text: &str, mark: &str, kind: impl Fn(char) -> bool) -> String {
    let (_, rest) = text
        .split_once(mark)
        .unwrap_or_else(|| panic!("no {mark:?}: {text}"));
    rest.chars().take_while(|c| kind(*c)).collect()
}

#[test]
fn it_prints_lines_that_stream_cancel_and_show_the_record_and_the_metrics() {
    let scratch = Scratch::new();
    let (_process, output) = demo(&scratch);
    for part in [
        "/v1/chat/completions",
        "/cancel",
        "/generations/",
        "/metrics",
        "Bearer ",
    ] {
        assert!(output.contains(part), "{part}: {output}");
    }
}

#[test]
fn its_first_line_needs_no_key_and_the_others_carry_one_that_works() {
    let scratch = Scratch::new();
    let (_process, output) = demo(&scratch);
    let first = output.lines().find(|line| line.contains("curl")).unwrap();
    assert!(!first.contains("Bearer"), "{first}");
    let in_a_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let addr = format!(
        "127.0.0.1:{}",
        after(first, "127.0.0.1:", |c| c.is_ascii_digit())
    );
    let key = after(&output, "Bearer ", in_a_name);
    let model = after(&output.replace(' ', ""), "\"model\":\"", in_a_name);
    wait::until("the demo's gateway to listen", || {
        std::net::TcpStream::connect(&addr)
            .map(drop)
            .map_err(|e| e.to_string())
    });
    let doc = json!({
        "model": model, "stream": true, "max_tokens": 5, "messages": [{"role": "user", "content": "hello there"}],
    });
    let ask = Ask::post("/v1/chat/completions").json(doc);
    for ask in [ask.clone().no_key(), ask.key(&key)] {
        let answer = Stream::send(&addr, &ask).answer();
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(events::is_done(&answer.body), "{}", answer.text());
        assert_eq!(events::contents(&answer.body).len(), 5, "{}", answer.text());
    }
}

#[test]
fn it_stops_cleanly_on_an_interrupt_and_when_its_terminal_is_closed() {
    for signal in [Signal::Int, Signal::Hup] {
        let scratch = Scratch::new();
        let (mut process, _) = demo(&scratch);
        process.signal(signal);
        assert_eq!(process.wait(wait::seconds(5)), 0, "{}", process.output());
        let output = process.output();
        assert!(!output.contains("panicked"), "{output}");
        let left: Vec<_> = std::fs::read_dir(scratch.path())
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .filter(|name| name.starts_with("streamgate-demo"))
            .collect();
        assert_eq!(left, [""; 0], "{output}");
    }
}
