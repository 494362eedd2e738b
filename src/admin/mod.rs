//! The admin listener: metrics, health, and an API over what runs. Never on the public one.
//!
//! - `access` who may ask; `answer` how answers are written
//! - `gauges` what metrics are read off at a scrape; `overview` what the API shows

mod access;
mod answer;
mod gauges;
mod overview;

use crate::config;
use crate::ledger::LedgerError;
use crate::ops::Reloading;
use crate::proxy::{self, Cancelled, Hub};
use crate::record::RequestId;
use crate::tenant::TenantName;
use access::Denied;
use answer::{Answer, error, json, text};
use async_trait::async_trait;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use pingora_core::apps::http_app::ServeHttp;
use pingora_core::protocols::http::ServerSession;
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;

pub struct AdminApp {
    hub: Arc<Hub>,
    reload: Arc<dyn Reloading>,
}

/// What is asked for.
enum Asked<'a> {
    Health,
    Readiness,
    Metrics,
    Tenants,
    Pools,
    Requests,
    Cancel { tenant: Cow<'a, str>, id: RequestId },
    Reload,
    WrongMethod(&'static str),
    Nothing,
}

impl<'a> Asked<'a> {
    fn of(method: &Method, path: &'a str) -> Asked<'a> {
        let get = |asked| match *method {
            Method::GET | Method::HEAD => asked,
            _ => Asked::WrongMethod("GET, HEAD"),
        };
        let post = |asked| match *method {
            Method::POST => asked,
            _ => Asked::WrongMethod("POST"),
        };
        match path {
            "/healthz" => get(Asked::Health),
            "/readyz" => get(Asked::Readiness),
            "/metrics" => get(Asked::Metrics),
            "/api/tenants" => get(Asked::Tenants),
            "/api/pools" => get(Asked::Pools),
            "/api/requests" => get(Asked::Requests),
            "/api/reload" => post(Asked::Reload),
            _ => match cancel(path) {
                Some((tenant, id)) => post(Asked::Cancel { tenant, id }),
                None => Asked::Nothing,
            },
        }
    }

    /// Probes carry no token, and what they are told is no secret.
    fn is_open(&self) -> bool {
        matches!(self, Asked::Health | Asked::Readiness)
    }
}

/// `/api/tenants/{tenant}/requests/{id}/cancel`
fn cancel(path: &str) -> Option<(Cow<'_, str>, RequestId)> {
    let rest = path
        .strip_prefix("/api/tenants/")?
        .strip_suffix("/cancel")?;
    let (tenant, id) = rest.split_once("/requests/")?;
    let decoded = |segment| percent_decode_str(segment).decode_utf8().ok();
    Some((decoded(tenant)?, RequestId::parse(&decoded(id)?)?))
}

impl AdminApp {
    pub fn new(hub: Arc<Hub>, reload: Arc<dyn Reloading>) -> AdminApp {
        AdminApp { hub, reload }
    }

    async fn respond(&self, session: &ServerSession) -> Answer {
        let header = session.req_header();
        let asked = Asked::of(&header.method, header.uri.path());
        if !asked.is_open()
            && let Err(denied) = self.check(session)
        {
            return refusal(denied);
        }
        match asked {
            Asked::Health => text(StatusCode::OK, "ok\n"),
            Asked::Readiness => self.readiness(),
            Asked::Metrics => self.metrics(),
            Asked::Tenants => json(StatusCode::OK, &overview::tenants(&self.hub.rules())),
            Asked::Pools => json(StatusCode::OK, &overview::pools(&self.hub.rules())),
            Asked::Requests => json(StatusCode::OK, &overview::requests(&self.hub)),
            Asked::Cancel { tenant, id } => self.cancel(&TenantName::new(&tenant), &id).await,
            Asked::Reload => self.reload().await,
            Asked::WrongMethod(allow) => answer::wrong_method(allow),
            Asked::Nothing => error(
                StatusCode::NOT_FOUND,
                "not_found",
                "there are /metrics, /healthz, /readyz, /api/requests, /api/tenants, /api/pools, /api/reload and /api/tenants/TENANT/requests/ID/cancel here",
            ),
        }
    }

    fn check(&self, session: &ServerSession) -> Result<(), Denied> {
        let rules = self.hub.rules();
        // a reload changes the token of the address that is served; another address needs an upgrade, and what is served
        // until then keeps its token
        let served = self.hub.started.admin.as_ref();
        let reloaded = rules.config.admin.as_ref();
        let same = |a: &&config::Admin| served.is_some_and(|s| s.addr == a.addr);
        let token = reloaded
            .filter(same)
            .or(served)
            .and_then(|a| a.token.as_ref());
        access::check(&session.req_header().headers, token)
    }

    fn readiness(&self) -> Answer {
        if self.hub.drain.is_draining() {
            text(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
        } else if !self.hub.drain.has_started() {
            text(StatusCode::SERVICE_UNAVAILABLE, "starting\n")
        } else {
            text(StatusCode::OK, "ready\n")
        }
    }

    fn metrics(&self) -> Answer {
        gauges::set(&self.hub);
        match self.hub.services.metrics.render() {
            Ok(body) => answer::metrics(body),
            Err(e) => {
                log::error!("metrics cannot be rendered: {e}");
                text(StatusCode::INTERNAL_SERVER_ERROR, "see the error log\n")
            }
        }
    }

    /// 202 where the request runs, 200 where it has ended already; with the record.
    async fn cancel(&self, tenant: &TenantName, id: &RequestId) -> Answer {
        match proxy::cancel(&self.hub, tenant, id).await {
            Ok(Cancelled::Asked(record)) => json(StatusCode::ACCEPTED, &record),
            Ok(Cancelled::Ended(record)) => json(StatusCode::OK, &record),
            Ok(Cancelled::Elsewhere(record)) => error(
                StatusCode::CONFLICT,
                "request_running",
                &format!(
                    "the request runs at the gateway {}; cancel it there",
                    record.node
                ),
            ),
            Ok(Cancelled::Unknown) => error(
                StatusCode::NOT_FOUND,
                "unknown_request",
                &format!("the tenant {tenant} has no request of the id {id}"),
            ),
            Err(e) => unreadable(&e),
        }
    }

    async fn reload(&self) -> Answer {
        if self.hub.drain.is_draining() {
            let why = "the process is draining and takes no other config";
            return error(StatusCode::SERVICE_UNAVAILABLE, "draining", why);
        }
        match self.reload.reload().await {
            Ok(()) => json(StatusCode::OK, &json!({ "reloaded": true })),
            Err(findings) => json(StatusCode::BAD_REQUEST, &json!({ "findings": findings })),
        }
    }
}

fn refusal(denied: Denied) -> Answer {
    match denied {
        Denied::Token => answer::wrong_token(),
        Denied::Elsewhere => error(
            StatusCode::FORBIDDEN,
            "forbidden",
            "without admin.token only this machine is answered: ask by its address or as localhost, and from no other site's page",
        ),
    }
}

fn unreadable(e: &LedgerError) -> Answer {
    log::debug!("{e}");
    error(
        StatusCode::SERVICE_UNAVAILABLE,
        "ledger_unavailable",
        "records cannot be read at the moment; try again shortly",
    )
}

#[async_trait]
impl ServeHttp for AdminApp {
    async fn response(&self, session: &mut ServerSession) -> Answer {
        self.respond(session).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancel_names_tenant_and_request() {
        let found = cancel("/api/tenants/acme/requests/a.b/cancel").unwrap();
        assert_eq!((&*found.0, found.1.as_str()), ("acme", "a.b"));
        let found = cancel("/api/tenants/team%20%C3%BC/requests/a%3Ab/cancel").unwrap();
        assert_eq!((&*found.0, found.1.as_str()), ("team ü", "a:b"));
        for bad in [
            "/api/tenants/acme/requests/a b/cancel",
            "/api/tenants/acme/requests//cancel",
            "/api/tenants/acme/requests/a",
            "/api/tenants/acme/cancel",
        ] {
            assert!(cancel(bad).is_none(), "{bad}");
        }
    }
}
