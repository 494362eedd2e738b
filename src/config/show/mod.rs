//! The effective configuration as TOML: every key with its value, defaults included, secrets redacted.

mod pool;
mod route;
mod tenant;
mod text;
mod upstream;

use super::values::{show_duration, show_size};
use super::words::Word;
use super::{
    Admin, Cluster, Config, Ledger, LedgerStore, Listen, ListenAddr, Log, LogTarget, MaxHeaders,
    Network, Secret, Server, ServerCert, ServerTimeouts, Shed,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use text::{Document, Shown};

const OFF: &str = "off";
const UNLIMITED: &str = "unlimited";
const NONE: &str = "none";
const REDACTED: &str = "[redacted]";

/// The configuration as a file that says everything. What is off or unlimited has no value: a comment says so.
pub fn show(config: &Config) -> String {
    let mut doc = Document::default();
    server(&mut doc, &config.server);
    config.listen.iter().for_each(|l| listen(&mut doc, l));
    config.admin.iter().for_each(|a| admin(&mut doc, a));
    log(&mut doc, &config.log);
    ledger(&mut doc, &config.ledger);
    for tenant in &config.tenants {
        tenant::show(&mut doc, tenant, &config.unlisted_keys);
    }
    config.pools.iter().for_each(|p| pool::show(&mut doc, p));
    config.routes.iter().for_each(|r| route::show(&mut doc, r));
    config.shed.iter().for_each(|s| shed(&mut doc, s));
    config.cluster.iter().for_each(|c| cluster(&mut doc, c));
    doc.finish()
}

fn server(doc: &mut Document, s: &Server) {
    let MaxHeaders { count, size } = s.max_headers;
    let ServerTimeouts {
        header,
        body,
        keepalive,
    } = s.timeouts;
    doc.header("[server]");
    doc.key("threads", s.threads);
    doc.key("pid_file", path(&s.pid_file));
    doc.key("upgrade_sock", path(&s.upgrade_sock));
    doc.key("data_dir", path(&s.data_dir));
    doc.key("drain_timeout", time(s.drain_timeout));
    doc.key("max_body", show_size(s.max_body));
    doc.key("max_body_memory", show_size(s.max_body_memory));
    doc.key(
        "trusted_proxies",
        Shown::list(s.trusted_proxies.iter().map(network)),
    );
    doc.key("max_connections", s.max_connections);
    let headers = [("count", count.into()), ("size", show_size(size).into())];
    doc.key("max_headers", Shown::table(headers));
    doc.key("socket_buffer", show_size(s.socket_buffer));
    let timeouts = [("header", header), ("body", body), ("keepalive", keepalive)];
    doc.key("timeouts", times(timeouts));
}

fn listen(doc: &mut Document, l: &Listen) {
    doc.header("[[listen]]");
    match &l.addr {
        ListenAddr::Tcp(addr) => doc.key("addr", addr),
        ListenAddr::Unix(socket) => doc.key("addr", format!("unix:{}", socket.display())),
    }
    if l.tls.is_empty() {
        for key in ["tls", "tls_min", "client_ca", "client_auth", "h2"] {
            doc.option(key, None::<Shown>, OFF);
        }
    } else {
        tls(doc, l);
    }
    doc.key("h2c", l.h2c);
    doc.key("proxy_protocol", l.proxy_protocol);
}

fn tls(doc: &mut Document, l: &Listen) {
    let cert = |c: &ServerCert| {
        let sni = c.sni.as_ref().map(Shown::from);
        let (cert, key) = (path(&c.cert), path(&c.key));
        Shown::some_of([
            ("sni", sni),
            ("cert", Some(cert.into())),
            ("key", Some(key.into())),
        ])
    };
    doc.key("tls", Shown::list(l.tls.iter().map(cert)));
    doc.key("tls_min", l.tls_min.word());
    doc.option("client_ca", optional_path(l.client_ca.as_ref()), OFF);
    let auth = l.client_ca.as_ref().map(|_| l.client_auth.word());
    doc.option("client_auth", auth, OFF);
    doc.key("h2", l.h2);
}

fn admin(doc: &mut Document, a: &Admin) {
    doc.header("[admin]");
    doc.key("addr", &a.addr);
    doc.option("token", a.token.as_ref().map(redacted), NONE);
}

fn log(doc: &mut Document, l: &Log) {
    doc.header("[log]");
    doc.key("access", log_target(&l.access));
    doc.key("error", log_target(&l.error));
    doc.key("format", l.format.word());
    doc.key("level", l.level.word());
}

fn log_target(target: &LogTarget) -> String {
    match target {
        LogTarget::Stdout => "stdout".to_owned(),
        LogTarget::Stderr => "stderr".to_owned(),
        LogTarget::Off => "off".to_owned(),
        LogTarget::File(file) => path(file),
    }
}

fn ledger(doc: &mut Document, l: &Ledger) {
    doc.header("[ledger]");
    match &l.store {
        LedgerStore::Sqlite(file) => doc.key("url", format!("sqlite:{}", file.display())),
        LedgerStore::Postgres(url) => doc.key("url", redacted(url)),
    }
    doc.key("durability", l.durability.word());
    doc.key("on_error", l.on_error.word());
    doc.key("on_unknown", l.on_unknown.word());
    doc.key("retention", time(l.retention));
}

fn shed(doc: &mut Document, s: &Shed) {
    doc.header("[shed]");
    doc.key("queue_wait", time(s.queue_wait));
    doc.key("loop_lag", time(s.loop_lag));
    doc.key("fd_headroom", s.fd_headroom);
}

fn cluster(doc: &mut Document, c: &Cluster) {
    doc.header("[cluster]");
    doc.key("redis", redacted(&c.redis));
    doc.key("node", &c.node);
    doc.option("advertise", c.advertise.as_ref(), NONE);
    doc.key("on_failure", c.on_failure.word());
}

fn network(n: &Network) -> String {
    format!("{}/{}", n.address, n.prefix)
}

fn redacted(_: &Secret) -> &'static str {
    REDACTED
}

fn path(path: &Path) -> String {
    path.display().to_string()
}

fn optional_path(given: Option<&PathBuf>) -> Option<String> {
    given.map(|given| path(given))
}

fn time(duration: Duration) -> String {
    show_duration(duration)
}

fn times<const N: usize>(times: [(&str, Duration); N]) -> Shown {
    Shown::table(times.map(|(key, duration)| (key, time(duration).into())))
}
