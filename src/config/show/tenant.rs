//! `[[tenant]]`, shown.

use super::super::tenant::hex;
use super::super::words::Word;
use super::super::{Budget, KeyHash, ModelSet, Tenant};
use super::text::{Document, Shown};
use super::{REDACTED, UNLIMITED};

/// A key shows its hash where that stands in the file, and nothing where the key itself came from elsewhere.
pub(super) fn show(doc: &mut Document, t: &Tenant, unlisted: &[KeyHash]) {
    let key = |key: &KeyHash| {
        if unlisted.contains(key) {
            return Shown::from(REDACTED);
        }
        Shown::table([("sha256", hex(key).into())])
    };
    doc.header("[[tenant]]");
    doc.key("name", t.name.as_str());
    doc.key("keys", Shown::list(t.keys.iter().map(key)));
    doc.key("anonymous", t.anonymous);
    doc.key("priority", t.priority.word());
    doc.key("weight", t.weight);
    doc.option("max_streams", t.max_streams, UNLIMITED);
    doc.option("max_queued", t.max_queued, UNLIMITED);
    doc.option("requests_per_minute", t.requests_per_minute, UNLIMITED);
    doc.option(
        "units_per_minute",
        t.units_per_minute.map(|u| u.0),
        UNLIMITED,
    );
    doc.option("budget", t.budget.map(budget), UNLIMITED);
    doc.option(
        "max_output_units",
        t.max_output_units.map(|u| u.0),
        UNLIMITED,
    );
    doc.key("clamp", t.clamp);
    doc.key("charge_cancelled", t.charge_cancelled.word());
    match &t.models {
        ModelSet::All => doc.key("models", Shown::list(["*"])),
        ModelSet::Named(models) => doc.key("models", Shown::list(models)),
    }
}

fn budget(b: Budget) -> Shown {
    Shown::table([
        ("units", b.units.0.into()),
        ("period", b.period.word().into()),
    ])
}
