//! What a gateway does on its own, now and then: look up backends that are listed by name.

use crate::proxy::Hub;
use async_trait::async_trait;
use pingora_core::server::ShutdownWatch;
use pingora_core::services::background::BackgroundService;
use std::sync::Arc;
use std::time::Duration;

const RESOLVE_EVERY: Duration = Duration::from_secs(5);

pub struct Housekeeping {
    hub: Arc<Hub>,
}

impl Housekeeping {
    pub fn new(hub: Arc<Hub>) -> Housekeeping {
        Housekeeping { hub }
    }
}

#[async_trait]
impl BackgroundService for Housekeeping {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            tokio::select! {
                _ = shutdown.changed() => return,
                () = tokio::time::sleep(RESOLVE_EVERY) => {}
            }
            for pool in self.hub.rules().pools.all() {
                if pool.has_names() {
                    pool.refresh().await;
                }
            }
        }
    }
}
