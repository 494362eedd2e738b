//! What a request needs to run, taken one after the other: its id, its units, its slots or a place in line for them.

use super::admit::Asking;
use super::context::Ctx;
use super::ids;
use super::refuse::Refusal;
use super::scarce;
use crate::api::Code;
use crate::clock;
use crate::config::OnError;
use crate::exchange::{Claim, Place, Taken};
use crate::ledger::LedgerError;
use crate::tenant::{Reserved, Wanted};
use std::time::Duration;

/// What admission has taken. Dropped, it all finds its way back.
pub struct Taking {
    pub claim: Claim,
    /// What was asked for; a budget may have given less.
    pub wanted: Wanted,
    pub reserved: Reserved,
    pub place: Place,
}

/// Takes the id, the reservation, and the slots or a place in line. Units come first: who has none takes no turn.
pub async fn take(ctx: &Ctx, asking: &Asking, named: bool) -> Result<Taking, Refusal> {
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
        refuse_known(ctx, asking).await?;
    }
    let wanted = wanted(asking);
    let now = clock::now();
    let reserved = tenant
        .reserve(&wanted, now, clock::instant())
        .map_err(|e| scarce::units(&e, &wanted, &asking.request, now))?;
    let place = asking
        .pool
        .queue
        .enter(tenant, reserved.units())
        .map_err(|refused| scarce::slots(&refused, &asking.pool, tenant))?;
    Ok(Taking {
        claim,
        wanted,
        reserved,
        place,
    })
}

/// Input estimate and output cap.
fn wanted(asking: &Asking) -> Wanted {
    let rules = &asking.pool.rules;
    let limit = asking.tenant.rules.max_output_units;
    Wanted {
        input: asking.request.input_estimate(rules.bytes_per_unit),
        output: asking
            .request
            .output_reserve(limit, rules.default_output_units),
        choices: asking.request.choices,
    }
}

/// Refuses an id that the ledger knows and that may not run again.
async fn refuse_known(ctx: &Ctx, asking: &Asking) -> Result<(), Refusal> {
    let ledger = &ctx.hub.services.ledger;
    match ledger.find(asking.tenant.name(), &ctx.request_id).await {
        Ok(Some(known)) => ids::check(&known, asking.fingerprint),
        Ok(None) => Ok(()),
        Err(e) => unwritable(ctx, &e),
    }
}

/// The ledger cannot be used: refuse or serve, as configured. Serving ends where too much waits to be written.
pub fn unwritable(ctx: &Ctx, error: &LedgerError) -> Result<(), Refusal> {
    // the ledger says it in the log, once for all
    log::debug!("{error}");
    match ctx.rules.config.ledger.on_error {
        OnError::Serve if !ctx.hub.services.ledger.is_overfull() => Ok(()),
        OnError::Serve | OnError::Refuse => Err(Refusal::new(
            Code::LedgerUnavailable,
            "requests cannot be accounted for at the moment; try again shortly",
        )
        .after(Duration::from_secs(1))),
    }
}
