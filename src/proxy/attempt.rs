//! Tries of an upstream: again where that is safe and nothing was shown, each on the record.

use super::Gateway;
use super::context::Ctx;
use super::fate::Fate;
use super::pace::Pace;
use super::respond;
use super::upstream::{self, Failure, Kind, Tried, Upstream, rules};
use pingora_proxy::Session;

/// Stale connections of the pool that are replaced without being counted as tries.
const STALE_MAX: usize = 3;

/// How many upstreams were tried.
#[derive(Debug, Default)]
pub struct Tries(usize);

/// Tries until an answer's head has come and was passed on, or no further try is allowed.
pub async fn establish(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
    tries: &mut Tries,
) -> Result<Upstream, Fate> {
    loop {
        tries.0 += 1;
        let failure = match try_once(gateway, session, ctx, pace).await {
            Ok(upstream) => match settle_for(ctx, &upstream, tries) {
                true => return answer(gateway, session, ctx, upstream).await,
                false => refused(upstream).await,
            },
            Err(failure) => failure,
        };
        if let Some(fate) = over(ctx, failure, tries) {
            return Err(fate);
        }
    }
}

/// Whether an answer is passed on: all are, but for a status that is worth another try.
fn settle_for(ctx: &Ctx, upstream: &Upstream, tries: &Tries) -> bool {
    let listed = rules(ctx).is_some_and(|r| r.retry.statuses.contains(&upstream.status()));
    !(listed && may_retry(ctx, tries))
}

/// Whether the number of tries and the pool's budget allow another. What it allows is taken out of the budget.
fn may_retry(ctx: &Ctx, tries: &Tries) -> bool {
    ctx.relay.as_ref().is_some_and(|relay| {
        let retry = &relay.pool.rules.retry;
        tries.0 < retry.attempts && relay.pool.retries.take(retry.budget)
    })
}

/// Whether an upstream that died in its preamble is replaced: it has cost something, so only with consent, and only
/// while nothing of it was shown.
pub fn may_replace(ctx: &Ctx, tries: &Tries) -> bool {
    let replaceable = ctx
        .relay
        .as_ref()
        .is_some_and(|r| r.is_holding() && r.body.is_some());
    let consent = rules(ctx).is_some_and(|r| r.retry.accept_duplicate_cost);
    replaceable && consent && may_retry(ctx, tries)
}

/// A status that is worth another try: the connection goes, its body unread.
async fn refused(mut upstream: Upstream) -> Failure {
    let status = upstream.status();
    upstream.abort().await;
    Failure {
        fate: Fate::passed_refusal().refused(status),
        kind: Kind::Refused,
    }
}

/// Writes the failed try to the record. The fate, where there is no other try.
fn over(ctx: &mut Ctx, failure: Failure, tries: &Tries) -> Option<Fate> {
    let Failure { fate, kind } = failure;
    let consent = rules(ctx).is_some_and(|r| r.retry.accept_duplicate_cost);
    let again = match kind {
        Kind::NotSent => may_retry(ctx, tries),
        // its place in the budget was taken when it was decided
        Kind::Refused => true,
        Kind::Sent => consent && may_retry(ctx, tries),
        Kind::Final => false,
    };
    let (Some(exchange), Some(relay)) = (&mut ctx.exchange, &ctx.relay) else {
        return Some(fate);
    };
    if !fate.is_before_any_try() {
        exchange.end_attempt(fate.outcome(), fate.status);
    }
    if !again {
        exchange.release(fate.upstream_end());
        return Some(fate);
    }
    exchange.leave_backend();
    exchange
        .metrics()
        .retried(&relay.pool.rules.name, fate.outcome().as_str());
    None
}

/// One try, up to the answer's final head.
async fn try_once(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
) -> Tried<Upstream> {
    for _ in 0..STALE_MAX {
        let (mut connection, reused) = upstream::connect(gateway, session, ctx, pace).await?;
        match upstream::send(gateway, session, ctx, pace, &mut connection).await {
            Ok(answered) => {
                if let Some(exchange) = &mut ctx.exchange {
                    exchange.called();
                }
                if answered {
                    return Ok(connection);
                }
                return upstream::head(gateway, session, ctx, pace, connection).await;
            }
            Err(failure) if reused && failure.kind == Kind::NotSent => {
                log::debug!("a connection of the pool was stale; taking another");
                if let Some(exchange) = &mut ctx.exchange {
                    exchange.leave_backend();
                }
            }
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::not_sent(Fate::unreachable()))
}

/// Passes the head on. From here on there is no other try.
async fn answer(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    mut upstream: Upstream,
) -> Result<Upstream, Fate> {
    match respond::head(gateway, session, ctx, &upstream.http).await {
        Ok(()) => Ok(upstream),
        Err(fate) => {
            upstream.abort().await;
            if let Some(exchange) = &mut ctx.exchange {
                if fate.client_left() {
                    exchange.client_gone();
                }
                exchange.end_attempt(fate.outcome(), fate.status);
                exchange.release(fate.upstream_end());
            }
            Err(fate)
        }
    }
}
