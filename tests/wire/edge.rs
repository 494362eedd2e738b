//! The edge for HTTP/1: what is framed or addressed in an odd way is refused or made plain, and never forwarded as it
//! came. Each case is the bytes of a request and what must come of them.

use crate::support::KEY;
use crate::support::ask::{Ask, chat, whole_chat};
use crate::support::client::{Answer, Broken, Stream};
use crate::support::engine::{Engine, Seen};
use crate::support::gateway::Gateway;
use crate::support::script::tokens;
use crate::support::wait::ms;

/// What must come of a request.
#[derive(Clone, Copy, Debug)]
enum Expect {
    /// 400, the connection closed, nothing behind it served. A head that is no HTTP is answered without a body.
    Bad,
    /// Refused with this status and code.
    Refused(u16, &'static str),
    /// Served, and forwarded once: its path and body plain, its framing clear.
    Served,
    /// Either refused or made plain.
    BadOrServed,
}

#[derive(Clone)]
struct Case {
    name: String,
    expect: Expect,
    bytes: Vec<u8>,
}

/// The same expectation for each of some texts, which also name their cases.
fn each(expect: Expect, texts: &[&str], make: impl Fn(&str) -> Vec<u8>) -> Vec<Case> {
    let case = |text: &&str| Case {
        name: format!("{text:?}"),
        expect,
        bytes: make(&filled(text)),
    };
    texts.iter().map(case).collect()
}

fn document() -> Vec<u8> {
    whole_chat().document().to_string().into_bytes()
}

/// A text with what stands in it for the document's length: as it is, one more, one less, in hex, in capitals, and so
/// that only the lowest 64 bits are right.
fn filled(text: &str) -> String {
    let n = document().len();
    text.replace("{n}", &n.to_string())
        .replace("{n+1}", &(n + 1).to_string())
        .replace("{x-1}", &format!("{:x}", n - 1))
        .replace("{x}", &format!("{n:x}"))
        .replace("{X}", &format!("{n:X}"))
        .replace("{wraps}", &format!("1{n:016x}"))
}

const POST: &str = "POST /v1/chat/completions HTTP/1.1";

/// A head with what every request has but its framing.
fn head(first: &str, lines: &str) -> Vec<u8> {
    let usual = format!(
        "Host: localhost\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
    );
    format!("{first}\r\n{usual}{lines}\r\n").into_bytes()
}

/// A request of known length with another header.
fn with_line(line: &str) -> Vec<u8> {
    let lines = filled(&format!("{line}\r\nContent-Length: {{n}}\r\n"));
    [head(POST, &lines), document()].concat()
}

/// A request of known length with another first line.
fn with_first_line(first: &str) -> Vec<u8> {
    let lines = filled("Content-Length: {n}\r\n");
    [head(first, &lines), document()].concat()
}

fn with_path(path: &str) -> Vec<u8> {
    with_first_line(&format!("POST {path} HTTP/1.1"))
}

fn with_host(host: &str) -> Vec<u8> {
    let text = String::from_utf8(with_first_line(POST)).unwrap();
    text.replacen("Host: localhost", host, 1).into_bytes()
}

fn with_length(value: &str) -> Vec<u8> {
    let lines = format!("Content-Length: {value}\r\n");
    [head(POST, &lines), document()].concat()
}

/// The document in one chunk, sent as this coding.
fn with_coding(value: &str) -> Vec<u8> {
    let lines = format!("Transfer-Encoding: {value}\r\n");
    let body = chunk("{x}", "\r\n0\r\n\r\n");
    [head(POST, &lines), body].concat()
}

fn with_chunk_size(size: &str) -> Vec<u8> {
    behind_chunk(size, "\r\n0\r\n\r\n")
}

fn behind_chunk(size: &str, after: &str) -> Vec<u8> {
    let head = head(POST, "Transfer-Encoding: chunked\r\n");
    [head, chunk(size, after)].concat()
}

/// The document as a chunk, with what stands in place of its size and of its end.
fn chunk(size: &str, after: &str) -> Vec<u8> {
    [
        filled(size).as_bytes(),
        b"\r\n",
        &document(),
        after.as_bytes(),
    ]
    .concat()
}

const BAD_LENGTHS: [&str; 10] = [
    "{n}\r\nContent-Length: {n+1}",
    "{n}, {n+1}",
    "+{n}",
    "-{n}",
    "0x{x}",
    "ten",
    "",
    "{n}.0",
    "1 2",
    "999999999999999999999999999999",
];

const ODD_LENGTHS: [&str; 3] = ["{n}\r\nContent-Length: {n}", "{n}, {n}", "000{n}"];

fn lengths() -> Vec<Case> {
    let large = Expect::Refused(413, "request_too_large");
    [
        each(Expect::Bad, &BAD_LENGTHS, with_length),
        each(Expect::BadOrServed, &ODD_LENGTHS, with_length),
        each(large, &["99999999999"], with_length),
    ]
    .concat()
}

const BAD_CODINGS: [&str; 8] = [
    "odd",
    "chunked, odd",
    "chunked, identity",
    "gzip, chunked",
    "odd, chunked",
    "xchunked",
    "\u{b}chunked",
    "\"chunked\"",
];

const ODD_CODINGS: [&str; 2] = ["chunked, chunked", "chunked\r\nTransfer-Encoding: chunked"];

/// A length and chunks: which of them is meant is not told.
const BOTH: [&str; 2] = [
    "chunked\r\nContent-Length: {n}",
    "chunked\r\nContent-Length: 5",
];

fn codings() -> Vec<Case> {
    let old = |first: &str| {
        let head = head(first, "Transfer-Encoding: chunked\r\n");
        [head, chunk("{x}", "\r\n0\r\n\r\n")].concat()
    };
    [
        each(Expect::Bad, &BAD_CODINGS, with_coding),
        each(Expect::BadOrServed, &ODD_CODINGS, with_coding),
        each(Expect::Bad, &BOTH, with_coding),
        each(Expect::Served, &["CHUNKED"], with_coding),
        // an empty coding beside a length
        each(Expect::BadOrServed, &["Transfer-Encoding:"], with_line),
        each(Expect::Bad, &["POST /v1/chat/completions HTTP/1.0"], old),
    ]
    .concat()
}

const BAD_CHUNK_SIZES: [&str; 9] = [
    "zz",
    "",
    "+{x}",
    "-{x}",
    "0x{x}",
    "fffffffffffffffff",
    "{wraps}",
    " {x}",
    "{x-1}",
];

const GOOD_CHUNK_SIZES: [&str; 3] = ["{X}", "{x};name=value", "{x};a=\"b;c\""];

const BAD_CHUNK_ENDS: [&str; 3] = ["0\r\n\r\n", "\r\n\r\n\r\n", "\r\n-0\r\n\r\n"];

const GOOD_CHUNK_ENDS: [&str; 2] = [
    "\r\n000\r\n\r\n",
    "\r\n0\r\nX-Sum: 1\r\nContent-Length: 5\r\n\r\n",
];

fn chunks() -> Vec<Case> {
    let ending = |after: &str| behind_chunk("{x}", after);
    [
        each(Expect::Bad, &BAD_CHUNK_SIZES, with_chunk_size),
        each(Expect::BadOrServed, &["0000{x}"], with_chunk_size),
        each(Expect::Served, &GOOD_CHUNK_SIZES, with_chunk_size),
        each(Expect::Bad, &BAD_CHUNK_ENDS, ending),
        each(Expect::Served, &GOOD_CHUNK_ENDS, ending),
    ]
    .concat()
}

const BAD_LINES: [&str; 14] = [
    "X-Fold: a\r\n b",
    "X-Odd : a",
    "X-Odd",
    ": a",
    "X Odd: a",
    "X(Odd): a",
    "X-Odd: a\0b",
    "X-Odd: a\u{1}b",
    "X-Odd: a\u{7f}b",
    "X-Odd: a\rb",
    "X-O\0dd: a",
    "Host: elsewhere",
    "Host: localhost",
    "Authorization: Bearer sk-other",
];

const GOOD_LINES: [&str; 5] = [
    "X-Odd:",
    "X-Odd: a\tb",
    "X_Odd: a",
    "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13",
];

fn lines() -> Vec<Case> {
    [
        each(Expect::Bad, &BAD_LINES, with_line),
        each(Expect::Served, &GOOD_LINES, with_line),
        each(Expect::BadOrServed, &["X-Odd: a\u{ff}b"], with_line),
    ]
    .concat()
}

/// In place of the Host header.
const BAD_HOSTS: [&str; 6] = [
    "X-Nothing: 1",
    "Host: local host",
    "Host: localhost/v1",
    "Host: me@localhost",
    "Host: localhost:port",
    "Host: a\r\nHost: b",
];

const GOOD_HOSTS: [&str; 4] = [
    "Host: localhost:8443",
    "Host: [::1]:8443",
    "Host: 127.0.0.1",
    "host:LOCALHOST",
];

fn hosts() -> Vec<Case> {
    [
        each(Expect::Bad, &BAD_HOSTS, with_host),
        each(Expect::Served, &GOOD_HOSTS, with_host),
        each(Expect::BadOrServed, &["Host:"], with_host),
    ]
    .concat()
}

const BAD_FIRST_LINES: [&str; 10] = [
    "POST /v1/chat/completions",
    "POST /v1/chat/completions HTTP/0.9",
    "POST /v1/chat/completions HTTP/1.2",
    "POST /v1/chat/completions HTTP/2.0",
    "POST /v1/chat/completions http/1.1",
    "POST /v1/chat/completions HTTP/1.1 x",
    "POST /v1/chat/completions HTTP/1.1\r\n X-Fold: a",
    "PO(ST /v1/chat/completions HTTP/1.1",
    " /v1/chat/completions HTTP/1.1",
    "POST http://elsewhere/v1/chat/completions HTTP/1.1",
];

const GOOD_FIRST_LINES: [&str; 2] = [
    "POST /v1/chat/completions?x=1 HTTP/1.1",
    "\r\n\r\nPOST /v1/chat/completions HTTP/1.1",
];

const ODD_FIRST_LINES: [&str; 2] = [
    "POST http://localhost/v1/chat/completions HTTP/1.1",
    "POST /v1/chat/completions#x HTTP/1.1",
];

fn first_lines() -> Vec<Case> {
    let raw = |text: &str| text.as_bytes().repeat(30);
    let no_http = [
        "hello, is this the engine?\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}",
    ];
    [
        each(Expect::Bad, &BAD_FIRST_LINES, with_first_line),
        each(Expect::Served, &GOOD_FIRST_LINES, with_first_line),
        each(Expect::BadOrServed, &ODD_FIRST_LINES, with_first_line),
        each(Expect::Bad, &no_http, raw),
    ]
    .concat()
}

const TRICKS: [&str; 20] = [
    "/v1/x/../chat/completions",
    "/v1/./chat/completions",
    "/v1/x/%2e%2e/chat/completions",
    "/../v1/chat/completions",
    "/v1//chat/completions",
    "//v1/chat/completions",
    "/v1/chat%2fcompletions",
    "/v1/chat\\completions",
    "/v1/chat%5ccompletions",
    "/v1/chat/completions%00",
    "/v1/chat/completions\0",
    "/v1/chat/completions\u{1}",
    "/v1/chat/completions\u{e9}",
    "/v1/ch%61t/completions",
    "/v1/chat/completions%2",
    "/v1/chat/completions;x=1",
    "/v1/chat/completions/",
    "/V1/Chat/Completions",
    "/v1/chat completions",
    "/v1/chat/completion",
];

fn tricks() -> Vec<Case> {
    each(Expect::Refused(404, "not_found"), &TRICKS, with_path)
}

/// What came back for some bytes on a connection of their own.
struct Came {
    answer: Option<Answer>,
    /// What came behind the answer.
    then: Result<Answer, Broken>,
}

/// Sends a request with another one behind it, and reads both answers.
fn exchange(gateway: &Gateway, bytes: &[u8]) -> Came {
    let mut stream = Stream::connect(gateway.addr());
    let behind = whole_chat().bytes();
    // the gateway may have closed before all of it is written
    let sent = stream.try_write(&[bytes, &behind].concat());
    if sent.is_err() {
        eprintln!("the gateway closed early");
    }
    let answer = stream.try_answer().ok();
    let then = stream.try_answer();
    Came { answer, then }
}

fn check(gateway: &Gateway, engine: &Engine, case: &Case) {
    let name = case.name.as_str();
    let before = engine.calls().len();
    let came = exchange(gateway, &case.bytes);
    let calls: Vec<Seen> = engine.calls().split_off(before);
    let answer = came
        .answer
        .unwrap_or_else(|| panic!("{name}: no answer; then {:?}", came.then));
    match (case.expect, answer.status) {
        (Expect::Bad | Expect::BadOrServed, 400) => {
            must_be_bad(name, &answer);
            assert!(
                came.then.is_err(),
                "{name}: what stood behind it was served: {:?}",
                came.then
            );
            assert_eq!(calls.len(), 0, "{name}: reached the engine");
        }
        (Expect::Refused(status, code), _) => {
            answer.must_refuse(status, code);
            let behind = usize::from(came.then.is_ok());
            assert_eq!(calls.len(), behind, "{name}: reached the engine");
        }
        (Expect::Served | Expect::BadOrServed, 200) => {
            let then = came
                .then
                .unwrap_or_else(|e| panic!("{name}: what stood behind it: {e:?}"));
            assert_eq!(
                (then.status, calls.len()),
                (200, 2),
                "{name}: {}",
                then.text()
            );
            calls.iter().for_each(|call| must_be_plain(name, call));
        }
        (expected, status) => panic!(
            "{name}: {expected:?} is expected: {status} {}",
            answer.text()
        ),
    }
}

/// A refusal of ours, or the bare one of a head that could not be read.
#[track_caller]
fn must_be_bad(name: &str, answer: &Answer) {
    if answer.body.is_empty() {
        return;
    }
    // a body that its framing ends too early is no JSON
    let error = answer.error();
    assert!(
        error["code"] == "invalid_request" || error["code"] == "invalid_json",
        "{name}: {}",
        answer.text()
    );
    assert!(
        answer.headers.get("x-request-id").is_some(),
        "{name}: {:?}",
        answer.headers
    );
}

/// Forwarded as one clear request.
#[track_caller]
fn must_be_plain(name: &str, call: &Seen) {
    let path = call.path.split('?').next().unwrap_or_default();
    assert_eq!(path, "/v1/chat/completions", "{name}");
    assert_eq!(call.body.as_slice(), document(), "{name}");
    let length = document().len().to_string();
    assert_eq!(
        call.headers.get("content-length"),
        Some(length.as_str()),
        "{name}"
    );
    assert_eq!(call.headers.count("content-length"), 1, "{name}");
    assert_eq!(call.headers.count("host"), 1, "{name}");
    for gone in [
        "transfer-encoding",
        "trailer",
        "upgrade",
        "connection",
        "http2-settings",
        "te",
        "expect",
    ] {
        assert_eq!(call.headers.count(gone), 0, "{name}: {gone} was forwarded");
    }
}

fn check_all(cases: Vec<Case>) {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                check(&gateway, &engine, case);
            }));
            checked.err().map(|why| {
                let text = why.downcast_ref::<String>().cloned();
                format!("{}: {}", case.name, text.unwrap_or_default())
            })
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    assert_eq!(gateway.answer(&chat()).status, 200, "afterwards");
    gateway.settled();
}

#[test]
fn a_length_that_is_not_clear_is_never_forwarded() {
    check_all(lengths());
}

#[test]
fn a_coding_that_is_not_clear_is_never_forwarded() {
    check_all(codings());
}

#[test]
fn chunks_that_are_not_clear_are_never_forwarded() {
    check_all(chunks());
}

#[test]
fn a_header_that_is_not_clear_is_never_forwarded() {
    check_all(lines());
}

#[test]
fn a_host_that_is_not_clear_is_never_forwarded() {
    check_all(hosts());
}

#[test]
fn a_first_line_that_is_not_clear_is_never_forwarded() {
    check_all(first_lines());
}

#[test]
fn tricks_in_a_path_find_nothing() {
    check_all(tricks());
}

/// What stands in a body is never a request, whatever becomes of the one it belongs to.
#[test]
fn the_body_of_a_refused_request_is_not_taken_for_a_request() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let inside = whole_chat().id("inside").bytes();
    let cases = [
        (401, Ask::post("/v1/chat/completions").key("sk-nobody")),
        (404, Ask::post("/nothing")),
        (405, Ask::post("/v1/models")),
        (415, whole_chat().header("Content-Encoding", "gzip")),
        (400, Ask::post("/v1/chat/completions").id("a b")),
        (400, Ask::post("/v1/chat/completions")),
        (
            431,
            Ask::post("/v1/chat/completions").header("X-Large", &"x".repeat(70_000)),
        ),
    ];
    for (status, ask) in cases {
        let mut stream = Stream::connect(gateway.addr());
        stream.write(&ask.body(inside.clone()).bytes());
        // the next request has its own answer, or none where the connection is closed
        stream.try_write(&Ask::get("/v1/models").bytes()).ok();
        assert_eq!(stream.next_answer().status, status);
        if let Ok(next) = stream.try_answer() {
            assert_eq!(next.json()["object"], "list", "behind {status}");
        }
    }
    assert_eq!(engine.calls().len(), 0);
    gateway
        .answer(&Ask::get("/generations/inside"))
        .must_refuse(404, "unknown_request");
}

/// A method on a path: its status, and what `Allow` says.
#[test]
fn other_methods_are_told_what_is_allowed() {
    let cases = [
        ("GET", "/v1/chat/completions", 405, Some("POST")),
        ("HEAD", "/v1/chat/completions", 405, Some("POST")),
        ("PUT", "/v1/chat/completions", 405, Some("POST")),
        ("DELETE", "/v1/messages", 405, Some("POST")),
        ("OPTIONS", "/v1/chat/completions", 405, Some("POST")),
        ("TRACE", "/v1/chat/completions", 405, Some("POST")),
        ("BREW", "/v1/chat/completions", 405, Some("POST")),
        ("POST", "/v1/models", 405, Some("GET")),
        ("POST", "/generations/x", 405, Some("GET")),
        ("GET", "/generations/x/cancel", 405, Some("POST")),
        ("OPTIONS", "*", 404, None),
        ("HEAD", "/nothing", 404, None),
    ];
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    for (method, path, status, allow) in cases {
        let mut stream = Stream::connect(gateway.addr());
        stream.write(&head(&format!("{method} {path} HTTP/1.1"), ""));
        // an answer to HEAD has no body, whatever its length says (RFC 9110, section 9.3.2)
        stream.write(&Ask::get("/v1/models").bytes());
        let answer = match method {
            "HEAD" => stream.next_head(),
            _ => stream.next_answer(),
        };
        let name = format!("{method} {path}");
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        if let Some(allow) = allow {
            let told = answer.headers.get("allow").unwrap_or_default();
            assert!(
                told.split(", ").any(|m| m == allow),
                "{name}: Allow: {told:?}"
            );
        }
        let next = stream.next_answer();
        assert_eq!(
            (next.status, &next.json()["object"]),
            (200, &"list".into()),
            "{name}: the next answer"
        );
    }
    assert_eq!(engine.calls().len(), 0);
}

#[test]
fn a_head_is_answered_as_a_get_without_its_body() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let mut stream = Stream::connect(gateway.addr());
    stream.write(&head("HEAD /v1/models HTTP/1.1", ""));
    stream.write(&Ask::get("/v1/models").bytes());
    let (without, with) = (stream.next_head(), stream.next_answer());
    assert_eq!((without.status, with.status), (200, 200));
    assert_eq!(
        without.headers.get("content-type"),
        with.headers.get("content-type")
    );
    assert_eq!(
        without.headers.get("content-length"),
        with.headers.get("content-length")
    );
}

#[test]
fn connect_opens_no_tunnel() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let mut stream = Stream::connect(gateway.addr());
    stream.write(&head("CONNECT elsewhere:443 HTTP/1.1", ""));
    let answer = stream.next_answer();
    assert!(matches!(answer.status, 400 | 405), "{answer:?}");
    assert_eq!(engine.calls().len(), 0);
}
