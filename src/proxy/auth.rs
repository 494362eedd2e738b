//! From a request's headers to its tenant.

use super::context::Ctx;
use super::refuse::Refusal;
use crate::api::Code;
use crate::tenant::Tenant;
use http::HeaderMap;
use std::sync::Arc;

/// Finds the tenant by the key shown: `Authorization: Bearer KEY`, else `x-api-key: KEY`. `Authorization` wins where
/// both stand. A request that shows no key at all is the anonymous tenant's, where there is one.
pub fn authenticate(ctx: &mut Ctx, headers: &HeaderMap) -> Result<Arc<Tenant>, Refusal> {
    let key = shown_key(headers)?;
    let tenant = ctx
        .rules
        .tenants
        .find(key)
        .cloned()
        .ok_or_else(|| match key {
            Some(_) => invalid("the API key is not known here; check it for typing errors"),
            None => invalid(
                "no API key was sent; send it as `Authorization: Bearer KEY` or `x-api-key: KEY`",
            ),
        })?;
    ctx.tenant = Some(tenant.clone());
    Ok(tenant)
}

fn shown_key(headers: &HeaderMap) -> Result<Option<&[u8]>, Refusal> {
    if headers.get_all("authorization").iter().nth(1).is_some() {
        return Err(Refusal::new(
            Code::InvalidRequest,
            "two Authorization headers were sent; send one",
        ));
    }
    if let Some(value) = headers.get("authorization") {
        return match bearer(value.as_bytes()) {
            Some(key) => Ok(Some(key)),
            None => Err(invalid(
                "the Authorization header is not of the form `Bearer KEY`",
            )),
        };
    }
    Ok(headers.get("x-api-key").map(|v| v.as_bytes()))
}

/// The scheme's name is read without regard to case (RFC 9110, section 11.1).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(6)?;
    let key = rest.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer") && rest.first() == Some(&b' ') && !key.is_empty())
        .then_some(key)
}

fn invalid(message: &str) -> Refusal {
    Refusal::new(Code::InvalidApiKey, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_key_is_a_key() {
        assert_eq!(bearer(b"Bearer sk-1"), Some(&b"sk-1"[..]));
        assert_eq!(bearer(b"bearer  sk-1 "), Some(&b"sk-1"[..]));
        for bad in [&b"Bearer"[..], b"Bearer ", b"Basic x", b"Bearersk-1", b""] {
            assert_eq!(bearer(bad), None, "{bad:?}");
        }
    }
}
