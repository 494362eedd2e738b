//! Backends listed in the configuration, by address or by name. Names are resolved anew at each discovery.

use crate::backend::member::Member;
use async_trait::async_trait;
use pingora_core::Result;
use pingora_load_balancing::discovery::ServiceDiscovery;
use pingora_load_balancing::{Backend, Extensions};
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

pub struct Named {
    members: Vec<Arc<Member>>,
    /// What each name resolved to last: a resolver that fails takes no backend away.
    known: Mutex<HashMap<String, Vec<SocketAddr>>>,
}

impl Named {
    pub fn new(members: Vec<Arc<Member>>) -> Named {
        Named {
            members,
            known: Mutex::default(),
        }
    }

    async fn resolve(&self, name: &str) -> Vec<SocketAddr> {
        if let Ok(addr) = name.parse() {
            return vec![addr];
        }
        let found = match tokio::net::lookup_host(name).await {
            Ok(addrs) => addrs.collect(),
            Err(e) => {
                log::warn!("backend {name} does not resolve: {e}; check the name and the resolver");
                Vec::new()
            }
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = known.entry(name.to_owned()).or_default();
        if !found.is_empty() {
            *kept = found;
        }
        kept.clone()
    }
}

#[async_trait]
impl ServiceDiscovery for Named {
    async fn discover(&self) -> Result<(BTreeSet<Backend>, HashMap<u64, bool>)> {
        let mut backends = BTreeSet::new();
        for member in &self.members {
            for addr in self.resolve(&member.addr).await {
                backends.insert(backend(addr, member));
            }
        }
        Ok((backends, HashMap::new()))
    }
}

fn backend(addr: SocketAddr, member: &Arc<Member>) -> Backend {
    let mut ext = Extensions::new();
    ext.insert(member.clone());
    Backend {
        addr: pingora_core::protocols::l4::socket::SocketAddr::Inet(addr),
        weight: usize::try_from(member.weight).unwrap_or(1),
        ext,
    }
}
