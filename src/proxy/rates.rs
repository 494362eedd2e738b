//! What every answer tells a client of its tenant's rates.

use super::context::Ctx;
use crate::api::ratelimit::{self, Rates};
use crate::clock;
use crate::record::Api;
use pingora_core::Result;
use pingora_http::ResponseHeader;

/// Adds the headers of the rates that the tenant has. Those that an upstream sent give way to them, all at once.
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
    let told = ratelimit::headers(api, &rates, clock::now());
    if !told.is_empty() {
        // an upstream's are those of another account
        ratelimit::NAMES.iter().flatten().for_each(|name| {
            header.remove_header(*name);
        });
    }
    for (name, value) in told {
        header.insert_header(name, value)?;
    }
    Ok(())
}
