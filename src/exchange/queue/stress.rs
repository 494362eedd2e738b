//! Many requests at once, on several threads: no slot too many, none lost, nobody forgotten. Each request takes its own
//! way through the queue: served, gone before its turn, gone in the very moment of it, out of time.

use super::place::Granted;
use super::pool::PoolQueue;
use super::tests::{MS, Pool, RULES};
use crate::budget::Units;
use crate::config;
use crate::exchange::simulation::Random;
use crate::tenant::Tenant;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::{JoinSet, yield_now};

const REQUESTS: usize = 6000;
const TENANT_SLOTS: [usize; 3] = [2, 3, 1000];
const POOL_SLOTS: usize = 4;

/// How many run at once, of each tenant and of each pool.
#[derive(Default)]
struct Running {
    tenants: [AtomicUsize; 3],
    pools: [AtomicUsize; 2],
}

impl Running {
    fn begin(&self, tenant: usize, pool: usize) {
        let now = self.tenants[tenant].fetch_add(1, Ordering::SeqCst) + 1;
        assert!(now <= TENANT_SLOTS[tenant], "{now} of tenant {tenant} run");
        let now = self.pools[pool].fetch_add(1, Ordering::SeqCst) + 1;
        assert!(now <= POOL_SLOTS, "{now} run in pool {pool}");
    }

    fn end(&self, tenant: usize, pool: usize) {
        self.pools[pool].fetch_sub(1, Ordering::SeqCst);
        self.tenants[tenant].fetch_sub(1, Ordering::SeqCst);
    }
}

/// What became of requests.
#[derive(Default)]
struct Ends {
    served: AtomicUsize,
    left: AtomicUsize,
    timed_out: AtomicUsize,
    refused: AtomicUsize,
}

struct Ground {
    queues: [Arc<PoolQueue>; 2],
    tenants: [Arc<Tenant>; 3],
    running: Running,
    ends: Ends,
}

impl Ground {
    async fn request(&self, seed: usize) {
        let dice = Random::new(seed as u64).next();
        let (tenant, pool) = (seed % 3, seed / 3 % 2);
        let cost = Units(dice >> 16 & 0xfff);
        let Ok(mut place) = self.queues[pool].enter(&self.tenants[tenant], cost) else {
            self.ends.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        for _ in 0..dice >> 32 & 3 {
            yield_now().await;
        }
        if dice >> 40 & 3 == 0 {
            // gone, with slots in hand or without
            drop(place);
            self.ends.left.fetch_add(1, Ordering::Relaxed);
            return;
        }
        match place.granted().await {
            Ok(granted) => self.run(granted, tenant, pool, dice >> 48 & 7).await,
            Err(_) => {
                self.ends.timed_out.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    async fn run(&self, granted: Granted, tenant: usize, pool: usize, turns: u64) {
        self.running.begin(tenant, pool);
        for _ in 0..turns {
            yield_now().await;
        }
        self.running.end(tenant, pool);
        drop(granted);
        self.ends.served.fetch_add(1, Ordering::Relaxed);
    }
}

async fn crowd(rules: config::Queue) -> Arc<Ground> {
    let lines = TENANT_SLOTS.map(|n| format!("max_streams = {n}"));
    let pool = Pool::new(
        POOL_SLOTS,
        Some(rules.clone()),
        &lines.each_ref().map(String::as_str),
    );
    let other = Pool::new(POOL_SLOTS, Some(rules), &[]);
    let ground = Arc::new(Ground {
        queues: [pool.queue.clone(), other.queue.clone()],
        tenants: [0, 1, 2].map(|n| pool.tenant(n).clone()),
        running: Running::default(),
        ends: Ends::default(),
    });
    let mut tasks = JoinSet::new();
    for seed in 0..REQUESTS {
        let ground = ground.clone();
        tasks.spawn(async move { ground.request(seed).await });
        if seed % 64 == 0 {
            yield_now().await;
        }
    }
    let all = async { while tasks.join_next().await.transpose().unwrap().is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), all)
        .await
        .expect("a request waits for a turn that never comes");
    for (pool, name) in [(&pool, "first"), (&other, "second")] {
        assert_eq!((pool.queue.len(), pool.slots.used()), (0, 0), "{name} pool");
        for tenant in ["t0", "t1", "t2"] {
            assert_eq!(pool.gauge(tenant), 0, "{name} pool, {tenant}");
        }
    }
    for tenant in &ground.tenants {
        assert_eq!(tenant.slots().used(), 0, "{}", tenant.name());
    }
    ground
}

fn count(n: &AtomicUsize) -> usize {
    n.load(Ordering::Relaxed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_slot_is_lost_and_nobody_waits_for_ever() {
    let rules = config::Queue {
        max_len: usize::MAX,
        ..RULES
    };
    let ground = crowd(rules).await;
    let ends = &ground.ends;
    assert_eq!((count(&ends.refused), count(&ends.timed_out)), (0, 0));
    assert_eq!(count(&ends.served) + count(&ends.left), REQUESTS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn turns_that_come_as_time_runs_out_are_not_lost() {
    let rules = config::Queue {
        max_wait: MS(1),
        max_len: 100,
    };
    let ground = crowd(rules).await;
    let ends = &ground.ends;
    let all = [&ends.served, &ends.left, &ends.timed_out, &ends.refused].map(count);
    assert_eq!(all.iter().sum::<usize>(), REQUESTS);
    assert!(count(&ends.served) > 0);
    assert!(
        count(&ends.timed_out) + count(&ends.refused) > 0,
        "nobody's time ran out"
    );
}
