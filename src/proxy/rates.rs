//! What every answer tells a client of its tenant's rates.

use super::context::Ctx;
use crate::api::ratelimit::{self, Rates};
use crate::clock;
use crate::record::Api;
use pingora_core::Result;
use pingora_http::ResponseHeader;

/// Adds the headers of the rates that the tenant has. Those of the same name that an upstream sent give way.
pub fn tell(ctx: &Ctx, header: &mut ResponseHeader) -> Result<()> {
    let Some(tenant) = &ctx.tenant else {
        return Ok(());
    };
    let now = clock::instant();
    let rates = Rates {
        requests: tenant.request_rate().state(now),
        units: tenant.unit_rate().state(now),
    };
    let api = ctx.call.map_or(Api::Native, |call| call.api());
    for (name, value) in ratelimit::headers(api, &rates, clock::now()) {
        header.insert_header(name, value)?;
    }
    Ok(())
}
