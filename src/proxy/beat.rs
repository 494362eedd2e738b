//! Heartbeats: what a silent stream's client is sent, so that neither it nor anything in between gives up.

use super::Gateway;
use super::context::Ctx;
use super::pace::{Due, Pace};
use super::respond;
use super::wait::{self, Interrupt};
use super::write::{self, Written};
use bytes::Bytes;
use pingora_proxy::{ProxyHttp, Session};

/// A heartbeat is due. A preamble that is held has waited long enough then, and is shown instead; else the body filter
/// makes the heartbeat, where one fits between the events the client has been sent.
pub async fn write(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
) -> Result<(), Interrupt> {
    // where none fits now, the next is due an interval later
    pace.client_was_sent();
    let Some(bytes) = bytes(gateway, session, ctx) else {
        return Ok(());
    };
    if !respond::begin_early(session, ctx, pace.write_timeout()).await {
        return Err(Interrupt::ClientGone);
    }
    let Some(exchange) = &mut ctx.exchange else {
        return Ok(());
    };
    let length = u64::try_from(bytes.len()).unwrap_or(0);
    match write::brief(session, bytes, exchange, pace.write_timeout()).await {
        Written::All => {
            exchange.wire.bytes_out += length;
            Ok(())
        }
        Written::Stopped(stop) => Err(Interrupt::Stopped(stop)),
        Written::Torn(stop) => Err(Interrupt::Torn(stop)),
        Written::Slow => Err(Interrupt::Due(Due::Write)),
        Written::Gone => Err(Interrupt::ClientGone),
    }
}

/// Waits for a step before the answer, unless the client leaves, somebody asks to stop, or a time-out is over. Heartbeats
/// that are due go out meanwhile.
pub async fn through<F: Future>(
    step: F,
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
) -> Result<F::Output, Interrupt> {
    let Some(live) = ctx.exchange.as_ref().map(|e| e.live().clone()) else {
        return Ok(step.await);
    };
    let mut step = std::pin::pin!(step);
    loop {
        match wait::until(step.as_mut(), session, &live, pace).await {
            Ok(output) => return Ok(output),
            Err(Interrupt::Due(Due::Heartbeat)) => write(gateway, session, ctx, pace).await?,
            Err(interrupt) => {
                if interrupt == Interrupt::ClientGone
                    && let Some(exchange) = &mut ctx.exchange
                {
                    exchange.client_gone();
                }
                return Err(interrupt);
            }
        }
    }
}

fn bytes(gateway: &Gateway, session: &mut Session, ctx: &mut Ctx) -> Option<Bytes> {
    let relay = ctx.relay.as_mut()?;
    if let Some(held) = relay.let_go_late() {
        return Some(held);
    }
    relay.beat = true;
    let mut body = None;
    match gateway.response_body_filter(session, &mut body, false, ctx) {
        Ok(_) => body.filter(|b| !b.is_empty()),
        Err(e) => {
            log::error!("no heartbeat could be made: {e}");
            None
        }
    }
}
