//! What is found of an answer on its way: how far it has come, and how it ended.

use super::context::Ctx;
use super::fate::Fate;

/// How an answer ended whose body is over, or `broke` off.
pub fn judge(ctx: &Ctx, broke: Option<String>) -> Fate {
    let Some(relay) = &ctx.relay else {
        return Fate::completed();
    };
    let whole = broke.is_none();
    let early = "the upstream ended its answer before the protocol's own end";
    let broken = || Fate::broken(broke.unwrap_or_else(|| early.to_owned()));
    match (&relay.answer, relay.refused) {
        (_, Some(status)) if whole => Fate::passed_refusal().refused(status),
        (None, None) if whole => Fate::completed(),
        (Some(answer), None) => match answer.failure() {
            Some(why) => Fate::reported(why, relay.request.call),
            None if answer.ended() && (whole || relay.events) => Fate::completed(),
            None => broken(),
        },
        _ => broken(),
    }
}

/// What was held is all there is, and it is no whole answer. An upstream's own error is one: it passes.
pub fn is_unfinished_preamble(ctx: &Ctx) -> bool {
    ctx.relay.as_ref().is_some_and(|r| {
        let failed = r.answer.as_ref().is_some_and(|a| a.failure().is_some());
        r.is_holding() && !r.has_ended() && !failed
    })
}

pub fn has_gap(ctx: &Ctx) -> bool {
    let answer = ctx.relay.as_ref().and_then(|r| r.answer.as_ref());
    answer.is_some_and(|a| a.has_gap())
}

pub fn has_ended(ctx: &Ctx) -> bool {
    ctx.relay.as_ref().is_some_and(|r| r.has_ended())
}

pub fn has_sent_the_end(ctx: &Ctx) -> bool {
    ctx.relay
        .as_ref()
        .is_some_and(|r| r.events && r.has_sent_the_end())
}

pub fn is_stream(ctx: &Ctx) -> bool {
    ctx.relay.as_ref().is_some_and(|r| r.events)
}

/// The client has left: complete where it had been sent the end.
pub fn gone(ctx: &mut Ctx) -> Fate {
    if let Some(exchange) = &mut ctx.exchange {
        exchange.client_gone();
    }
    let sent = ctx.relay.as_ref().is_some_and(|r| r.has_sent_the_end());
    match sent {
        true => judge(ctx, None),
        false => Fate::client_gone(),
    }
}
