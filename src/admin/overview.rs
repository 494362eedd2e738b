//! What `/api/tenants`, `/api/pools` and `/api/requests` show: the state at the moment they are asked.
//!
//! Amounts are units and numbers of requests, times are milliseconds; `null` is no bound.

use crate::backend::{Member, Pool};
use crate::budget::{Hour, Units};
use crate::clock::{self, Timestamp};
use crate::config::Word;
use crate::proxy::{Hub, Rules};
use crate::record::Record;
use crate::slots::Slots;
use crate::tenant::{Rate, Tenant, TenantName};
use serde::Serialize;

#[derive(Serialize)]
pub struct Tenants {
    tenants: Vec<TenantRow>,
}

#[derive(Serialize)]
struct TenantRow {
    tenant: TenantName,
    priority: &'static str,
    weight: u32,
    slots: SlotsRow,
    /// Requests in the queues of all pools.
    waiting: usize,
    /// May wait in the queue of one pool.
    max_queued: Option<usize>,
    requests_per_minute: Option<RateRow>,
    units_per_minute: Option<RateRow>,
    budget: Option<BudgetRow>,
    /// Of the budget's current period; of all time where there is no budget.
    charged_units: Units,
    reserved_units: Units,
    held_units: Units,
    remaining_units: Option<Units>,
}

#[derive(Serialize)]
struct SlotsRow {
    used: usize,
    max: Option<usize>,
}

#[derive(Serialize)]
struct RateRow {
    limit: u64,
    remaining: u64,
    /// Until all of it is there again.
    reset_ms: u64,
}

#[derive(Serialize)]
struct BudgetRow {
    units: Units,
    period: &'static str,
    resets_at: Option<Timestamp>,
}

#[derive(Serialize)]
pub struct Pools {
    pools: Vec<PoolRow>,
}

#[derive(Serialize)]
struct PoolRow {
    pool: String,
    protocol: &'static str,
    models: Vec<String>,
    slots: SlotsRow,
    waiting: usize,
    mean_wait_ms: u64,
    /// Whose new requests are turned away: `none`, `batch`, `batch and normal`.
    shedding: &'static str,
    backends: Vec<BackendRow>,
}

#[derive(Serialize)]
struct BackendRow {
    backend: String,
    up: bool,
    slots: SlotsRow,
}

#[derive(Serialize)]
pub struct Requests {
    requests: Vec<Record>,
}

pub fn tenants(rules: &Rules) -> Tenants {
    let now = clock::now();
    let row = |tenant: &std::sync::Arc<Tenant>| tenant_row(tenant, rules, now);
    Tenants {
        tenants: rules.tenants.all().iter().map(row).collect(),
    }
}

fn tenant_row(tenant: &Tenant, rules: &Rules, now: Timestamp) -> TenantRow {
    let name = tenant.name();
    let waiting = rules.pools.all().iter().map(|p| p.queue.len_of(name)).sum();
    let mut account = tenant.account();
    let sums = account.sums(now);
    let budget = account.limit().map(|budget| BudgetRow {
        units: budget.units,
        period: budget.period.word(),
        resets_at: Hour::of(now).period_end(budget.period),
    });
    TenantRow {
        tenant: name.clone(),
        priority: tenant.rules.priority.word(),
        weight: tenant.rules.weight,
        slots: slots(tenant.slots()),
        waiting,
        max_queued: tenant.rules.max_queued,
        requests_per_minute: rate(tenant.request_rate()),
        units_per_minute: rate(tenant.unit_rate()),
        budget,
        charged_units: sums.charged,
        reserved_units: sums.reserved,
        held_units: sums.held,
        remaining_units: account.remaining(now),
    }
}

pub fn pools(rules: &Rules) -> Pools {
    Pools {
        pools: rules.pools.all().iter().map(|p| pool_row(p)).collect(),
    }
}

fn pool_row(pool: &Pool) -> PoolRow {
    PoolRow {
        pool: pool.rules.name.clone(),
        protocol: pool.rules.protocol.word(),
        models: pool.rules.models.iter().map(|m| m.public.clone()).collect(),
        slots: slots(&pool.slots),
        waiting: pool.queue.len(),
        mean_wait_ms: millis(pool.queue.mean_wait()),
        shedding: pool.shed.as_ref().map_or("none", |s| s.turned_away()),
        backends: pool.members().iter().map(|m| backend_row(m)).collect(),
    }
}

fn backend_row(member: &Member) -> BackendRow {
    BackendRow {
        backend: member.addr.clone(),
        up: member.is_up(),
        slots: slots(&member.slots),
    }
}

/// Everything that is admitted and has not ended, the oldest first.
pub fn requests(hub: &Hub) -> Requests {
    let mut requests: Vec<Record> = hub.registry.all().iter().map(|l| l.record()).collect();
    requests.sort_by_key(|r| r.admitted_at);
    Requests { requests }
}

fn slots(slots: &Slots) -> SlotsRow {
    SlotsRow {
        used: slots.used(),
        max: slots.max(),
    }
}

fn rate(rate: &Rate) -> Option<RateRow> {
    rate.state(clock::instant()).map(|state| RateRow {
        limit: state.limit,
        remaining: state.remaining,
        reset_ms: millis(state.reset),
    })
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
