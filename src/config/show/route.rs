//! `[[route]]`, shown.

use super::super::values::show_size;
use super::super::words::Word;
use super::super::{Cors, ProxyRoute, Route, RouteKind};
use super::text::{Document, Shown};
use super::upstream::{backends, headers, timeouts, tls};
use super::{NONE, OFF, path, time};

pub(super) fn show(doc: &mut Document, r: &Route) {
    doc.header("[[route]]");
    doc.option("scheme", r.scheme.as_ref(), "any");
    doc.option("host", r.host.as_ref(), "any");
    doc.key("path", &r.path);
    match &r.kind {
        RouteKind::Llm => doc.key("kind", "llm"),
        RouteKind::Proxy(p) => proxy(doc, p),
        RouteKind::Static { root, index } => {
            doc.key("kind", "static");
            doc.key("root", path(root));
            doc.key("index", index);
        }
        RouteKind::Redirect { to, status } => {
            doc.key("kind", "redirect");
            doc.key("to", to);
            doc.key("status", *status);
        }
    }
    doc.key("response_headers", headers(&r.response_headers));
    doc.option("cors", r.cors.as_ref().map(cors), OFF);
    doc.option("max_body", r.max_body.map(show_size), NONE);
}

fn proxy(doc: &mut Document, p: &ProxyRoute) {
    doc.key("kind", "proxy");
    doc.key("backends", backends(&p.backends));
    doc.key("balance", p.balance.word());
    doc.option("tls", p.tls.as_ref().map(tls), OFF);
    doc.key("h2", p.h2);
    doc.option("strip_prefix", p.strip_prefix.as_ref(), NONE);
    doc.key("request_headers", headers(&p.request_headers));
    doc.key("websocket", p.websocket);
    doc.key("timeouts", timeouts(&p.timeouts));
}

fn cors(c: &Cors) -> Shown {
    Shown::table([
        ("origins", Shown::list(&c.origins)),
        ("max_age", time(c.max_age).into()),
    ])
}
