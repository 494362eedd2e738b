//! `ledger reconcile FILE`: settles what awaits its bill, and says what the bill and the ledger do not agree on.

use super::Failure;
use crate::ledger::store::{BillLine, Books, Settlement};
use std::io::Write;

/// How many lines of the bill came to what.
#[derive(Debug, Default)]
struct Tally {
    reconciled: u64,
    already: u64,
    known: u64,
    unsettled: u64,
    failed: u64,
}

pub(super) fn run(
    books: &mut dyn Books,
    bill: &[BillLine],
    dry: bool,
    out: &mut dyn Write,
) -> Result<u8, Failure> {
    let settlements = books.reconcile(bill, dry)?;
    let mut tally = Tally::default();
    for (line, settlement) in bill.iter().zip(&settlements) {
        tally.count(settlement);
        if let Some(words) = words(line, settlement, dry) {
            writeln!(out, "line {}: {}: {words}", line.line, name(line))?;
        }
    }
    let done = if dry {
        "would be reconciled"
    } else {
        "reconciled"
    };
    writeln!(
        out,
        "{} {done}, {} were before, {} known without a bill, {} still running, {} not matched{}",
        tally.reconciled,
        tally.already,
        tally.known,
        tally.unsettled,
        tally.failed,
        if dry { "; nothing was changed" } else { "" },
    )?;
    Ok(u8::from(tally.failed > 0))
}

impl Tally {
    fn count(&mut self, settlement: &Settlement) {
        let place = match settlement {
            Settlement::Reconciled { .. } => &mut self.reconciled,
            Settlement::Already => &mut self.already,
            Settlement::Known { .. } => &mut self.known,
            Settlement::Running => &mut self.unsettled,
            Settlement::AlreadyOtherwise { .. }
            | Settlement::NotFound
            | Settlement::Ambiguous(_)
            | Settlement::Unreadable(_) => &mut self.failed,
        };
        *place += 1;
    }
}

fn name(line: &BillLine) -> String {
    match &line.tenant {
        Some(tenant) => format!("{} of {tenant}", line.id),
        None => line.id.to_string(),
    }
}

/// What there is to say of a line; nothing where bill and ledger agree already.
fn words(line: &BillLine, settlement: &Settlement, dry: bool) -> Option<String> {
    let units = line.units;
    let words = match settlement {
        Settlement::Reconciled { before, held } => {
            let verb = if dry { "would be charged" } else { "charged" };
            format!("{verb} {units} units (charged {before} and held {held} before)")
        }
        Settlement::Already => return None,
        Settlement::Known { charged } if *charged == units => return None,
        Settlement::Known { charged } => {
            format!("charged {charged} units by known usage, the bill says {units}; not changed")
        }
        Settlement::AlreadyOtherwise { charged } => {
            format!("reconciled before with {charged} units, the bill says {units}; not changed")
        }
        Settlement::Running => "still running; not changed".into(),
        Settlement::NotFound => "no entry has this id".into(),
        Settlement::Ambiguous(tenants) => {
            let tenants: Vec<&str> = tenants.iter().map(|t| t.as_str()).collect();
            let tenants = tenants.join(", ");
            format!(
                "several tenants have this id ({tenants}), name one in a column tenant or with --tenant"
            )
        }
        Settlement::Unreadable(error) => error.to_string(),
    };
    Some(words)
}
