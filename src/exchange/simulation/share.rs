//! What tenants get of a pool that never has enough for all of them.

use super::random::Random;
use crate::budget::Units;
use crate::clock::{self, Timestamp, still::Still};
use crate::config;
use crate::exchange::{Granted, Place, PoolQueue};
use crate::metrics::Metrics;
use crate::slots::Slots;
use crate::tenant::{Directory, Holdings};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A tenant that always has requests waiting.
struct Greedy {
    weight: u64,
    /// What its requests cost, from and to.
    cost: (u64, u64),
    waiting: VecDeque<(Place, u64)>,
    served: u64,
}

struct Contest {
    clock: Still,
    random: Random,
    tenants: Directory,
    queue: Arc<PoolQueue>,
    greedy: Vec<Greedy>,
    running: BinaryHeap<Reverse<(Timestamp, u64)>>,
    granted: Vec<Option<Granted>>,
}

const BACKLOG: usize = 6;

impl Contest {
    fn new(seed: u64, slots: usize, greedy: &[(u64, (u64, u64))]) -> Contest {
        let mut text =
            "[[listen]]\naddr = \"127.0.0.1:1\"\n[[pool]]\nname = \"p\"\nmodels = [\"m\"]\n\
            backends = [{ addr = \"127.0.0.1:2\" }]\n"
                .to_owned();
        for (n, (weight, _)) in greedy.iter().enumerate() {
            text += &format!(
                "[[tenant]]\nname = \"t{n}\"\nkeys = [{{ sha256 = \"{n:064x}\" }}]\nweight = {weight}\n"
            );
        }
        let config = config::parse(&text, std::path::Path::new("/x/t.toml")).unwrap();
        let rules = config::Queue {
            max_wait: Duration::MAX / 2,
            max_len: usize::MAX,
        };
        let clock = Still::at(Timestamp(1_700_000_000_000_000));
        let slots = Slots::new(Some(slots));
        let metrics = Metrics::new().unwrap();
        Contest {
            clock,
            random: Random::new(seed),
            tenants: Directory::new(&config.tenants, &Holdings::default()),
            queue: PoolQueue::new("p", slots, Some(rules), &metrics),
            greedy: greedy
                .iter()
                .map(|(weight, cost)| Greedy {
                    weight: *weight,
                    cost: *cost,
                    waiting: VecDeque::new(),
                    served: 0,
                })
                .collect(),
            running: BinaryHeap::new(),
            granted: Vec::new(),
        }
    }

    /// Everybody lines up again, and whose turn it is runs.
    fn turn(&mut self) {
        for (greedy, tenant) in self.greedy.iter_mut().zip(self.tenants.all()) {
            while greedy.waiting.len() < BACKLOG {
                let cost = self.random.between(greedy.cost.0, greedy.cost.1);
                let place = self.queue.enter(tenant, Units(cost)).unwrap();
                greedy.waiting.push_back((place, cost));
            }
            while let Some(granted) = greedy.waiting.front_mut().and_then(|w| w.0.take_now()) {
                let (_, cost) = greedy.waiting.pop_front().unwrap();
                greedy.served += cost;
                // a request takes as long as it costs, more or less
                let ms = cost * self.random.between(5, 15);
                let until = clock::now().plus(Duration::from_millis(ms));
                self.running
                    .push(Reverse((until, self.granted.len() as u64)));
                self.granted.push(Some(granted));
            }
        }
    }

    fn until_units(&mut self, units: u64) {
        self.turn();
        while self.greedy.iter().map(|g| g.served).sum::<u64>() < units {
            let Reverse((until, n)) = self.running.pop().unwrap();
            self.clock.advance(until.since(clock::now()));
            drop(self.granted[usize::try_from(n).unwrap()].take());
            self.turn();
        }
    }

    /// Each has its weighted share of what was served since `before`, within ten per cent.
    fn assert_shares(&self, before: &[u64]) {
        let got = self.greedy.iter().zip(before).map(|(g, b)| g.served - b);
        let got: Vec<u64> = got.collect();
        let all: u64 = got.iter().sum();
        let weights: u64 = self.greedy.iter().map(|g| g.weight).sum();
        for (n, greedy) in self.greedy.iter().enumerate() {
            let share = all * greedy.weight / weights;
            let off = got[n].abs_diff(share);
            assert!(off * 10 <= share, "t{n} got {} of {share}: {got:?}", got[n]);
        }
    }
}

#[test]
fn each_tenant_gets_its_weighted_share_within_a_tenth() {
    for (seed, slots) in [(1, 1), (2, 4), (3, 16)] {
        let greedy = [
            (1, (20, 40)),
            (1, (1000, 3000)),
            (2, (16, 900)),
            (4, (200, 200)),
            (8, (16, 30)),
        ];
        let mut contest = Contest::new(seed, slots, &greedy);
        // in every long stretch, not only over all
        for stretch in 1..=3 {
            let before: Vec<u64> = contest.greedy.iter().map(|g| g.served).collect();
            contest.until_units(stretch * 2_000_000);
            contest.assert_shares(&before);
        }
    }
}

#[test]
fn a_tenant_of_the_smallest_weight_is_never_forgotten() {
    let mut contest = Contest::new(5, 2, &[(1, (100, 100)), (1000, (100, 100))]);
    contest.until_units(2_000_000);
    let served = contest.greedy[0].served;
    assert!((1500..=2600).contains(&served), "{served} of about 2000");
}
