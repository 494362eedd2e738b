//! The head of an answer on its way to the client, and what kind of answer it is.

use super::Gateway;
use super::context::Ctx;
use super::decode::Decoder;
use super::fate::Fate;
use super::headers;
use super::rates;
use super::write;
use crate::api::{Answer, AnswerOptions, Call, Shape, native};
use crate::config::UsageMode;
use crate::exchange::Exchange;
use http::Version;
use pingora_core::Error;
use pingora_core::protocols::http::client::HttpSession;
use pingora_http::ResponseHeader;
use pingora_proxy::{ProxyHttp, Session};
use std::time::Duration;

/// Reads what the upstream's head says of its body, and passes it on: at once for an event stream, but where its preamble
/// is held; with the first byte of the body for any other, so that an upstream that dies in between is still answered for
/// by a status of ours.
pub async fn head(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    http: &HttpSession<()>,
) -> Result<(), Fate> {
    let mut header = match http.response_header() {
        Some(header) => Box::new(header.clone()),
        None => return Err(Fate::broken("the upstream's answer has no head")),
    };
    note(ctx, &header);
    if unreadable(ctx, &header) {
        return Err(Fate::broken(
            "the upstream's answer is in a content coding that was not asked for",
        ));
    }
    gateway
        .response_filter(session, &mut header, ctx)
        .await
        .map_err(|e| Fate::gateway(&e))?;
    let Some(relay) = &mut ctx.relay else {
        return Ok(());
    };
    if relay.begun {
        // the client was sent an event stream's head already: only events may follow
        return match relay.refused {
            Some(status) => Err(Fate::refused_late(status)),
            None if !relay.events => Err(Fate::broken("the upstream's answer is no event stream")),
            None => Ok(()),
        };
    }
    if !relay.events || relay.is_holding() {
        relay.head = Some(header);
        return Ok(());
    }
    relay.begun = true;
    let timeout = relay.pool.rules.stream.write_timeout;
    ctx.answered(header.status.as_u16());
    match write::head(session, header, timeout).await {
        true => Ok(()),
        false => Err(Fate::client_gone()),
    }
}

/// Writes the head that an early heartbeat needs before it: the upstream's, where it waits, or one of ours. Whether the
/// client took it in time.
pub async fn begin_early(session: &mut Session, ctx: &mut Ctx, timeout: Duration) -> bool {
    let Some(relay) = ctx.relay.as_mut().filter(|r| !r.begun) else {
        return true;
    };
    relay.begun = true;
    let header = match relay.head.take() {
        Some(header) => header,
        None => match early(session, ctx) {
            Ok(header) => header,
            Err(e) => {
                log::error!("no early head could be made: {e}");
                return false;
            }
        },
    };
    ctx.answered(header.status.as_u16());
    write::head(session, header, timeout).await
}

/// An event stream's head before any upstream has answered.
fn early(session: &Session, ctx: &Ctx) -> Result<Box<ResponseHeader>, Box<Error>> {
    let mut header = ResponseHeader::build(200, Some(8))?;
    header.insert_header("Content-Type", "text/event-stream")?;
    header.insert_header("X-Request-Id", ctx.request_id.as_str())?;
    rates::tell(ctx, &mut header)?;
    streaming(&mut header)?;
    frame(session, &mut header)?;
    Ok(Box::new(header))
}

/// What an event stream's head says to everything between here and its reader.
fn streaming(header: &mut ResponseHeader) -> Result<(), Box<Error>> {
    header.remove_header("content-length");
    header.insert_header("X-Accel-Buffering", "no")?;
    header.insert_header("Cache-Control", "no-cache, no-transform")
}

/// Takes from the upstream's head what the relay and the record need.
fn note(ctx: &mut Ctx, header: &ResponseHeader) {
    let (Some(exchange), Some(relay)) = (&mut ctx.exchange, &mut ctx.relay) else {
        return;
    };
    if let Some(id) = header.headers.get("x-request-id") {
        let id = String::from_utf8_lossy(id.as_bytes());
        exchange.named_upstream(id.chars().take(256).collect());
    }
    let status = header.status.as_u16();
    // what is no answer of a model passes without being read: nothing ran
    let answers = header.status.is_success() && status != 204;
    relay.refused = (!answers).then_some(status);
    relay.events = false;
    if !answers {
        return;
    }
    relay.decoder = coding(header).and_then(Decoder::of);
    let shape = shape(header);
    relay.events = shape == Shape::Events;
    let rules = &relay.pool.rules;
    let options = AnswerOptions {
        hide_usage: rules.stream.usage == UsageMode::Inject && !relay.request.usage_asked,
        line_ends: rules.stream.line_ends,
        bytes_per_unit: rules.bytes_per_unit,
    };
    let call = relay.request.call;
    relay.answer = Some(if call == Call::Native {
        Answer::native(shape, options, about(exchange))
    } else {
        Answer::new(call, shape, options)
    });
    if relay.events {
        relay.begin_events();
    }
}

fn about(exchange: &Exchange) -> native::About {
    let record = exchange.record();
    native::About {
        request_id: record.request_id.to_string(),
        model: record.model,
        input_estimate: record.input_units,
    }
}

/// An answer whose coding is not known cannot be counted, and no event of it can be told from half of one.
fn unreadable(ctx: &Ctx, header: &ResponseHeader) -> bool {
    ctx.relay
        .as_ref()
        .is_some_and(|r| r.refused.is_none() && r.decoder.is_none() && coding(header).is_some())
}

/// The content coding, where there is one.
fn coding(header: &ResponseHeader) -> Option<&[u8]> {
    let coding = header.headers.get("content-encoding")?.as_bytes();
    (!coding.eq_ignore_ascii_case(b"identity") && !coding.is_empty()).then_some(coding)
}

fn shape(header: &ResponseHeader) -> Shape {
    let events = header.headers.get("content-type").is_some_and(|v| {
        v.as_bytes()
            .get(..17)
            .is_some_and(|t| t.eq_ignore_ascii_case(b"text/event-stream"))
    });
    if events { Shape::Events } else { Shape::Whole }
}

/// Edits a head for the client; called by `response_filter`.
pub fn filter(session: &Session, ctx: &Ctx, header: &mut ResponseHeader) -> Result<(), Box<Error>> {
    headers::strip_hop_by_hop(header)?;
    header.insert_header("X-Request-Id", ctx.request_id.as_str())?;
    rates::tell(ctx, header)?;
    let Some(relay) = &ctx.relay else {
        return Ok(());
    };
    let converted = relay.request.call == Call::Native && relay.answer.is_some();
    if relay.decoder.is_some() {
        header.remove_header("content-encoding");
        header.remove_header("content-length");
    }
    if relay.events {
        streaming(header)?;
    } else if converted {
        header.remove_header("content-length");
        header.insert_header("Content-Type", "application/json")?;
    }
    frame(session, header)
}

/// How the body is framed towards the client. HTTP/1.0 knows no chunks: there the close ends it (RFC 9112, section 6.1).
fn frame(session: &Session, header: &mut ResponseHeader) -> Result<(), Box<Error>> {
    header.set_version(Version::HTTP_11);
    let version = session.req_header().version;
    let bodiless = matches!(header.status.as_u16(), 204 | 304);
    let sized = header.headers.contains_key("content-length");
    if version == Version::HTTP_11 && !sized && !bodiless {
        header.insert_header("Transfer-Encoding", "chunked")?;
    }
    Ok(())
}
