//! Answers that come from what the gateway knows itself: models, records, cancels.

use super::auth;
use super::cancel::{self, Cancelled};
use super::context::Ctx;
use super::refuse::{self, Refusal, answer};
use crate::api::{Code, models as model_list};
use crate::clock;
use crate::ledger::LedgerError;
use crate::record::{Record, RequestId};
use crate::tenant::Tenant;
use bytes::Bytes;
use pingora_proxy::Session;
use std::sync::Arc;
use std::time::Duration;

/// `GET /v1/models`: what this tenant may use.
pub async fn models(session: &mut Session, ctx: &mut Ctx) -> Result<(), Refusal> {
    let tenant = tenant(session, ctx)?;
    let rules = ctx.rules.clone();
    let names = rules.pools.models();
    let mine = names.into_iter().filter(|m| tenant.may_use(m));
    let body = model_list::document(mine, clock::now().unix_seconds());
    write(session, ctx, 200, body).await;
    Ok(())
}

/// `GET /generations/{id}`: the record, of a running request or of the ledger.
pub async fn show(session: &mut Session, ctx: &mut Ctx, id: &RequestId) -> Result<(), Refusal> {
    let tenant = tenant(session, ctx)?;
    let record = find(ctx, &tenant, id).await?;
    write(session, ctx, 200, document(&record)).await;
    Ok(())
}

/// `POST /generations/{id}/cancel`: 202 where it runs, 200 where it has ended already; with the record.
pub async fn cancel(session: &mut Session, ctx: &mut Ctx, id: &RequestId) -> Result<(), Refusal> {
    let tenant = tenant(session, ctx)?;
    let met = cancel::cancel(&ctx.hub, tenant.name(), id).await;
    let (status, record) = match met.map_err(|e| unreadable(&e))? {
        Cancelled::Asked(record) => (202, record),
        Cancelled::Ended(record) => (200, record),
        Cancelled::Elsewhere(record) => return Err(elsewhere(&record)),
        Cancelled::Unknown => return Err(unknown(id)),
    };
    write(session, ctx, status, document(&record)).await;
    Ok(())
}

fn elsewhere(record: &Record) -> Refusal {
    let node = &record.node;
    let why = format!("the request runs at the gateway {node}; cancel it there");
    Refusal::new(Code::RequestRunning, why).for_good()
}

fn tenant(session: &Session, ctx: &mut Ctx) -> Result<Arc<Tenant>, Refusal> {
    auth::authenticate(ctx, &session.req_header().headers)
}

async fn find(ctx: &Ctx, tenant: &Tenant, id: &RequestId) -> Result<Record, Refusal> {
    if let Some(live) = ctx.hub.registry.find(tenant.name(), id) {
        return Ok(live.record());
    }
    match ctx.hub.services.ledger.find(tenant.name(), id).await {
        Ok(Some(known)) => Ok(known.record),
        Ok(None) => Err(unknown(id)),
        Err(e) => Err(unreadable(&e)),
    }
}

fn unknown(id: &RequestId) -> Refusal {
    Refusal::new(
        Code::UnknownRequest,
        format!("no request of the id {id} is known for this key"),
    )
}

fn unreadable(e: &LedgerError) -> Refusal {
    // the ledger's own thread says it in the log, once for all
    log::debug!("{e}");
    Refusal::new(
        Code::LedgerUnavailable,
        "records cannot be read at the moment; try again shortly",
    )
    .after(Duration::from_secs(1))
}

fn document(record: &Record) -> Bytes {
    serde_json::to_vec(record)
        .map(Bytes::from)
        .unwrap_or_default()
}

/// Writes a JSON answer. A client that has left meanwhile is nobody's loss.
async fn write(session: &mut Session, ctx: &mut Ctx, status: u16, body: Bytes) {
    let written = match refuse::json_header(status, body.len()) {
        Ok(header) => answer(session, ctx, header, body).await,
        Err(e) => Err(e),
    };
    if let Err(e) = written {
        log::debug!("an answer could not be written: {e}");
    }
}
