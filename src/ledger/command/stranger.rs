//! `--tenant` with a name that nobody has: told, rather than answered with nothing.

use super::Failure;
use super::options::Options;
use crate::ledger::error::LedgerError;
use crate::ledger::store::{Books, Filter, Order};
use crate::tenant::TenantName;

/// Names of the config that are told.
const TOLD_MAX: usize = 10;

/// Fails where `--tenant` names none of the config's tenants (`known`) and none that the ledger has anything of.
pub(super) fn refuse(
    books: &dyn Books,
    options: &Options,
    known: &[&TenantName],
) -> Result<(), Failure> {
    let Some(tenant) = &options.tenant else {
        return Ok(());
    };
    if known.contains(&tenant) || has_left_traces(books, tenant)? {
        return Ok(());
    }
    let mut names: Vec<&str> = known.iter().map(|t| t.as_str()).take(TOLD_MAX).collect();
    if known.len() > TOLD_MAX {
        names.push("…");
    }
    Err(Failure::Said(format!(
        "--tenant is {:?}, which neither the config nor the ledger knows; the config has {}",
        tenant.as_str(),
        names.join(", ")
    )))
}

/// Whether it had requests once; the config need not have it any more.
fn has_left_traces(books: &dyn Books, tenant: &TenantName) -> Result<bool, LedgerError> {
    let filter = Filter {
        tenant: Some(tenant.clone()),
        state: None,
    };
    Ok(!books.usage(Some(tenant))?.is_empty()
        || !books.page(&filter, Order::Newest(None), 1)?.is_empty())
}
