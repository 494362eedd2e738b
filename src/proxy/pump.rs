//! The pump: from the moment a request is admitted to the moment its answer is over. It calls the hooks of the same
//! `ProxyHttp` in Pingora's order, over Pingora's own connector and sessions; only the loop between the two sockets is
//! ours, so that silence, cancelling and a blocked write are heard at any moment.

use super::Gateway;
use super::attempt::{self, Tries};
use super::beat;
use super::context::Ctx;
use super::edge;
use super::fate::Fate;
use super::finish;
use super::pace::{Due, Pace};
use super::queued;
use super::upstream::Upstream;
use super::verdict::{
    gone, has_ended, has_gap, has_sent_the_end, is_stream, is_unfinished_preamble, judge,
};
use super::wait::{self, Turn};
use super::write::{self, Written};
use crate::record::{Outcome, UpstreamEnd};
use bytes::Bytes;
use pingora_proxy::{ProxyHttp, Session};
use std::time::Duration;

/// How long the upstream's close is waited for after the protocol's own end.
const CLOSE_WAIT: Duration = Duration::from_millis(250);

/// Runs an admitted request to its end. What is owed to the client is written; settling is `logging`'s.
pub async fn run(gateway: &Gateway, session: &mut Session, ctx: &mut Ctx) {
    let Some(relay) = &ctx.relay else {
        return;
    };
    relay.pool.retries.request();
    edge::set_half_close(session, relay.pool.rules.stream.half_close);
    let mut pace = Pace::new(&relay.pool.rules, relay.is_early());
    let fate = relay_all(gateway, session, ctx, &mut pace).await;
    Box::pin(finish::conclude(session, ctx, fate)).await;
}

/// Waits for the request's turn, then tries upstreams until one's answer was relayed to its end, or no other may be tried.
async fn relay_all(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
) -> Fate {
    if let Err(fate) = Box::pin(queued::start(gateway, session, ctx, pace)).await {
        return fate;
    }
    let mut tries = Tries::default();
    loop {
        let upstream =
            match Box::pin(attempt::establish(gateway, session, ctx, pace, &mut tries)).await {
                Ok(upstream) => upstream,
                Err(fate) => return fate,
            };
        pace.answer_begins(is_stream(ctx));
        if let Some(relay) = ctx.relay.as_mut().filter(|r| !r.is_holding()) {
            // no other try is possible: the prompt's memory is free
            relay.body = None;
        }
        let mut pump = Pump {
            gateway,
            pace: &mut *pace,
            upstream: Some(upstream),
            tries: &tries,
            replacing: false,
        };
        let fate = pump.relay(session, ctx).await;
        if !pump.part(ctx, &fate).await {
            return fate;
        }
        pace.answer_failed(ctx.relay.as_ref().is_some_and(|r| r.is_early()));
    }
}

struct Pump<'a> {
    gateway: &'a Gateway,
    pace: &'a mut Pace,
    /// Gone once it was closed or given back.
    upstream: Option<Upstream>,
    tries: &'a Tries,
    /// The upstream failed and another takes over.
    replacing: bool,
}

impl Pump<'_> {
    /// Relays an answer whose head has come, until it is over in one way or another.
    async fn relay(&mut self, session: &mut Session, ctx: &mut Ctx) -> Fate {
        loop {
            let turn = self.turn(session, ctx).await;
            let passed = match turn {
                Turn::Data(chunk) => {
                    self.pace.upstream_spoke();
                    self.read(session, ctx, chunk).await
                }
                Turn::End => return self.end(session, ctx, None).await,
                Turn::Broken(why) => return self.end(session, ctx, Some(why)).await,
                Turn::ClientGone => return gone(ctx),
                // the client has the protocol's end: nothing that comes later makes it another
                Turn::Stopped(_) | Turn::Due(_) if has_sent_the_end(ctx) => {
                    return judge(ctx, None);
                }
                Turn::Stopped(stop) => return Fate::stopped(stop),
                Turn::Torn(stop) => return Fate::stopped(stop).tearing(),
                Turn::Due(due) => {
                    self.replacing = due == Due::Idle && self.may_replace(ctx);
                    return Fate::overdue(due);
                }
            };
            if let Err(fate) = passed {
                return fate;
            }
        }
    }

    /// Waits for the next thing to happen; heartbeats go out meanwhile, and the read goes on through them.
    async fn turn(&mut self, session: &mut Session, ctx: &mut Ctx) -> Turn {
        let (Some(exchange), Some(upstream)) = (&ctx.exchange, &mut self.upstream) else {
            return Turn::Broken("the upstream is gone".to_owned());
        };
        let live = exchange.live().clone();
        let mut read = std::pin::pin!(upstream.http.read_response_body());
        loop {
            let turn = wait::turn(read.as_mut(), session, &live, self.pace).await;
            if !matches!(turn, Turn::Due(Due::Heartbeat)) {
                return turn;
            }
            if let Err(interrupt) = beat::write(self.gateway, session, ctx, self.pace).await {
                return interrupt.into();
            }
        }
    }

    /// Passes a chunk on, decoded where the upstream compressed it.
    async fn read(
        &mut self,
        session: &mut Session,
        ctx: &mut Ctx,
        chunk: Bytes,
    ) -> Result<(), Fate> {
        if let Some(relay) = &mut ctx.relay {
            relay.heard_at = self.pace.heard_at();
        }
        let decoded = match ctx.relay.as_mut().and_then(|r| r.decoder.as_mut()) {
            Some(decoder) => decoder.feed(&chunk),
            None => Ok(chunk),
        };
        match decoded {
            Ok(decoded) => self.pass(session, ctx, Some(decoded), false).await,
            Err(why) => {
                self.replacing = self.may_replace(ctx);
                Err(Fate::broken(why))
            }
        }
    }

    /// Filters a chunk, or the end of the body, and writes what may go on.
    async fn pass(
        &mut self,
        session: &mut Session,
        ctx: &mut Ctx,
        chunk: Option<Bytes>,
        end: bool,
    ) -> Result<(), Fate> {
        let mut body = chunk;
        self.gateway
            .response_body_filter(session, &mut body, end, ctx)
            .map_err(|e| Fate::gateway(&e))?;
        self.release(ctx, end);
        if let Some(bytes) = body.filter(|b| !b.is_empty()) {
            if !begin(session, ctx).await {
                return Err(gone(ctx));
            }
            self.write(session, ctx, bytes).await?;
        }
        match has_gap(ctx) {
            true => Err(judge(ctx, None)),
            false => Ok(()),
        }
    }

    /// The engine is done where the protocol has ended or the body is whole: its slots are free before the client can
    /// know of it.
    fn release(&mut self, ctx: &mut Ctx, end: bool) {
        if ctx.relay.as_ref().is_some_and(|r| r.is_holding()) {
            // another upstream may have to take over, in the same slots
            return;
        }
        let ended = is_stream(ctx) && has_ended(ctx);
        if ended {
            self.pace.close_within(CLOSE_WAIT);
        }
        // a body that broke off counts as done too: how it ended is judged by the end itself
        let done = ended || (!end && self.upstream.as_mut().is_some_and(Upstream::is_done));
        if done && let Some(exchange) = &mut ctx.exchange {
            exchange.release(UpstreamEnd::Complete);
        }
    }

    async fn write(
        &mut self,
        session: &mut Session,
        ctx: &mut Ctx,
        bytes: Bytes,
    ) -> Result<(), Fate> {
        let (Some(exchange), Some(relay)) = (&mut ctx.exchange, &mut ctx.relay) else {
            return Ok(());
        };
        let length = u64::try_from(bytes.len()).unwrap_or(0);
        let timeout = relay.pool.rules.stream.write_timeout;
        // asked to stop in a blocked write, the engine need not wait for the client
        let let_go = || self.upstream = None;
        let written = write::body(session, bytes, exchange, timeout, let_go).await;
        if matches!(written, Written::All | Written::Stopped(_)) {
            self.pace.client_was_sent();
            exchange.wire.bytes_out += length;
            relay.delivered(exchange);
        }
        match written {
            Written::All => Ok(()),
            Written::Stopped(_) if has_sent_the_end(ctx) => Err(judge(ctx, None)),
            Written::Stopped(stop) => Err(Fate::stopped(stop)),
            Written::Torn(stop) => Err(Fate::stopped(stop).tearing()),
            Written::Slow => Err(Fate::slow_reader()),
            Written::Gone => Err(gone(ctx)),
        }
    }

    /// The upstream's body is over, by its framing or because it `broke`. It is complete only where the protocol says
    /// so; an event stream whose end was read may break off after it.
    async fn end(&mut self, session: &mut Session, ctx: &mut Ctx, broke: Option<String>) -> Fate {
        if is_unfinished_preamble(ctx) {
            // nothing was shown: another backend takes over, or the client is told by a status
            self.replacing = self.may_replace(ctx);
            return Fate::broken("the upstream ended its answer before any output");
        }
        let whole = broke.is_none();
        if (whole || is_stream(ctx))
            && let Err(fate) = self.pass(session, ctx, None, true).await
        {
            return fate;
        }
        let fate = judge(ctx, broke);
        // an answer without a body: its head has waited until now
        if fate.leaves_upstream_whole() && !begin(session, ctx).await {
            return gone(ctx);
        }
        fate
    }

    /// Gives the upstream back where its answer came whole, closes it in every other case, and says so on the record.
    /// Whether another upstream is to be tried.
    async fn part(&mut self, ctx: &mut Ctx, fate: &Fate) -> bool {
        if let Some(mut upstream) = self.upstream.take() {
            let whole = upstream.is_done() && upstream.is_reusable();
            if whole && fate.leaves_upstream_whole() {
                self.gateway.give_back(upstream).await;
            } else {
                upstream.abort().await;
            }
        }
        let (Some(exchange), Some(relay)) = (&mut ctx.exchange, &mut ctx.relay) else {
            return false;
        };
        // what an upstream refused by status ran nothing, however the passing on of its answer went
        let outcome = match relay.refused {
            Some(_) => Outcome::Refused,
            None => fate.outcome(),
        };
        exchange.end_attempt(outcome, relay.refused);
        if self.replacing {
            exchange.leave_backend();
            exchange
                .metrics()
                .retried(&relay.pool.rules.name, outcome.as_str());
            relay.start_over(exchange);
        } else {
            exchange.release(fate.upstream_end());
        }
        self.replacing
    }

    /// Whether another upstream may take over. Asked once: what it allows is taken out of the pool's budget.
    fn may_replace(&self, ctx: &Ctx) -> bool {
        let unfinished = ctx.relay.as_ref().is_some_and(|r| !r.has_ended());
        unfinished && attempt::may_replace(ctx, self.tries)
    }
}

/// Writes the head that waited for its body. Whether the client is still there.
async fn begin(session: &mut Session, ctx: &mut Ctx) -> bool {
    let Some(relay) = &mut ctx.relay else {
        return true;
    };
    let Some(head) = relay.head.take() else {
        return true;
    };
    relay.begun = relay.events;
    let timeout = relay.pool.rules.stream.write_timeout;
    ctx.answered(head.status.as_u16());
    write::head(session, head, timeout).await
}
