//! What is read of a request, what is refused, and that only what must change changes.

mod chance;
mod editing;
mod reading;
mod refusing;

use super::{Edits, ParseError, Request};
use crate::api::{Call, Code};
use crate::budget::Units;
use crate::config::CapMember;
use crate::sse::tests::Random;
use bytes::Bytes;

fn parse(call: Call, body: &str) -> Request {
    Request::parse(call, body.as_bytes()).unwrap_or_else(|e| panic!("{body}: {e:?}"))
}

fn refused(call: Call, body: impl AsRef<[u8]>) -> ParseError {
    let text = String::from_utf8_lossy(body.as_ref()).into_owned();
    match Request::parse(call, body.as_ref()) {
        Err(e) => e,
        Ok(request) => panic!("{text} was taken as {request:?}"),
    }
}

/// The code and the member at fault.
fn check_refused(call: Call, body: impl AsRef<[u8]>, code: Code, param: Option<&str>) {
    let text = String::from_utf8_lossy(body.as_ref()).into_owned();
    let e = refused(call, body);
    assert_eq!(
        (e.code, e.param.as_deref()),
        (code, param),
        "{text}: {}",
        e.message
    );
}

const EDITS: Edits<'static> = Edits {
    model: "m",
    cap: None,
    cap_member: CapMember::MaxTokens,
    include_usage: true,
};

/// The upstream's body as the edits make it.
fn check_edit(call: Call, body: &str, edits: &Edits<'_>, want: &str) {
    let request = parse(call, body);
    let got = request.upstream_body(&Bytes::copy_from_slice(body.as_bytes()), edits);
    assert_eq!(std::str::from_utf8(&got).unwrap(), want, "{body}");
}

const ODD: &str = r#"{"stream" : true,
 "temperature":1.0, "top_p":1e0,"n":1,  "seed":12345678901234567890 ,"presence_penalty":-0.0,"x_dup":1,"x_dup":{"a":1.50},
 "x_\u0065scaped":"caf\u00e9 \ud83d\ude00 \/ \u0000","user":"北京 \"q\" {[,]}",
 "messages":[ {"role":"user","content":"hel\u006co \n there","x":[1.0,1e3,null,true]} ],"stop":["\u000a"],MORE "model":"m" }"#;
