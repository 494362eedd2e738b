//! The end of an admitted request towards its client, and its settlement.

use super::connection::Connection;
use super::context::Ctx;
use super::fate::Fate;
use super::refuse::{self, Refusal};
use super::write;
use crate::api::{Fault, errors};
use crate::exchange::Ending;
use pingora_core::Result;
use pingora_proxy::Session;

/// Tells the client what it is owed, and notes the ending for `logging`. A proper end of the body is left to Pingora,
/// which writes it after `logging` has settled: whoever has read the end finds the request settled.
pub async fn conclude(session: &mut Session, ctx: &mut Ctx, fate: Fate) {
    let listens = fate.client_listens();
    let Fate { ending, fault, .. } = fate;
    ctx.ending = Some(ending);
    if !listens {
        cut(session).await;
        return;
    }
    let Some(mut fault) = fault else {
        return;
    };
    if ctx.exchange.as_ref().is_some_and(|e| e.was_called()) {
        // it has cost something: a client that tries again pays again
        fault = fault.for_good();
    }
    ctx.code = Some(fault.code.as_str());
    let told = match session.response_written().is_some() {
        false => tell_by_status(session, ctx, &fault).await,
        true => tell_in_stream(session, ctx, &fault).await,
    };
    if let Err(e) = told {
        log::debug!("the client of {} was not told: {e}", ctx.request_id);
        session.set_keepalive(None);
    }
}

/// Nothing was written yet: a status and an error document.
async fn tell_by_status(session: &mut Session, ctx: &mut Ctx, fault: &Refusal) -> Result<()> {
    let body = refuse::document(ctx, fault.code, &fault.message, None);
    let header = fault.header(body.len())?;
    refuse::answer(session, ctx, header, body).await
}

/// The answer has begun: an event stream gets the protocol's error event; any other body is cut, so that no reader takes
/// it for a whole one.
async fn tell_in_stream(session: &mut Session, ctx: &mut Ctx, fault: &Refusal) -> Result<()> {
    let (Some(relay), Some(exchange)) = (&mut ctx.relay, &mut ctx.exchange) else {
        return Ok(());
    };
    if !relay.begun {
        cut(session).await;
        return Ok(());
    }
    let fault = Fault {
        code: fault.code,
        message: &fault.message,
        param: None,
        request_id: ctx.request_id.as_str(),
    };
    let bytes = match &mut relay.answer {
        Some(answer) => answer.error_event(&fault),
        None => errors::stream_event(relay.request.call.api(), &fault, 1),
    };
    let length = u64::try_from(bytes.len()).unwrap_or(0);
    match write::last(session, bytes).await {
        true => exchange.wire.bytes_out += length,
        false => cut(session).await,
    }
    Ok(())
}

/// Breaks the answer off so that its reader can tell.
async fn cut(session: &mut Session) {
    session.set_keepalive(None);
    match Connection::of(session) {
        // what waits in a blocked write must not be waited for
        Some(connection) => connection.break_off(),
        None => session.downstream_session.shutdown().await,
    }
}

/// Settles, in `logging`: the exchange ends as the pump found, or as the error that Pingora came with.
pub fn settle(ctx: &mut Ctx, error: Option<&pingora_core::Error>) {
    let ending = ctx.ending.take().unwrap_or_else(|| {
        let why = error.map_or_else(
            || "no answer was made".to_owned(),
            |e| e.etype().as_str().to_owned(),
        );
        Ending::gateway(why)
    });
    match &mut ctx.exchange {
        Some(exchange) => exchange.end(&ending, ctx.code),
        None => note_answer(ctx),
    }
}

/// The access line of what never became an exchange.
fn note_answer(ctx: &mut Ctx) {
    let wire = ctx.take_wire();
    ctx.hub.services.access_log.answered(
        &wire,
        ctx.request_id.as_str(),
        ctx.tenant_name(),
        ctx.code,
    );
}
