//! Admission, in `request_filter`: key, rate, body, model, id, budget, place in line, ledger, in this order. Each step may
//! refuse; what was taken until then finds its way back by itself. After it, an exchange owns everything.
//!
//! Here a request is read and understood; `take` takes what it needs, and `open` makes its exchange.

use super::auth;
use super::bodies::{self, Body, Bounds};
use super::context::Ctx;
use super::ids;
use super::open;
use super::refuse::Refusal;
use super::scarce;
use super::take;
use crate::api::{Call, Code, ParseError, Request};
use crate::backend::Pool;
use crate::ledger::Fingerprint;
use crate::tenant::Tenant;
use pingora_proxy::Session;
use std::sync::Arc;
use std::time::Duration;

/// A request that was read and understood, and of which nothing was taken yet.
pub struct Asking {
    pub tenant: Arc<Tenant>,
    pub pool: Arc<Pool>,
    pub request: Request,
    pub body: Body,
    pub fingerprint: Fingerprint,
    pub client_request_id: Option<String>,
}

/// Admits a call, or says why not. Afterwards the context holds the exchange and all that its relay needs.
pub async fn admit(session: &mut Session, ctx: &mut Ctx, call: Call) -> Result<(), Refusal> {
    if ctx.hub.drain.is_draining() {
        return Err(draining());
    }
    let tenant = auth::authenticate(ctx, &session.req_header().headers)?;
    scarce::request_rate(&tenant)?;
    let named = ids::named(session)?;
    if let Some(id) = &named {
        ctx.request_id = id.clone();
    }
    let asking = read(session, ctx, call, tenant).await?;
    if ctx.hub.drain.is_draining() {
        return Err(draining());
    }
    let named = ids::adopt(ctx, asking.request.request_id.as_ref(), named)?;
    let taking = take::take(ctx, &asking, named).await?;
    open::open(ctx, asking, taking).await
}

async fn read(
    session: &mut Session,
    ctx: &Ctx,
    call: Call,
    tenant: Arc<Tenant>,
) -> Result<Asking, Refusal> {
    refuse_encoding(session)?;
    let server = &ctx.rules.config.server;
    let bounds = Bounds {
        max: server.max_body,
        time: server.timeouts.body,
    };
    let body = bodies::read(session, &ctx.hub.bodies, &bounds).await?;
    let request = Request::parse(call, &body.bytes).map_err(unreadable)?;
    let pool = pool_of(ctx, &tenant, &request)?;
    scarce::shed(&pool, &tenant)?;
    let header = session.req_header();
    let path = header.uri.path();
    let fingerprint = Fingerprint::of(tenant.name(), header.method.as_str(), path, &body.bytes);
    Ok(Asking {
        client_request_id: trace_name(session),
        tenant,
        pool,
        request,
        body,
        fingerprint,
    })
}

fn refuse_encoding(session: &Session) -> Result<(), Refusal> {
    let encoded = session
        .req_header()
        .headers
        .get("content-encoding")
        .filter(|v| !v.as_bytes().eq_ignore_ascii_case(b"identity"));
    match encoded {
        Some(_) => Err(Refusal::new(
            Code::UnsupportedEncoding,
            "the body is compressed; send it without Content-Encoding",
        )
        .closing()),
        None => Ok(()),
    }
}

fn unreadable(error: ParseError) -> Refusal {
    let refusal = Refusal::new(error.code, error.message);
    match error.param {
        Some(param) => refusal.about(param),
        None => refusal,
    }
}

fn pool_of(ctx: &Ctx, tenant: &Tenant, request: &Request) -> Result<Arc<Pool>, Refusal> {
    let model = &request.model;
    let Some(pool) = ctx.rules.pools.by_model(model) else {
        return Err(Refusal::new(
            Code::ModelNotFound,
            format!("the model {model:?} does not exist; GET /v1/models lists those that do"),
        )
        .about("model"));
    };
    if !tenant.may_use(model) {
        return Err(Refusal::new(
            Code::ModelNotAllowed,
            format!("the model {model:?} is not among those of this key"),
        )
        .about("model"));
    }
    if pool.rules.protocol != request.call.protocol() {
        return Err(Refusal::new(
            Code::InvalidRequest,
            format!("the model {model:?} is served by another API than this one"),
        )
        .about("model"));
    }
    Ok(pool.clone())
}

/// The client's `X-Request-Id`: kept on the record as a name, bounded, never an identity.
fn trace_name(session: &Session) -> Option<String> {
    let value = session.req_header().headers.get("x-request-id")?;
    let name: String = value.to_str().ok()?.chars().take(256).collect();
    (!name.is_empty()).then_some(name)
}

fn draining() -> Refusal {
    Refusal::new(
        Code::Draining,
        "this gateway is shutting down; try again shortly",
    )
    .after(Duration::from_secs(1))
    .closing()
}
