//! `[[tenant]]`: who asks, with which keys, and how much.

use super::reader::{Reader, Table, Value};
use super::secrets::key;
use super::unique::Unique;
use super::values::{count, flag, name, text, word};
use super::{Budget, ChargeCancelled, KeyHash, ModelSet, Period, Priority, Tenant};
use crate::budget::Units;
use crate::tenant::TenantName;
use std::cell::RefCell;
use std::ops::RangeInclusive;

/// What may stand only once over all tenants.
pub(super) struct Seen<'r> {
    names: Unique<'r>,
    keys: Unique<'r>,
    anonymous: Unique<'r>,
    /// Keys that do not stand in the file as hashes.
    pub unlisted: RefCell<Vec<KeyHash>>,
}

impl<'r> Seen<'r> {
    pub fn new(reader: &'r Reader<'r>) -> Seen<'r> {
        Seen {
            names: Unique::new(reader, "each tenant has its own name"),
            keys: Unique::new(reader, "a key opens one tenant, once"),
            anonymous: Unique::new(reader, "one tenant at most is anonymous"),
            unlisted: RefCell::default(),
        }
    }

    fn key(&self, v: &Value) -> Option<KeyHash> {
        let key = key(v)?;
        self.keys.claim_hidden(v, &hex(&key.hash));
        if !key.listed {
            self.unlisted.borrow_mut().push(key.hash);
        }
        Some(key.hash)
    }
}

pub(super) fn read(t: &Table, seen: &Seen) -> Tenant {
    let anonymous = t.value("anonymous", |v| {
        let anonymous = flag(v)?;
        if anonymous {
            seen.anonymous.claim(v, "");
        }
        Some(anonymous)
    });
    if !t.has("keys") && anonymous != Some(true) {
        t.missing(
            "keys",
            "the tenant's keys, or anonymous = true (as it is, nobody can be this tenant)",
        );
    }
    Tenant {
        name: TenantName::new(&tenant_name(t, seen)),
        keys: t.list("keys", |v| seen.key(v)),
        anonymous: anonymous.unwrap_or(false),
        priority: t.value("priority", word).unwrap_or(Priority::Normal),
        weight: t.value("weight", count(1..=1_000_000)).unwrap_or(1),
        max_streams: t.value("max_streams", count(SOME)),
        max_queued: t.value("max_queued", count(0..=u64::MAX)),
        requests_per_minute: t.value("requests_per_minute", count(SOME)),
        units_per_minute: t.value("units_per_minute", units(SOME)),
        budget: t.table("budget", budget),
        max_output_units: t.value("max_output_units", units(CAP)),
        clamp: t.value("clamp", flag).unwrap_or(false),
        charge_cancelled: t
            .value("charge_cancelled", word)
            .unwrap_or(ChargeCancelled::Generated),
        models: t.value("models", models).unwrap_or(ModelSet::All),
    }
}

pub(super) const SOME: RangeInclusive<u64> = 1..=u64::MAX;
/// A cap on one request's output.
pub(super) const CAP: RangeInclusive<u64> = 1..=Units::BELIEVABLE_MAX.0;

pub(super) fn units(range: RangeInclusive<u64>) -> impl Fn(&Value) -> Option<Units> {
    move |v| count(range.clone())(v).map(Units)
}

/// The hash as the file writes it.
pub(super) fn hex(hash: &KeyHash) -> String {
    hash.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn tenant_name(t: &Table, seen: &Seen) -> String {
    let name = t.required("name", "the tenant's name", |v| {
        let name = name(v)?;
        seen.names.claim(v, &name);
        Some(name)
    });
    name.unwrap_or_default()
}

/// A budget of 0 units stops a tenant that spends.
fn budget(t: &Table) -> Budget {
    let wanted = "the units of one period";
    let units = t.required("units", wanted, units(0..=u64::MAX));
    let period = t.required("period", "\"hour\", \"day\", \"month\" or \"total\"", word);
    Budget {
        units: units.unwrap_or_default(),
        period: period.unwrap_or(Period::Total),
    }
}

fn models(v: &Value) -> Option<ModelSet> {
    let models = v.list(text)?;
    if !models.iter().any(|m| m == "*") {
        return Some(ModelSet::Named(models));
    }
    if models.len() > 1 {
        v.refuse_because("\"*\" is every model: let it stand alone, or name the models");
    }
    Some(ModelSet::All)
}
