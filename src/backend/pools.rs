//! All pools, and which of them serves a model.

use super::pool::Pool;
use crate::config::Config;
use crate::metrics::Metrics;
use std::sync::Arc;

pub struct Pools {
    pools: Vec<Arc<Pool>>,
    /// Those that a reload took away and that something still runs in: one that comes back finds it counted.
    gone: Vec<Arc<Pool>>,
}

impl Pools {
    /// The pools of a configuration; `before` are those of the one it takes the place of.
    pub async fn start(config: &Config, before: Option<&Pools>, metrics: &Metrics) -> Pools {
        let before: Vec<_> =
            before.map_or_else(Vec::new, |b| b.pools.iter().chain(&b.gone).collect());
        let mut pools = Vec::with_capacity(config.pools.len());
        for rules in &config.pools {
            let same = before.iter().find(|p| p.rules.name == rules.name);
            let (shed, same) = (config.shed.as_ref(), same.map(|p| p.as_ref()));
            pools.push(Arc::new(Pool::start(rules, shed, same, metrics).await));
        }
        let is_gone = |p: &Pool| config.pools.iter().all(|rules| rules.name != p.rules.name);
        let gone = before.into_iter().filter(|p| p.is_used() && is_gone(p));
        Pools {
            gone: gone.cloned().collect(),
            pools,
        }
    }

    /// Puts the bounds of all in force.
    pub fn put_in_force(&self) {
        self.pools.iter().for_each(|p| p.put_in_force());
    }

    /// The pool that serves a model by its public name.
    pub fn by_model(&self, public: &str) -> Option<&Arc<Pool>> {
        self.pools
            .iter()
            .find(|p| p.upstream_model(public).is_some())
    }

    pub fn all(&self) -> &[Arc<Pool>] {
        &self.pools
    }

    /// Every public model name, each once, in the order of the configuration.
    pub fn models(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for model in self.pools.iter().flat_map(|p| &p.rules.models) {
            if !names.contains(&model.public.as_str()) {
                names.push(model.public.as_str());
            }
        }
        names
    }
}
