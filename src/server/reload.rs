//! Reloading: the whole new configuration comes into force, or nothing of it. Accounts, running streams and open
//! connections are not touched; what cannot change in a running process is named.

use crate::config::{self, Config, Findings, LedgerStore, OnUnknown};
use crate::ops::Reloading;
use crate::proxy::Hub;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::Mutex;

/// Reloads the file that the gateway was started with.
pub struct Reload {
    hub: Arc<Hub>,
    turn: Mutex<()>,
}

impl Reload {
    pub fn new(hub: Arc<Hub>) -> Reload {
        Reload {
            hub,
            turn: Mutex::new(()),
        }
    }
}

#[async_trait]
impl Reloading for Reload {
    async fn reload(&self) -> Result<(), Vec<String>> {
        // one at a time: the later file must be the one that stays
        let _turn = self.turn.lock().await;
        let reloaded = reload(&self.hub).await;
        let Err(findings) = reloaded else {
            log::info!("the config was reloaded");
            return Ok(());
        };
        log::error!("the config was not reloaded, the old one stays in force:");
        let findings: Vec<String> = findings.lines().map(|line| line.to_string()).collect();
        for line in &findings {
            log::error!("{line}");
        }
        Err(findings)
    }
}

/// Reads the file anew and puts it in force.
pub async fn reload(hub: &Hub) -> Result<(), Findings> {
    let before = hub.rules();
    let file = before.config.file.clone();
    // a disk, or a pipe in the file's place, may take its time
    let config = match tokio::task::spawn_blocking(move || config::load(&file)).await {
        Ok(loaded) => loaded?,
        Err(e) => match e.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // cancelled: the runtime goes down
            Err(_) => std::future::pending().await,
        },
    };
    for line in &config.not_in_effect {
        log::warn!("{line}");
    }
    for key in fixed(&hub.started, &config) {
        log::warn!(
            "{key} has changed: it needs an upgrade, until then the old value stays in force"
        );
    }
    let metrics = hub.services.metrics.clone();
    let rules = super::rules(config, &hub.holdings, &metrics, Some(&before)).await;
    let config = &rules.config;
    log::set_max_level(config.log.level);
    hub.services.ledger.configure(&config.ledger);
    let counted = config.ledger.on_unknown == OnUnknown::ChargeCounted;
    hub.services.checkpoints.store(counted, Ordering::Relaxed);
    hub.set_rules(rules);
    Ok(())
}

/// The keys that differ and that a running process cannot change.
fn fixed(before: &Config, after: &Config) -> Vec<&'static str> {
    let listeners = |c: &Config| {
        c.listen
            .iter()
            .map(|l| format!("{l:?}"))
            .collect::<Vec<_>>()
    };
    let admin = |c: &Config| c.admin.as_ref().map(|a| a.addr.clone());
    let store = |c: &Config| match &c.ledger.store {
        LedgerStore::Sqlite(file) => file.display().to_string(),
        LedgerStore::Postgres(url) => url.expose().to_owned(),
    };
    let (old, new) = (&before.server, &after.server);
    let differs = [
        ("listen", listeners(before) != listeners(after)),
        ("admin.addr", admin(before) != admin(after)),
        ("server.threads", old.threads != new.threads),
        ("server.data_dir", old.data_dir != new.data_dir),
        ("server.pid_file", old.pid_file != new.pid_file),
        ("server.upgrade_sock", old.upgrade_sock != new.upgrade_sock),
        (
            "server.socket_buffer",
            old.socket_buffer != new.socket_buffer,
        ),
        (
            "server.max_body_memory",
            old.max_body_memory != new.max_body_memory,
        ),
        (
            "server.drain_timeout",
            old.drain_timeout != new.drain_timeout,
        ),
        (
            "server.timeouts.header",
            old.timeouts.header != new.timeouts.header,
        ),
        (
            "server.timeouts.keepalive",
            old.timeouts.keepalive != new.timeouts.keepalive,
        ),
        ("ledger.url", store(before) != store(after)),
        ("log.access", before.log.access != after.log.access),
        ("log.error", before.log.error != after.log.error),
        ("log.format", before.log.format != after.log.format),
    ];
    differs
        .into_iter()
        .filter_map(|(key, differs)| differs.then_some(key))
        .collect()
}
