//! Admission, in `request_filter`: key, body, model, id, slots, budget, ledger, in this order. Each step may refuse;
//! what was taken until then finds its way back by itself. After it, an exchange owns everything.

use super::auth;
use super::bodies::{self, Body, Bounds};
use super::context::Ctx;
use super::hub::Hub;
use super::ids;
use super::refuse::Refusal;
use super::relay::Relay;
use crate::api::{Call, Code, Edits, ParseError, Request};
use crate::backend::Pool;
use crate::budget::{Exhausted, Units};
use crate::clock::{self, Timestamp};
use crate::config::{OnError, UsageMode};
use crate::exchange::{
    Admission, Claim, Exchange, Record, RequestId, State, Taken, UpstreamEnd, UsageSource,
};
use crate::ledger::{Fingerprint, Opened, Opening};
use crate::slots::{Slot, Slots};
use crate::tenant::{Reserved, Tenant};
use pingora_proxy::Session;
use std::sync::Arc;
use std::time::Duration;

/// A request that was read and understood, and of which nothing was taken yet.
struct Asking {
    tenant: Arc<Tenant>,
    pool: Arc<Pool>,
    request: Request,
    body: Body,
    fingerprint: Fingerprint,
    client_request_id: Option<String>,
}

/// What admission has taken so far.
struct Taking {
    claim: Claim,
    tenant_slot: Slot,
    pool_slot: Slot,
    reserved: Reserved,
    now: Timestamp,
}

/// Admits a call, or says why not. Afterwards the context holds the exchange and all that its relay needs.
pub async fn admit(session: &mut Session, ctx: &mut Ctx, call: Call) -> Result<(), Refusal> {
    if ctx.hub.drain.is_draining() {
        return Err(draining());
    }
    let tenant = auth::authenticate(ctx, &session.req_header().headers)?;
    let named = ids::named(session)?;
    if let Some(id) = &named {
        ctx.request_id = id.clone();
    }
    let asking = read(session, ctx, call, tenant).await?;
    if ctx.hub.drain.is_draining() {
        return Err(draining());
    }
    let named = ids::adopt(ctx, asking.request.request_id.as_ref(), named)?;
    let taking = take(ctx, &asking, named).await?;
    open(ctx, asking, taking).await
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

/// Takes the id, the slots and the reservation.
async fn take(ctx: &Ctx, asking: &Asking, named: bool) -> Result<Taking, Refusal> {
    let tenant = &asking.tenant;
    let claim = ctx
        .hub
        .registry
        .claim(tenant.name(), &ctx.request_id, asking.fingerprint)
        .map_err(|Taken(by)| match by == asking.fingerprint {
            true => ids::running(),
            false => ids::mismatch(),
        })?;
    if named {
        refuse_known(&ctx.hub, asking, &ctx.request_id).await?;
    }
    let tenant_slot = slot(tenant.slots(), Code::TenantSlotsFull, "this key's tenant")?;
    let pool_slot = slot(&asking.pool.slots, Code::PoolSlotsFull, "the model's pool")?;
    // one look at the clock: the account and the ledger book the same hour
    let now = clock::now();
    let reserved = tenant
        .reserve(wanted(asking), now)
        .map_err(|e| exhausted(&e, wanted(asking)))?;
    Ok(Taking {
        claim,
        tenant_slot,
        pool_slot,
        reserved,
        now,
    })
}

fn slot(slots: &Arc<Slots>, code: Code, whose: &str) -> Result<Slot, Refusal> {
    slots.take().ok_or_else(|| {
        let max = slots.max().unwrap_or(usize::MAX);
        let message = format!("all {max} execution slots of {whose} are taken; try again shortly");
        Refusal::new(code, message).after(slots.expected_wait())
    })
}

/// Input estimate and output cap.
fn wanted(asking: &Asking) -> Units {
    let rules = &asking.pool.rules;
    let input = asking.request.input_estimate(rules.bytes_per_unit);
    let limit = asking.tenant.rules.max_output_units;
    input.plus(
        asking
            .request
            .output_reserve(limit, rules.default_output_units),
    )
}

/// Refuses an id that the ledger knows and that may not run again.
async fn refuse_known(hub: &Hub, asking: &Asking, id: &RequestId) -> Result<(), Refusal> {
    match hub.services.ledger.find(asking.tenant.name(), id).await {
        Ok(Some(known)) => ids::check(&known, asking.fingerprint),
        Ok(None) => Ok(()),
        Err(e) => unwritable(hub, &e.to_string()),
    }
}

/// The ledger cannot be used: refuse or serve, as configured.
fn unwritable(hub: &Hub, error: &str) -> Result<(), Refusal> {
    log::error!("{error}");
    match hub.rules().config.ledger.on_error {
        OnError::Serve => Ok(()),
        OnError::Refuse => Err(Refusal::new(
            Code::LedgerUnavailable,
            "requests cannot be accounted for at the moment; try again shortly",
        )
        .after(Duration::from_secs(1))),
    }
}

/// Writes the entry and hands everything to the exchange.
async fn open(ctx: &mut Ctx, asking: Asking, taking: Taking) -> Result<(), Refusal> {
    let mut record = record(ctx, &asking, &taking);
    let opening = Opening {
        record: record.clone(),
        fingerprint: asking.fingerprint,
    };
    match ctx.hub.services.ledger.open(opening).await {
        Ok(Opened::New) => {}
        Ok(Opened::Reopened(previous)) => reopen(&mut record, *previous),
        Ok(Opened::Conflict(known)) => {
            ids::check(&known, asking.fingerprint)?;
            return Err(ids::running());
        }
        Err(e) => unwritable(&ctx.hub, &e.to_string())?,
    }
    let charged_before = record.charged_units;
    let admission = Admission {
        record,
        tenant: asking.tenant.clone(),
        claim: taking.claim,
        tenant_slot: taking.tenant_slot,
        pool_slot: taking.pool_slot,
        reserved: taking.reserved,
        charged_before,
    };
    let mut wire = ctx.take_wire();
    wire.bytes_in = u64::try_from(asking.body.bytes.len()).unwrap_or(u64::MAX);
    let mut exchange = Exchange::new(admission, ctx.hub.services.clone(), wire);
    exchange.start();
    ctx.exchange = Some(exchange);
    ctx.relay = Some(Box::new(relay(ctx, asking)));
    Ok(())
}

fn relay(ctx: &Ctx, asking: Asking) -> Relay {
    let Asking {
        tenant,
        pool,
        request,
        body,
        ..
    } = asking;
    let edits = Edits {
        model: pool
            .upstream_model(&request.model)
            .unwrap_or(&request.model),
        cap: tenant.rules.max_output_units,
        cap_member: pool.rules.cap_member,
        include_usage: pool.rules.stream.usage == UsageMode::Inject,
    };
    let bytes = request.upstream_body(&body.bytes, &edits);
    let body = Body {
        bytes,
        share: body.share,
    };
    let gaps = ctx.hub.services.metrics.gaps(&pool.rules.name);
    Relay::new(pool, request, body, gaps)
}

/// Attempts append and charges add up: the reopened record goes on from where it ended.
fn reopen(record: &mut Record, previous: Record) {
    record.attempts = previous.attempts;
    record.charged_units = previous.charged_units;
}

fn record(ctx: &Ctx, asking: &Asking, taking: &Taking) -> Record {
    let rules = &asking.pool.rules;
    Record {
        request_id: ctx.request_id.clone(),
        client_request_id: asking.client_request_id.clone(),
        upstream_request_id: None,
        tenant: asking.tenant.name().clone(),
        api: asking.request.call.api(),
        model: asking.request.model.clone(),
        pool: rules.name.clone(),
        backend: None,
        node: ctx.hub.node.clone(),
        state: State::Queued,
        ended_by: None,
        upstream_end: UpstreamEnd::None,
        error: None,
        admitted_at: taking.now,
        started_at: None,
        first_output_at: None,
        cancel_requested_at: None,
        client_gone_at: None,
        upstream_ended_at: None,
        released_at: None,
        ended_at: None,
        reserved_units: taking.reserved.units(),
        input_units: asking.request.input_estimate(rules.bytes_per_unit),
        input_cached_units: None,
        input_cache_write_units: None,
        generated_units: Units::ZERO,
        delivered_units: Units::ZERO,
        charged_units: Units::ZERO,
        usage_source: UsageSource::Counted,
        attempts: Vec::new(),
    }
}

fn draining() -> Refusal {
    Refusal::new(
        Code::Draining,
        "this gateway is shutting down; try again shortly",
    )
    .after(Duration::from_secs(1))
    .closing()
}

fn exhausted(exhausted: &Exhausted, wanted: Units) -> Refusal {
    let left = exhausted.remaining;
    let may = format!("the request may cost {wanted} units and the budget has {left} left");
    match exhausted.until {
        Some(until) => Refusal::new(
            Code::BudgetExhausted,
            format!("{may}; lower the output cap, or wait for the next period"),
        )
        .after(until.since(clock::now())),
        None => Refusal::new(
            Code::BudgetExhausted,
            format!("{may}; lower the output cap, or ask for a larger budget"),
        ),
    }
    .for_good()
}
