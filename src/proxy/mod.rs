//! The `ProxyHttp` implementation: thin, each hook one call. Pingora's error type stays in here.
//!
//! The life of a request, hook by hook:
//! - `early_request_filter` notes who asks what, and bounds the head
//! - `request_filter` routes, and admits a call (`admit`) or answers by itself (`records`, `refuse`)
//! - `proxy_upstream_filter` runs the pump (`pump`), which calls, in Pingora's order, `upstream_peer` (`peer`),
//!   `upstream_request_filter`, `response_filter` (`respond`) and `response_body_filter`
//! - `logging` settles (`finish`); the last bytes of the answer follow
//!
//! The files, by what they are of:
//! - admission: `auth`, `bodies`, `admit`, `ids`, `take`, `open`; what is said no with: `refuse`, `scarce`, `rates`
//! - the pump: `queued`, `attempt`, `upstream`, `unread`, `peer`, `respond`, `relay`, `decode`; what it waits for and
//!   writes: `wait`, `pace`, `beat`, `write`; how it ends: `verdict`, `fate`, `finish`
//! - a client's connection: `entry`, `connection`, `inflow`, `framing`, `chunks`; its heads: `edge`, `headers`, `forwarded`
//! - what the gateway answers by itself: `route`, `records`, `cancel`

mod admit;
mod attempt;
mod auth;
mod beat;
mod bodies;
mod cancel;
mod chunks;
mod connection;
mod context;
mod decode;
mod edge;
mod entry;
mod fate;
mod finish;
mod forwarded;
mod framing;
mod headers;
mod hub;
mod ids;
mod inflow;
mod open;
mod pace;
mod peer;
mod pump;
mod queued;
mod rates;
mod records;
mod refuse;
mod relay;
mod respond;
mod route;
mod scarce;
mod take;
mod unread;
mod upstream;
mod verdict;
mod wait;
mod write;

pub use cancel::{Cancelled, cancel};
pub use context::Ctx;
pub use entry::Entry;
pub use hub::{Hub, Rules};

use crate::api::Code;
use async_trait::async_trait;
use bytes::Bytes;
use pingora_core::connectors::ConnectorOptions;
use pingora_core::connectors::http::Connector;
use pingora_core::modules::http::HttpModules;
use pingora_core::protocols::http::client::HttpSession;
use pingora_core::server::configuration::ServerConf;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, Session};
use refuse::Refusal;
use route::Asked;
use std::sync::Arc;
use std::time::Duration;
use upstream::Upstream;

/// The proxy: one for each group of listeners.
pub struct Gateway {
    hub: Arc<Hub>,
    connector: Connector,
}

impl Gateway {
    pub fn new(hub: Arc<Hub>, conf: &ServerConf) -> Gateway {
        Gateway {
            hub,
            connector: Connector::new(Some(ConnectorOptions::from_server_conf(conf))),
        }
    }

    /// Gives a connection back for the next request, where its head allows that.
    async fn give_back(&self, upstream: Upstream) {
        let Upstream { mut http, peer, .. } = upstream;
        if let HttpSession::H1(h1) = &mut http {
            h1.respect_keepalive();
        }
        self.connector
            .release_http_session(http, &*peer, Some(peer::KEEP_IDLE))
            .await;
    }

    /// Finds what is asked and does it. Whether the answer is complete.
    async fn ask(
        &self,
        session: &mut Session,
        ctx: &mut Ctx,
    ) -> std::result::Result<bool, Refusal> {
        edge::check(session, ctx)?;
        let header = session.req_header();
        let asked = route::find(&header.method, header.uri.path());
        match asked {
            Asked::Call(call) => {
                admit::admit(session, ctx, call).await?;
                return Ok(false);
            }
            Asked::Models => records::models(session, ctx).await?,
            Asked::Record(id) => records::show(session, ctx, &id).await?,
            Asked::Cancel(id) => records::cancel(session, ctx, &id).await?,
            Asked::WrongMethod(allow) => return Err(wrong_method(allow)),
            Asked::Nothing => return Err(nothing_here()),
        }
        Ok(true)
    }
}

fn wrong_method(allow: &'static str) -> Refusal {
    Refusal::new(
        Code::MethodNotAllowed,
        format!("this method is not allowed here; use {allow}"),
    )
    .allowing(allow)
}

fn nothing_here() -> Refusal {
    Refusal::new(
        Code::NotFound,
        "there is nothing at this path; OpenAI's API is below /v1, as in /v1/chat/completions",
    )
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = Ctx;

    fn new_ctx(&self) -> Ctx {
        Ctx::new(self.hub.clone())
    }

    /// None: Pingora's default holds a compression module, which costs on every chunk of a stream.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn early_request_filter(&self, session: &mut Session, ctx: &mut Ctx) -> Result<()> {
        edge::begin(session, ctx);
        Ok(())
    }

    async fn request_filter(&self, session: &mut Session, ctx: &mut Ctx) -> Result<bool> {
        match Box::pin(self.ask(session, ctx)).await {
            Ok(answered) => Ok(answered),
            Err(refusal) => {
                refuse::refuse(session, ctx, refusal).await?;
                Ok(true)
            }
        }
    }

    /// Runs the pump. Pingora's own relay is never used for a call: the answer is always no.
    async fn proxy_upstream_filter(&self, session: &mut Session, ctx: &mut Ctx) -> Result<bool> {
        pump::run(self, session, ctx).await;
        Ok(false)
    }

    async fn upstream_peer(&self, _session: &mut Session, ctx: &mut Ctx) -> Result<Box<HttpPeer>> {
        peer::pick(ctx)
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        header: &mut RequestHeader,
        ctx: &mut Ctx,
    ) -> Result<()> {
        peer::request_head(session, ctx, header)
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        header: &mut ResponseHeader,
        ctx: &mut Ctx,
    ) -> Result<()> {
        respond::filter(session, ctx, header)
    }

    fn response_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut Ctx,
    ) -> Result<Option<Duration>> {
        if let (Some(relay), Some(exchange)) = (&mut ctx.relay, &mut ctx.exchange) {
            relay.filter(exchange, body, end_of_stream);
        }
        Ok(None)
    }

    async fn logging(&self, _session: &mut Session, error: Option<&Error>, ctx: &mut Ctx) {
        finish::settle(ctx, error);
    }

    /// Nothing is written here: what is owed to a client was written before, and one that left is owed nothing.
    async fn fail_to_proxy(
        &self,
        _session: &mut Session,
        _error: &Error,
        _ctx: &mut Ctx,
    ) -> FailToProxy {
        FailToProxy {
            error_code: 0,
            can_reuse_downstream: false,
        }
    }

    /// Ours are said on the record and in the access line.
    fn suppress_error_log(&self, _session: &Session, _ctx: &Ctx, _error: &Error) -> bool {
        true
    }
}
