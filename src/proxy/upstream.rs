//! One connection to an upstream and the steps of a try on it: connect, send, read the answer's head. Each step ends
//! early where the client leaves, somebody asks to stop, or its time is over.

use super::Gateway;
use super::beat;
use super::context::Ctx;
use super::fate::Fate;
use super::pace::{Pace, within};
use super::unread;
use super::wait::{self, Interrupt};
use crate::backend::NoPick;
use crate::clock;
use crate::config;
use bytes::Bytes;
use pingora_core::ErrorType;
use pingora_core::protocols::http::client::HttpSession;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_http::RequestHeader;
use pingora_proxy::{ProxyHttp, Session};
use std::time::Duration;

/// How long an answer is looked for on a connection that took no more of the request.
const EARLY_ANSWER: Duration = Duration::from_millis(500);

/// A connection that carries one answer.
pub struct Upstream {
    pub http: HttpSession<()>,
    pub peer: Box<HttpPeer>,
    /// It took the whole request: nothing of it can be taken for the next one.
    reusable: bool,
}

impl Upstream {
    /// Whether the answer's body is over, whole or not.
    pub fn is_done(&mut self) -> bool {
        self.http.response_done()
    }

    pub fn is_reusable(&self) -> bool {
        self.reusable
    }

    pub fn status(&self) -> u16 {
        self.http.response_header().map_or(0, |h| h.status.as_u16())
    }

    /// Closes the connection, or resets its stream.
    pub async fn abort(&mut self) {
        self.http.shutdown().await;
    }
}

/// Why a try gave no answer to pass on.
pub struct Failure {
    pub fate: Fate,
    pub kind: Kind,
}

/// What a failed try means for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The upstream has not got the whole request.
    NotSent,
    /// It answered that it did not run it.
    Refused,
    /// It may have run it: another try may cost twice.
    Sent,
    /// There is nothing to try, or nobody to try it for.
    Final,
}

impl Failure {
    pub fn not_sent(fate: Fate) -> Failure {
        Failure {
            fate,
            kind: Kind::NotSent,
        }
    }

    fn sent(fate: Fate) -> Failure {
        Failure {
            fate,
            kind: Kind::Sent,
        }
    }

    fn last(fate: Fate) -> Failure {
        Failure {
            fate,
            kind: Kind::Final,
        }
    }
}

impl From<Interrupt> for Failure {
    fn from(interrupt: Interrupt) -> Failure {
        Failure::last(interrupt.into())
    }
}

pub type Tried<T> = Result<T, Failure>;

/// Picks a backend and gets a connection to it, fresh or of the pool.
pub async fn connect(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
) -> Tried<(Upstream, bool)> {
    let peer = match gateway.upstream_peer(session, ctx).await {
        Ok(peer) => peer,
        Err(_) => return Err(Failure::last(no_pick(ctx))),
    };
    let begun = clock::instant();
    let connecting = Box::pin(gateway.connector.get_http_session(&*peer));
    let limit = rules(ctx).map_or(Duration::ZERO, |r| r.timeouts.connect);
    let connected = beat::through(within(limit, connecting), gateway, session, ctx, pace).await?;
    match connected {
        Some(Ok((http, reused))) => {
            if !reused {
                note_connected(ctx, begun.elapsed());
            }
            let upstream = Upstream {
                http,
                peer,
                reusable: true,
            };
            Ok((upstream, reused))
        }
        Some(Err(e)) => {
            mark_failed(ctx);
            log::warn!(
                "{}: {} cannot be reached: {}",
                ctx.request_id,
                whom(ctx),
                reason(&e)
            );
            Err(Failure::not_sent(Fate::unreachable()))
        }
        None => {
            mark_failed(ctx);
            Err(Failure::not_sent(Fate::connect_timed_out()))
        }
    }
}

pub fn rules(ctx: &Ctx) -> Option<&config::Pool> {
    ctx.relay.as_ref().map(|r| &r.pool.rules)
}

fn note_connected(ctx: &Ctx, took: Duration) {
    if let (Some(exchange), Some(rules)) = (&ctx.exchange, rules(ctx)) {
        exchange.metrics().connected(&rules.name, took);
    }
}

/// The backend and its pool, for the log.
fn whom(ctx: &Ctx) -> String {
    let backend = ctx.member.as_ref().map_or("?", |m| m.addr.as_str());
    let pool = rules(ctx).map_or("?", |r| r.name.as_str());
    format!("backend {backend} of pool {pool}")
}

/// The system's own words for an error, where it has any.
fn reason(error: &pingora_core::Error) -> String {
    let root = error.root_cause();
    match root.downcast_ref::<std::io::Error>() {
        Some(io) => io.to_string(),
        None => error.etype().as_str().to_owned(),
    }
}

fn note_answered(ctx: &Ctx) {
    if let Some(member) = &ctx.member {
        member.answered();
    }
}

fn mark_failed(ctx: &Ctx) {
    if let Some(member) = &ctx.member {
        member.failed();
    }
}

fn no_pick(ctx: &Ctx) -> Fate {
    match (ctx.no_pick, &ctx.relay) {
        (Some(NoPick::Full), Some(relay)) => Fate::full(relay.pool.slots.expected_wait()),
        _ => Fate::no_backend(),
    }
}

/// Sends the request's head and body. Whether the upstream has answered before it read all of it.
pub async fn send(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
    upstream: &mut Upstream,
) -> Tried<bool> {
    let body = ctx
        .relay
        .as_ref()
        .and_then(|r| r.body.as_ref())
        .map(|b| b.bytes.clone())
        .unwrap_or_default();
    let mut header = Box::new(session.req_header().clone());
    gateway
        .upstream_request_filter(session, &mut header, ctx)
        .await
        .map_err(|e| Failure::last(Fate::gateway(&e)))?;
    // an upstream that takes nothing is as silent as one that says nothing
    let limit = rules(ctx).map_or(Duration::ZERO, |r| r.timeouts.first_byte);
    let socket = unread::socket(&upstream.http);
    let writing = async {
        tokio::select! {
            biased;
            written = write_request(&mut upstream.http, header, body) => Some(written),
            () = unread::spoken(socket) => None,
        }
    };
    let writing = Box::pin(within(limit, writing));
    match beat::through(writing, gateway, session, ctx, pace).await? {
        Some(Some(Ok(()))) => return Ok(false),
        Some(Some(Err(e))) => {
            log::debug!("{}: the request could not be written: {e}", ctx.request_id);
        }
        Some(None) => log::debug!("{}: an answer before the whole request", ctx.request_id),
        // half a request runs nowhere
        None => return Err(Failure::not_sent(Fate::timed_out("first_byte"))),
    }
    // an upstream that says no before it has read the body may close behind its answer, or read no more
    let early = Box::pin(within(EARLY_ANSWER, read_head(&mut upstream.http)));
    match beat::through(early, gateway, session, ctx, pace).await? {
        Some(Ok(())) => {
            upstream.reusable = false;
            note_answered(ctx);
            Ok(true)
        }
        _ => Err(Failure::not_sent(Fate::broken(
            "the connection to the upstream broke while the request was sent",
        ))),
    }
}

async fn write_request(
    http: &mut HttpSession<()>,
    header: Box<RequestHeader>,
    body: Bytes,
) -> pingora_core::Result<()> {
    http.write_request_header(header).await?;
    http.write_request_body(body, true).await?;
    http.finish_request_body().await
}

/// Waits for the answer's final head.
pub async fn head(
    gateway: &Gateway,
    session: &mut Session,
    ctx: &mut Ctx,
    pace: &mut Pace,
    mut upstream: Upstream,
) -> Tried<Upstream> {
    let limit = rules(ctx).map_or(Duration::ZERO, |r| r.timeouts.first_byte);
    let reading = Box::pin(within(limit, read_head(&mut upstream.http)));
    let read = beat::through(reading, gateway, session, ctx, pace).await;
    match read {
        Ok(Some(Ok(()))) => {
            note_answered(ctx);
            Ok(upstream)
        }
        Ok(Some(Err(e))) => {
            let why = if matches!(e.etype(), ErrorType::ConnectionClosed) {
                "the upstream closed the connection without an answer"
            } else {
                wait::broken(&e)
            };
            log::warn!(
                "{}: no answer from {}: {}",
                ctx.request_id,
                whom(ctx),
                reason(&e)
            );
            Err(Failure::sent(Fate::broken(why)))
        }
        Ok(None) => Err(Failure::sent(Fate::timed_out("first_byte"))),
        Err(failure) => {
            upstream.abort().await;
            Err(failure.into())
        }
    }
}

/// Informational heads (RFC 9110, section 15.2) are stepped over: a client that did not ask takes them for the answer.
async fn read_head(http: &mut HttpSession<()>) -> pingora_core::Result<()> {
    loop {
        http.read_response_header().await?;
        if http
            .response_header()
            .is_none_or(|h| !h.status.is_informational())
        {
            return Ok(());
        }
    }
}
