//! Refusals for want of something: a rate, units, slots, or time to do it all. Each says what is used up and when there
//! will be more.

use super::refuse::Refusal;
use crate::api::{Code, Request};
use crate::backend::Pool;
use crate::budget::Exhausted;
use crate::clock::{self, Timestamp};
use crate::exchange::{Bound, Refused};
use crate::slots::Slots;
use crate::tenant::{NotReserved, Short, Tenant, Wanted};

/// Takes one of the tenant's requests of this minute. It is not given back where the request is refused later: a flood of
/// bad requests is a flood.
pub fn request_rate(tenant: &Tenant) -> Result<(), Refusal> {
    match tenant.request_rate().try_take(1, clock::instant()) {
        Ok(_) => Ok(()),
        Err(short) => {
            let used_up = format!(
                "this key's tenant may send {} requests a minute, and they are used up",
                short.limit
            );
            Err(rate_limited(&used_up, &short))
        }
    }
}

/// Turns the request away where load is being shed.
pub fn shed(pool: &Pool, tenant: &Tenant) -> Result<(), Refusal> {
    let Some(shed) = &pool.shed else {
        return Ok(());
    };
    shed.admits(tenant.rules.priority).map_err(|wait| {
        let why = "there is too much to do at the moment, and this key's tenant is among those turned away first; try again shortly";
        Refusal::new(Code::Shedding, why).after(wait)
    })
}

/// The account or the minute has too few units left.
pub fn units(why: &NotReserved, wanted: &Wanted, request: &Request, now: Timestamp) -> Refusal {
    let cost = wanted.input.plus(wanted.output);
    match why {
        NotReserved::Budget(exhausted) => {
            budget(exhausted, format!("the request may cost {cost} units"), now)
        }
        NotReserved::Rate(short) if short.retry_after.is_some() => {
            let left = format!(
                "the request may cost {cost} units, and of the {} a minute of this key's tenant {} are left",
                short.limit, short.remaining
            );
            rate_limited(&left, short)
        }
        NotReserved::Rate(short) => {
            let (member, hint) = match request.cap_member() {
                Some(member) => (member, "lower the output cap"),
                None => ("input", "send less input at once"),
            };
            let limit = short.limit;
            let why = format!(
                "the request may cost {cost} units, and this key's tenant has {limit} a minute; {hint}"
            );
            Refusal::new(Code::InvalidRequest, why)
                .about(member)
                .for_good()
        }
    }
}

fn budget(exhausted: &Exhausted, cost: String, now: Timestamp) -> Refusal {
    let may = format!("{cost} and the budget has {} left", exhausted.remaining);
    match exhausted.until {
        Some(until) => Refusal::new(
            Code::BudgetExhausted,
            format!("{may}; lower the output cap, or wait for the next period"),
        )
        .after(until.since(now)),
        None => Refusal::new(
            Code::BudgetExhausted,
            format!("{may}; lower the output cap, or ask for a larger budget"),
        ),
    }
    .for_good()
}

fn rate_limited(what: &str, short: &Short) -> Refusal {
    let refusal = |hint: &str| Refusal::new(Code::RateLimited, format!("{what}; {hint}"));
    match short.retry_after {
        Some(wait) => refusal(&format!("try again in {wait:?}")).after(wait),
        None => refusal("none will come").for_good(),
    }
}

/// There is neither a slot nor a place in line.
pub fn slots(refused: &Refused, pool: &Pool, tenant: &Tenant) -> Refusal {
    let wait = refused.retry_after;
    let refusal = match refused.bound {
        None if refused.tenant_full => {
            let why = all_taken(tenant.slots(), "this key's tenant");
            Refusal::new(Code::TenantSlotsFull, why)
        }
        None => Refusal::new(
            Code::PoolSlotsFull,
            all_taken(&pool.slots, "the model's pool"),
        ),
        Some(Bound::Length) => Refusal::new(
            Code::QueueFull,
            "no more requests may wait for a slot of the model's pool; try again later",
        ),
        Some(Bound::OfTenant) => Refusal::new(
            Code::QueueFull,
            "no more requests of this key's tenant may wait for a slot of the model's pool; wait for their answers",
        ),
        Some(Bound::Wait) => Refusal::new(
            Code::QueueFull,
            format!(
                "a slot of the model's pool is expected in {wait:.1?}, which is longer than a request may wait; try again later"
            ),
        ),
    };
    refusal.after(wait)
}

fn all_taken(slots: &Slots, whose: &str) -> String {
    let max = slots.max().unwrap_or(usize::MAX);
    format!("all {max} execution slots of {whose} are taken; try again shortly")
}
