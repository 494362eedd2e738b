//! The admin listener: metrics and health, never on the public one.

use crate::ops;
use crate::proxy::Hub;
use async_trait::async_trait;
use http::{Method, Response, StatusCode};
use pingora_core::apps::http_app::ServeHttp;
use pingora_core::protocols::http::ServerSession;
use std::sync::Arc;

pub struct AdminApp {
    hub: Arc<Hub>,
}

impl AdminApp {
    pub fn new(hub: Arc<Hub>) -> AdminApp {
        AdminApp { hub }
    }

    fn respond(&self, session: &ServerSession) -> Response<Vec<u8>> {
        let header = session.req_header();
        if !matches!(header.method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "this path takes GET\n");
        }
        if !self.is_allowed(session) {
            return text(
                StatusCode::UNAUTHORIZED,
                "the admin token is missing or wrong; send `Authorization: Bearer TOKEN`\n",
            );
        }
        match header.uri.path() {
            "/healthz" => text(StatusCode::OK, "ok\n"),
            "/readyz" if self.hub.drain.is_draining() => {
                text(StatusCode::SERVICE_UNAVAILABLE, "draining\n")
            }
            "/readyz" if !self.hub.drain.has_started() => {
                text(StatusCode::SERVICE_UNAVAILABLE, "starting\n")
            }
            "/readyz" => text(StatusCode::OK, "ready\n"),
            "/metrics" => self.metrics(),
            _ => text(
                StatusCode::NOT_FOUND,
                "there are /metrics, /healthz and /readyz here\n",
            ),
        }
    }

    /// Health is for probes, which carry no token.
    fn is_allowed(&self, session: &ServerSession) -> bool {
        let path = session.req_header().uri.path();
        let rules = self.hub.rules();
        let token = rules.config.admin.as_ref().and_then(|a| a.token.as_ref());
        match token {
            Some(token) if !matches!(path, "/healthz" | "/readyz") => {
                let wanted = format!("Bearer {}", token.expose());
                let shown = session.get_header_bytes("authorization");
                same(shown, wanted.as_bytes())
            }
            _ => true,
        }
    }

    fn metrics(&self) -> Response<Vec<u8>> {
        self.gauge();
        match self.hub.services.metrics.render() {
            Ok(body) => response(
                StatusCode::OK,
                "text/plain; version=0.0.4; charset=utf-8",
                body,
            ),
            Err(e) => {
                log::error!("metrics cannot be rendered: {e}");
                text(StatusCode::INTERNAL_SERVER_ERROR, "see the error log\n")
            }
        }
    }

    /// Gauges that are read off what they describe, at the moment of the scrape.
    fn gauge(&self) {
        let table = &self.hub.services.metrics.table;
        let rules = self.hub.rules();
        table.open_fds.set(ops::open_fds());
        // a pool, backend or tenant that a reload took away leaves no series behind
        table.slots.reset();
        table.slots_max.reset();
        table.backend_up.reset();
        table.units_reserved.reset();
        table.units_held.reset();
        table.budget_remaining.reset();
        for pool in rules.pools.all() {
            let name = pool.rules.name.as_str();
            table
                .slots
                .with_label_values(&[name])
                .set(signed(pool.slots.used()));
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
        let now = crate::clock::now();
        for tenant in rules.tenants.all() {
            let name = tenant.name().as_str();
            let mut account = tenant.account();
            let sums = account.sums(now);
            let units = |u: crate::budget::Units| i64::try_from(u.0).unwrap_or(i64::MAX);
            table
                .units_reserved
                .with_label_values(&[name])
                .set(units(sums.reserved));
            table
                .units_held
                .with_label_values(&[name])
                .set(units(sums.held));
            if let Some(left) = account.remaining(now) {
                table
                    .budget_remaining
                    .with_label_values(&[name])
                    .set(units(left));
            }
        }
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "counts of slots lie far below it"
)]
fn float(n: usize) -> f64 {
    n as f64
}

fn signed(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Compared in a time that depends on the lengths alone.
fn same(shown: &[u8], wanted: &[u8]) -> bool {
    shown.len() == wanted.len()
        && shown
            .iter()
            .zip(wanted)
            .fold(0, |differs, (a, b)| differs | (a ^ b))
            == 0
}

fn text(status: StatusCode, body: &str) -> Response<Vec<u8>> {
    response(status, "text/plain; charset=utf-8", body.into())
}

fn response(status: StatusCode, content_type: &str, body: Vec<u8>) -> Response<Vec<u8>> {
    let length = body.len();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Ok(value) = http::HeaderValue::from_str(content_type) {
        headers.insert(http::header::CONTENT_TYPE, value);
    }
    headers.insert(http::header::CONTENT_LENGTH, length.into());
    response
}

#[async_trait]
impl ServeHttp for AdminApp {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        self.respond(session)
    }
}
