//! The pump: from the moment a request is admitted to the moment its answer is over. It calls the hooks of the same
//! `ProxyHttp` in Pingora's order, over Pingora's own connector and sessions; only the loop between the two sockets is
//! ours, so that silence, cancelling and a blocked write are heard at any moment.

use super::Gateway;
use super::attempt::{self, Upstream};
use super::bodies::Body;
use super::context::Ctx;
use super::edge;
use super::fate::Fate;
use super::finish;
use super::pace::{Due, Pace};
use super::wait::{self, Turn};
use super::write::{self, Written};
use crate::api::{Answer, Request, heartbeat};
use crate::backend::Pool;
use crate::exchange::{Exchange, Outcome, UpstreamEnd, Usage};
use crate::metrics::Gaps;
use bytes::Bytes;
use pingora_core::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::{ProxyHttp, Session};
use std::sync::Arc;
use std::time::Duration;

/// How long the upstream's close is waited for after the protocol's own end.
const CLOSE_WAIT: Duration = Duration::from_millis(250);

/// What the pump knows of one request beside its exchange.
pub struct Relay {
    pub pool: Arc<Pool>,
    pub request: Request,
    /// The body for the upstream, as often as it is needed; gone once no further try is possible.
    pub body: Option<Body>,
    /// Backends that were tried.
    pub tried: Vec<String>,
    /// Made when an answer's head has come; nothing where it passes without being read.
    pub answer: Option<Answer>,
    /// The answer is an event stream.
    pub events: bool,
    /// The status of an answer that says no; it passes without being read.
    pub refused: Option<u16>,
    /// The head of an answer that is no event stream, until its body begins.
    pub held_head: Option<Box<ResponseHeader>>,
    gaps: Gaps,
    /// A heartbeat is due: the next call of the body filter makes one.
    beat: bool,
    /// Content events that went to the client, and those that were read.
    sent: u64,
    seen: u64,
    /// Content events in the bytes that the filter returned last.
    unsent: u32,
}

impl Relay {
    pub fn new(pool: Arc<Pool>, request: Request, body: Body, gaps: Gaps) -> Relay {
        Relay {
            pool,
            request,
            body: Some(body),
            tried: Vec::new(),
            answer: None,
            events: false,
            refused: None,
            held_head: None,
            gaps,
            beat: false,
            sent: 0,
            seen: 0,
            unsent: 0,
        }
    }

    /// What the bytes that are to be written next hold; called by `response_body_filter`.
    pub fn filter(&mut self, exchange: &mut Exchange, body: &mut Option<Bytes>, end: bool) {
        if std::mem::take(&mut self.beat) {
            *body = self.heartbeat(exchange);
            return;
        }
        let Some(answer) = &mut self.answer else {
            return;
        };
        let fed = match body.take() {
            Some(chunk) => answer.feed(chunk),
            None if end => answer.finish(),
            None => return,
        };
        for _ in 0..fed.content {
            self.gaps.event();
        }
        self.seen += u64::from(fed.content);
        self.unsent = fed.content;
        let shown = answer.shown() || (!self.events && !fed.bytes.is_empty());
        if shown {
            exchange.show();
        }
        self.count(exchange);
        *body = Some(fed.bytes);
    }

    fn heartbeat(&mut self, exchange: &Exchange) -> Option<Bytes> {
        let answer = self.answer.as_mut().filter(|a| a.heartbeat_fits())?;
        answer.heartbeat_sent();
        exchange.metrics().heartbeat(&self.pool.rules.name);
        Some(heartbeat(self.request.call.api()))
    }

    /// The bytes of the last filter call are with the client.
    pub fn delivered(&mut self, exchange: &mut Exchange) {
        self.sent += u64::from(std::mem::take(&mut self.unsent));
        self.count(exchange);
    }

    fn count(&mut self, exchange: &mut Exchange) {
        let Some(answer) = &self.answer else {
            return;
        };
        let totals = answer.totals();
        let before = exchange.usage();
        let all = self.sent >= self.seen;
        let whole = if self.events { all } else { answer.ended() };
        let delivered = if whole {
            totals.generated
        } else if self.seen == 0 {
            crate::budget::Units::ZERO
        } else {
            scaled(totals.generated, self.sent, self.seen)
        };
        exchange.count(Usage {
            input: totals.input.unwrap_or(before.input),
            input_cached: totals.input_cached,
            input_cache_write: totals.input_cache_write,
            generated: totals.generated,
            delivered,
            source: totals.source,
        });
    }

    fn ended(&self) -> bool {
        self.answer.as_ref().is_some_and(Answer::ended)
    }
}

/// Of the units made, the part that was sent, by events.
fn scaled(units: crate::budget::Units, sent: u64, seen: u64) -> crate::budget::Units {
    let part = u128::from(units.0) * u128::from(sent) / u128::from(seen.max(1));
    crate::budget::Units(u64::try_from(part).unwrap_or(u64::MAX))
}

/// Runs an admitted request to its end. What is owed to the client is written; settling is `logging`'s.
pub async fn run(gateway: &Gateway, session: &mut Session, ctx: &mut Ctx) {
    if let Some(relay) = &ctx.relay {
        relay.pool.retries.request();
        edge::set_half_close(session, relay.pool.rules.stream.half_close);
    }
    let fate = match Box::pin(attempt::establish(gateway, session, ctx)).await {
        Ok(upstream) => pump(gateway, session, ctx, upstream).await,
        Err(fate) => fate,
    };
    Box::pin(finish::conclude(session, ctx, fate)).await;
}

/// Relays an answer whose head was written, until it is over in one way or another.
async fn pump(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    upstream: Upstream,
) -> Fate {
    let Some(relay) = &mut ctx.relay else {
        return Fate::completed();
    };
    // no further try is possible: the body's memory is free
    relay.body = None;
    let mut pace = Pace::new(&relay.pool.rules);
    if !relay.events {
        pace.without_heartbeat();
    }
    let mut pump = Pump {
        gateway,
        pace,
        upstream: Some(upstream),
    };
    let fate = pump.relay(session, ctx).await;
    pump.part(ctx, &fate).await;
    fate
}

struct Pump<'a> {
    gateway: &'a Gateway,
    pace: Pace,
    /// Gone once it was closed or given back.
    upstream: Option<Upstream>,
}

impl Pump<'_> {
    async fn relay(&mut self, session: &mut Session, ctx: &mut Ctx) -> Fate {
        loop {
            match self.turn(session, ctx).await {
                Turn::Data(chunk) => {
                    self.pace.upstream_spoke();
                    if let Err(fate) = self.pass(session, ctx, Some(chunk), false).await {
                        return fate;
                    }
                }
                Turn::End => return self.end(session, ctx).await,
                Turn::Broken(why) => {
                    return match Self::has_ended(ctx) {
                        true => Fate::completed(),
                        false => Fate::broken(why),
                    };
                }
                Turn::Stopped(stop) => return Fate::stopped(stop),
                Turn::ClientGone => return Self::gone(ctx),
                Turn::Due(Due::CloseWait) => return Fate::completed(),
                Turn::Due(due) => return Fate::overdue(due),
            }
        }
    }

    /// Waits for the next thing to happen; heartbeats go out meanwhile, and the read goes on through them.
    async fn turn(&mut self, session: &mut Session, ctx: &mut Ctx) -> Turn {
        let live = match &ctx.exchange {
            Some(exchange) => exchange.live().clone(),
            None => return Turn::Broken("the request has no owner".to_owned()),
        };
        let Some(upstream) = &mut self.upstream else {
            return Turn::Broken("the upstream is gone".to_owned());
        };
        let mut read = std::pin::pin!(upstream.http.read_response_body());
        loop {
            let turn = wait::turn(read.as_mut(), session, &live, &mut self.pace).await;
            if !matches!(turn, Turn::Due(Due::Heartbeat)) {
                return turn;
            }
            if let Err(turn) = beat(self.gateway, session, ctx, &mut self.pace).await {
                return turn;
            }
        }
    }

    /// Filters a chunk and writes what may go on.
    async fn pass(
        &mut self,
        session: &mut Session,
        ctx: &mut Ctx,
        chunk: Option<Bytes>,
        end: bool,
    ) -> std::result::Result<(), Fate> {
        let mut body = chunk;
        if let Err(e) = self
            .gateway
            .response_body_filter(session, &mut body, end, ctx)
        {
            return Err(Fate::gateway(&e));
        }
        if Self::has_ended(ctx) {
            // the engine is done: its slots are free before the client can know
            if let Some(exchange) = &mut ctx.exchange {
                exchange.release(UpstreamEnd::Complete);
            }
            self.pace.close_within(CLOSE_WAIT);
        } else if self.upstream.as_mut().is_some_and(Upstream::is_done)
            && let Some(exchange) = &mut ctx.exchange
        {
            exchange.release(UpstreamEnd::Complete);
        }
        let bytes = body.filter(|b| !b.is_empty());
        if (bytes.is_some() || end) && !Self::begin(session, ctx).await {
            return Err(Self::gone(ctx));
        }
        match bytes {
            Some(bytes) => self.write(session, ctx, bytes).await,
            None => Ok(()),
        }
    }

    /// Writes the head that waited for its body. Whether the client is still there.
    async fn begin(session: &mut Session, ctx: &mut Ctx) -> bool {
        let Some(head) = ctx.relay.as_mut().and_then(|r| r.held_head.take()) else {
            return true;
        };
        ctx.answered(head.status.as_u16());
        session.write_response_header(head, false).await.is_ok()
    }

    async fn write(
        &mut self,
        session: &mut Session,
        ctx: &mut Ctx,
        bytes: Bytes,
    ) -> std::result::Result<(), Fate> {
        let Ctx {
            exchange: Some(exchange),
            relay: Some(relay),
            ..
        } = ctx
        else {
            return Ok(());
        };
        let length = u64::try_from(bytes.len()).unwrap_or(0);
        let timeout = relay.pool.rules.stream.write_timeout;
        let written = write::body(session, bytes, exchange, timeout, || {
            // asked to stop in a blocked write: the engine need not wait for the client
            self.upstream = None;
        })
        .await;
        match written {
            Written::All => {
                self.pace.client_was_sent();
                exchange.wire.bytes_out += length;
                relay.delivered(exchange);
                Ok(())
            }
            Written::Stopped(stop) => {
                exchange.wire.bytes_out += length;
                relay.delivered(exchange);
                Err(Fate::stopped(stop))
            }
            Written::Slow => Err(Fate::slow_reader()),
            Written::Gone => Err(Self::gone(ctx)),
        }
    }

    /// The upstream's body is over: complete only where the protocol says so.
    async fn end(&mut self, session: &mut Session, ctx: &mut Ctx) -> Fate {
        if let Err(fate) = self.pass(session, ctx, None, true).await {
            return fate;
        }
        let Some(relay) = &ctx.relay else {
            return Fate::completed();
        };
        if let Some(status) = relay.refused {
            return Fate::passed_refusal().refused(status);
        }
        let Some(answer) = &relay.answer else {
            return Fate::completed();
        };
        if let Some(why) = answer.failure() {
            return Fate::reported(why);
        }
        match answer.ended() {
            true => Fate::completed(),
            false => Fate::broken("the upstream ended its answer before the protocol's own end"),
        }
    }

    fn has_ended(ctx: &Ctx) -> bool {
        ctx.relay.as_ref().is_some_and(|r| r.ended())
    }

    /// The client has left: complete where it had been sent the end.
    fn gone(ctx: &mut Ctx) -> Fate {
        let Some(exchange) = &mut ctx.exchange else {
            return Fate::client_gone();
        };
        exchange.client_gone();
        let sent_all = ctx
            .relay
            .as_ref()
            .is_some_and(|r| r.ended() && r.unsent == 0);
        if sent_all {
            Fate::completed()
        } else {
            Fate::client_gone()
        }
    }

    /// Gives the upstream back where its answer came whole, closes it in every other case, and says so on the record.
    async fn part(&mut self, ctx: &mut Ctx, fate: &Fate) {
        if let Some(mut upstream) = self.upstream.take() {
            if upstream.is_done() && fate.leaves_upstream_whole() {
                self.gateway.give_back(upstream).await;
            } else {
                upstream.abort().await;
            }
        }
        let Some(exchange) = &mut ctx.exchange else {
            return;
        };
        let end = fate.upstream_end();
        exchange.release(end);
        // what an upstream refused by status ran nothing, however the passing on of its answer went
        let refused = ctx.relay.as_ref().and_then(|r| r.refused);
        let outcome = match refused {
            Some(_) => Outcome::Refused,
            None => fate.outcome(),
        };
        exchange.end_attempt(outcome, refused);
    }
}

/// Lets the body filter make a heartbeat, and writes it.
async fn beat(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
) -> std::result::Result<(), Turn> {
    if let Some(relay) = &mut ctx.relay {
        relay.beat = true;
    }
    let mut body = None;
    let filtered: Result<_> = gateway.response_body_filter(session, &mut body, false, ctx);
    // where none fits now, the next is due an interval later
    pace.client_was_sent();
    let (Ok(_), Some(bytes), Some(exchange)) = (filtered, body, &mut ctx.exchange) else {
        return Ok(());
    };
    let length = u64::try_from(bytes.len()).unwrap_or(0);
    let timeout = pace.write_timeout();
    match write::body(session, bytes, exchange, timeout, || {}).await {
        Written::All => {
            exchange.wire.bytes_out += length;
            Ok(())
        }
        Written::Stopped(stop) => Err(Turn::Stopped(stop)),
        Written::Slow => Err(Turn::Due(Due::Write)),
        Written::Gone => Err(Turn::ClientGone),
    }
}
