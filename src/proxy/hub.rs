//! What all requests share: the rules in force, what runs, and where things are reported to.

use super::bodies::BodyMemory;
use crate::backend::Pools;
use crate::config::Config;
use crate::exchange::{Registry, Services};
use crate::ops::Drain;
use crate::tenant::{Directory, Holdings};
use arc_swap::ArcSwap;
use std::sync::Arc;

/// What a configuration turns into. A request keeps the rules it was admitted by.
pub struct Rules {
    pub config: Config,
    pub tenants: Arc<Directory>,
    pub pools: Pools,
}

pub struct Hub {
    rules: ArcSwap<Rules>,
    pub holdings: Arc<Holdings>,
    /// What the process was started with: some of it stays until it ends.
    pub started: Config,
    pub services: Arc<Services>,
    pub registry: Arc<Registry>,
    pub drain: Arc<Drain>,
    /// What holds the bodies of all requests.
    pub bodies: Arc<BodyMemory>,
    /// What records call this process' machine.
    pub node: String,
}

impl Hub {
    pub fn new(rules: Rules, services: Arc<Services>, holdings: Arc<Holdings>) -> Hub {
        let node = match &rules.config.cluster {
            Some(cluster) => cluster.node.clone(),
            None => host_name(),
        };
        Hub {
            bodies: BodyMemory::new(rules.config.server.max_body_memory),
            services,
            holdings,
            started: rules.config.clone(),
            registry: Arc::new(Registry::default()),
            drain: Arc::new(Drain::default()),
            node,
            rules: ArcSwap::from_pointee(rules),
        }
    }

    pub fn rules(&self) -> Arc<Rules> {
        self.rules.load_full()
    }

    /// Puts other rules in force. Requests that run keep theirs.
    pub fn set_rules(&self, rules: Rules) {
        self.rules.store(Arc::new(rules));
    }
}

fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .unwrap_or_else(|_| "localhost".to_owned())
}
