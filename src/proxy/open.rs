//! The end of admission: the entry in the ledger, and the exchange that owns the request from then on.

use super::admit::Asking;
use super::bodies::Body;
use super::context::Ctx;
use super::ids;
use super::refuse::Refusal;
use super::relay::Relay;
use super::take::{Taking, unwritable};
use crate::api::Edits;
use crate::budget::Units;
use crate::config::UsageMode;
use crate::exchange::{Admission, Exchange, Place};
use crate::ledger::{Opened, Opening};
use crate::record::{Admitted, Record, State};

/// Writes the entry and hands everything to the exchange.
pub async fn open(ctx: &mut Ctx, asking: Asking, taking: Taking) -> Result<(), Refusal> {
    let record = record(ctx, &asking, &taking);
    let live = taking.claim.show(record.clone());
    let opening = Opening {
        record: as_it_starts(record, &taking.place),
        fingerprint: asking.fingerprint,
    };
    let mut charged_before = Units::ZERO;
    match ctx.hub.services.ledger.open(opening).await {
        Ok(Opened::New) => {}
        Ok(Opened::Reopened(previous)) => {
            live.reopen(&previous);
            charged_before = previous.charged_units;
        }
        Ok(Opened::Conflict(known)) => {
            ids::check(&known, asking.fingerprint)?;
            return Err(ids::running());
        }
        Err(e) => unwritable(ctx, &e)?,
    }
    let cap = cap(&taking, asking.tenant.rules.max_output_units);
    let admission = Admission {
        live,
        tenant: asking.tenant.clone(),
        claim: taking.claim,
        reserved: taking.reserved,
        charged_before,
    };
    let mut wire = ctx.take_wire();
    wire.bytes_in = u64::try_from(asking.body.bytes.len()).unwrap_or(u64::MAX);
    let exchange = Exchange::new(admission, ctx.hub.services.clone(), wire);
    ctx.exchange = Some(exchange);
    ctx.place = Some(taking.place);
    ctx.relay = Some(Box::new(relay(ctx, asking, cap)));
    Ok(())
}

/// The output that each choice may have at most: the tenant's cap, and less where its budget gave less.
fn cap(taking: &Taking, of_tenant: Option<Units>) -> Option<Units> {
    let (wanted, given) = (&taking.wanted, taking.reserved.cap());
    let clamped = given.0 < wanted.output.0 / wanted.choices.max(1);
    if clamped { Some(given) } else { of_tenant }
}

fn relay(ctx: &Ctx, asking: Asking, cap: Option<Units>) -> Relay {
    let Asking {
        pool,
        request,
        body,
        ..
    } = asking;
    let edits = Edits {
        model: pool
            .upstream_model(&request.model)
            .unwrap_or(&request.model),
        cap,
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

/// The record of a request that has its slots already says that it runs: what a crash leaves of it does too.
fn as_it_starts(record: Record, place: &Place) -> Record {
    match place.is_granted() {
        true => Record {
            state: State::Running,
            started_at: Some(record.admitted_at),
            ..record
        },
        false => record,
    }
}

fn record(ctx: &Ctx, asking: &Asking, taking: &Taking) -> Record {
    let admitted = Admitted {
        request_id: ctx.request_id.clone(),
        tenant: asking.tenant.name().clone(),
        api: asking.request.call.api(),
        model: asking.request.model.clone(),
        pool: asking.pool.rules.name.clone(),
        node: ctx.hub.node.clone(),
        // the account and the ledger book the same hour
        at: taking.reserved.at(),
    };
    Record {
        client_request_id: asking.client_request_id.clone(),
        reserved_units: taking.reserved.units(),
        input_units: taking.wanted.input,
        ..Record::new(admitted)
    }
}
