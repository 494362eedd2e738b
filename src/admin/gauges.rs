//! Gauges that are read off what they describe, at the moment of the scrape.

use crate::budget::Units;
use crate::ledger::Ledger;
use crate::metrics::Table;
use crate::ops;
use crate::proxy::{Hub, Rules};

/// Sets them all. A pool, backend or tenant that a reload took away leaves no series behind.
pub fn set(hub: &Hub) {
    let table = &hub.services.metrics.table;
    let rules = hub.rules();
    if let Some(open) = ops::open_fds() {
        table.open_fds.set(i64::try_from(open).unwrap_or(i64::MAX));
    }
    ledger(table, &hub.services.ledger);
    pools(table, &rules);
    tenants(table, &rules);
}

fn ledger(table: &Table, ledger: &Ledger) {
    table.ledger_up.set(i64::from(ledger.is_up()));
    let unwritten = i64::try_from(ledger.unwritten()).unwrap_or(i64::MAX);
    table.ledger_unwritten.set(unwritten);
}

fn pools(table: &Table, rules: &Rules) {
    table.slots.reset();
    table.slots_max.reset();
    table.backend_up.reset();
    for pool in rules.pools.all() {
        let name = pool.rules.name.as_str();
        let used = i64::try_from(pool.slots.used()).unwrap_or(i64::MAX);
        table.slots.with_label_values(&[name]).set(used);
        let max = pool.slots.max().map_or(f64::INFINITY, float);
        table.slots_max.with_label_values(&[name]).set(max);
        for member in pool.members() {
            let up = i64::from(member.is_up());
            table
                .backend_up
                .with_label_values(&[name, &member.addr])
                .set(up);
        }
    }
}

fn tenants(table: &Table, rules: &Rules) {
    table.units_reserved.reset();
    table.units_held.reset();
    table.budget_remaining.reset();
    let now = crate::clock::now();
    for tenant in rules.tenants.all() {
        let labels = &[tenant.name().as_str()];
        let mut account = tenant.account();
        let (reserved, held) = account.taken();
        table
            .units_reserved
            .with_label_values(labels)
            .set(whole(reserved));
        table.units_held.with_label_values(labels).set(whole(held));
        if let Some(left) = account.remaining(now) {
            let remaining = table.budget_remaining.with_label_values(labels);
            remaining.set(whole(left));
        }
    }
}

fn whole(units: Units) -> i64 {
    i64::try_from(units.0).unwrap_or(i64::MAX)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "counts of slots lie far below it"
)]
fn float(n: usize) -> f64 {
    n as f64
}
