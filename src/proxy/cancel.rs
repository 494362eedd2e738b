//! Cancelling by id, for whoever may: a tenant its own, an operator any.

use super::hub::Hub;
use crate::ledger::LedgerError;
use crate::record::{Record, RequestId};
use crate::tenant::TenantName;

/// What a cancel met.
pub enum Cancelled {
    /// It runs, and was asked to stop.
    Asked(Record),
    /// It had ended.
    Ended(Record),
    /// It runs at another gateway of the same ledger, which alone can stop it.
    Elsewhere(Record),
    Unknown,
}

/// How often a request is looked for that is on its way from one place to the other: found open in the ledger, it was just
/// admitted here, or it ends at this moment.
const LOOKS: usize = 3;

/// Asks a request to stop.
pub async fn cancel(
    hub: &Hub,
    tenant: &TenantName,
    id: &RequestId,
) -> Result<Cancelled, LedgerError> {
    let mut found = Cancelled::Unknown;
    for _ in 0..LOOKS {
        if let Some(live) = hub.registry.find(tenant, id) {
            let record = live.cancel();
            return Ok(match record.state.is_terminal() {
                true => Cancelled::Ended(record),
                false => Cancelled::Asked(record),
            });
        }
        match hub.services.ledger.find(tenant, id).await? {
            Some(known) if known.record.state.is_terminal() => {
                return Ok(Cancelled::Ended(known.record));
            }
            Some(known) => found = Cancelled::Elsewhere(known.record),
            None => return Ok(Cancelled::Unknown),
        }
    }
    Ok(found)
}
