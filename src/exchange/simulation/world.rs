//! A gateway's parts and an agenda: what happens when.

mod outages;

use super::book::{Book, Open, Page};
use super::ends::Ends;
use super::ground;
use super::life::{self, INTERRUPTS, Interrupt, Life, Step};
use super::random::Random;
use crate::access_log::Wire;
use crate::budget::{Hour, Units};
use crate::clock::{self, Timestamp, still::Still};
use crate::config::{self, ChargeCancelled, Config};
use crate::exchange::{Admission, Ending, Exchange, Granted, PoolQueue, Registry, Services};
use crate::ledger::Fingerprint;
use crate::record::{RequestId, State};
use crate::slots::Slots;
use crate::tenant::{Directory, Holdings, NotReserved, Reserved, Tenant, Wanted};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::time::{Duration, Instant};

const POOL_SLOTS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Arrives,
    /// The process is killed and starts anew.
    Crash,
    /// The pool's slots change.
    Reload,
    /// A bill comes in.
    Bill,
    NextStep(u64),
    Interrupted(u64, Interrupt),
    WaitIsOver(u64),
}

pub struct World {
    seed: u64,
    steps: u64,
    clock: Still,
    random: Random,
    agenda: BinaryHeap<Reverse<(Timestamp, u64, What)>>,
    noted: u64,
    config: Config,
    pub rules: config::Queue,
    pub tenants: Directory,
    pub slots: Arc<Slots>,
    pub queue: Arc<PoolQueue>,
    backend: Arc<Slots>,
    pub registry: Arc<Registry>,
    services: Arc<Services>,
    pub began: Instant,
    pub book: Book,
    pub lives: BTreeMap<u64, Life>,
    born: u64,
    /// How many ended since the process began.
    ended: u64,
    ends: Ends,
}

impl World {
    pub fn new(seed: u64) -> World {
        let mut config = ground::config();
        let ledger = ground::closed_ledger(seed, &mut config);
        let clock = Still::at("2024-02-28T21:59:00Z".parse().unwrap());
        let services = ground::services(&config, ledger);
        let slots = Slots::new(Some(POOL_SLOTS));
        let rules = config.pools[0].queue.clone().unwrap();
        World {
            seed,
            steps: 0,
            clock,
            random: Random::new(seed),
            agenda: BinaryHeap::new(),
            noted: 0,
            tenants: Directory::new(&config.tenants, &Holdings::default()),
            queue: PoolQueue::new("p", slots.clone(), Some(rules.clone()), &services.metrics),
            slots,
            rules,
            backend: Slots::new(None),
            registry: Arc::default(),
            services,
            began: clock::instant(),
            book: Book {
                pages: config.tenants.iter().map(|_| Page::default()).collect(),
                ..Book::default()
            },
            config,
            lives: BTreeMap::new(),
            born: 0,
            ended: 0,
            ends: Ends::default(),
        }
    }

    /// So many requests come, and all of them go.
    pub fn live(mut self, lives: usize) -> Ends {
        self.note(Duration::ZERO, What::Arrives);
        self.note(Duration::from_secs(120), What::Crash);
        self.note(Duration::from_secs(7), What::Reload);
        let lives = lives as u64;
        while let Some(Reverse((when, _, what))) = self.agenda.pop() {
            self.clock.advance(when.since(clock::now()));
            self.steps += 1;
            self.happens(what, self.born < lives);
            self.give_turns();
            self.check();
        }
        assert!(self.lives.is_empty() && self.slots.used() == 0);
        assert_eq!(self.ends_told(), self.ended, "ends that were told");
        std::mem::take(&mut self.ends)
    }

    fn note(&mut self, after: Duration, what: What) {
        self.noted += 1;
        let when = clock::now().plus(after);
        self.agenda.push(Reverse((when, self.noted, what)));
    }

    fn happens(&mut self, what: What, more: bool) {
        match what {
            What::Arrives if more => self.arrives(),
            What::Crash if more => self.crash(),
            What::Reload if more => self.reload(),
            What::Arrives | What::Crash | What::Reload => {}
            What::Bill => self.bill(),
            What::NextStep(id) => self.next_step(id),
            What::Interrupted(id, interrupt) => self.interrupted(id, interrupt),
            What::WaitIsOver(id) => self.wait_is_over(id),
        }
    }

    /// A request comes, and with it the next is on its way: in a crowd, or after a pause of up to an hour.
    fn arrives(&mut self) {
        // five hundred in a rush, five hundred at leisure
        let gap = if (self.born / 500).is_multiple_of(2) {
            60
        } else {
            400
        };
        let pause = match self.random.below(1000) {
            0 => Duration::from_secs(self.random.below(3600)),
            1..100 => Duration::ZERO,
            _ => Duration::from_millis(self.random.below(gap)),
        };
        self.note(pause, What::Arrives);
        self.born += 1;
        let tenant = usize::try_from(self.random.below(4)).unwrap();
        let wanted = life::wanted(&mut self.random);
        match self.admit(tenant, wanted) {
            Ok(()) => self.ends.count("admitted"),
            Err(refused) => self.ends.count(refused),
        }
    }

    /// As admission does it: rate, id, units, place, exchange.
    fn admit(&mut self, n: usize, wanted: Wanted) -> Result<(), &'static str> {
        let id = self.born;
        let tenant = self.tenants.all()[n].clone();
        let rate = tenant.request_rate().try_take(1, clock::instant());
        rate.map_err(|_| "refused: too many requests")?;
        let request_id = RequestId::parse(&format!("r{id}")).unwrap();
        let fingerprint = Fingerprint::of(tenant.name(), "POST", "/", b"");
        let claim = self.registry.claim(tenant.name(), &request_id, fingerprint);
        let left = tenant
            .rules
            .budget
            .map(|b| self.book.pages[n].left(clock::now(), b));
        let reserved = tenant.reserve(&wanted, clock::now(), clock::instant());
        let reserved = reserved.map_err(|why| match why {
            NotReserved::Budget(_) => "refused: too little left",
            NotReserved::Rate(_) => "refused: too many units",
        })?;
        check_reserved(&tenant, wanted, &reserved, left);
        let place = self.queue.enter(&tenant, reserved.units());
        let place = place.map_err(|r| {
            let wait = r.bound == Some(crate::exchange::Bound::Wait);
            assert!(!wait || r.retry_after > self.rules.max_wait, "{r:?}");
            if wait {
                "refused: no hope"
            } else {
                "refused: no room"
            }
        })?;
        let open = Open {
            tenant: n,
            hour: Hour::of(clock::now()),
            reserved: reserved.units(),
        };
        self.book.admitted(id, open);
        let record = ground::record(request_id, &tenant, wanted, reserved.units());
        let claim = claim.unwrap();
        let admission = Admission {
            live: claim.show(record),
            tenant,
            claim,
            reserved,
            charged_before: Units::ZERO,
        };
        let exchange = Exchange::new(admission, self.services.clone(), Wire::default());
        let mut life = Life::new(n, exchange, place, wanted);
        life.plan = life::plan(&mut self.random, open.reserved);
        self.lives.insert(id, life);
        self.note(self.rules.max_wait, What::WaitIsOver(id));
        if self.random.percent(30) {
            let after = Duration::from_millis(self.random.below(3000));
            let which = usize::try_from(self.random.below(5)).unwrap();
            self.note(after, What::Interrupted(id, INTERRUPTS[which]));
        }
        Ok(())
    }

    /// Whoever has been given slots runs. Within a tenant it is who came first.
    fn give_turns(&mut self) {
        let waiting: Vec<u64> = self
            .lives
            .iter()
            .filter(|(_, l)| l.is_waiting())
            .map(|(id, _)| *id)
            .collect();
        let mut passed = [false; 4];
        for id in waiting {
            let life = self.lives.get_mut(&id).unwrap();
            let Some(granted) = life.place.as_mut().and_then(|p| p.take_now()) else {
                passed[life.tenant] = true;
                continue;
            };
            assert!(!passed[life.tenant], "life {id} went before an older one");
            self.start(id, granted);
        }
    }

    fn start(&mut self, id: u64, granted: Granted) {
        let life = self.lives.get_mut(&id).unwrap();
        life.place = None;
        life.exchange.start(granted);
        self.plan_next(id);
    }

    fn plan_next(&mut self, id: u64) {
        if let Some((after, _)) = self.lives[&id].plan.front() {
            self.note(*after, What::NextStep(id));
        }
    }

    fn next_step(&mut self, id: u64) {
        let Some(life) = self.lives.get_mut(&id) else {
            return;
        };
        let (_, step) = life.plan.pop_front().unwrap();
        let mut ending = life.step(step, &self.backend);
        if ending.is_none() && life.plan.is_empty() {
            ending = life.step(Step::Failed, &self.backend);
        }
        match ending {
            Some(ending) => self.end(id, Some(&ending)),
            None => self.plan_next(id),
        }
    }

    fn interrupted(&mut self, id: u64, interrupt: Interrupt) {
        if let Some(life) = self.lives.get_mut(&id) {
            let ending = life.interrupt(interrupt);
            self.end(id, ending.as_ref());
        }
    }

    fn wait_is_over(&mut self, id: u64) {
        if self.lives.get(&id).is_some_and(Life::is_waiting) {
            self.end(id, Some(&Ending::timed_out("queue")));
        }
    }

    /// A life ends: once by what it ends by, again by whoever was late, and once more by being dropped.
    fn end(&mut self, id: u64, ending: Option<&Ending>) {
        let mut life = self.lives.remove(&id).unwrap();
        let tenant = &self.tenants.all()[life.tenant];
        let by_delivery = tenant.rules.charge_cancelled == ChargeCancelled::Delivered;
        let state = ending.map_or(State::Failed, |e| e.state);
        let right = life.charge(state, by_delivery);
        let (before, live) = (life.exchange.record().state, life.exchange.live().clone());
        if let Some(ending) = ending {
            life.exchange.end(ending, None);
            if self.random.percent(50) {
                life.exchange.end(&Ending::client_closed(), None);
            }
        }
        drop(life);
        let record = live.record();
        assert_eq!(
            (record.state, record.charged_units),
            (state, right),
            "life {id}"
        );
        self.book.settled(id, right);
        self.ended += 1;
        // adding them up is slow
        if self.ended.is_multiple_of(100) {
            assert_eq!(self.ends_told(), self.ended, "ends that were told");
        }
        let by = record.ended_by.map_or("nobody", |e| e.as_str());
        self.ends.count(&format!("{before} {} {by}", record.state));
    }

    /// How many ends the metrics have heard of.
    fn ends_told(&self) -> u64 {
        use prometheus::core::Collector;
        let families = self.services.metrics.table.requests.collect();
        let series = families.iter().flat_map(|f| f.get_metric());
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count that was a whole number before the metrics made it a float"
        )]
        series.map(|m| m.get_counter().get_value() as u64).sum()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!(
                "STREAMGATE_SEED={} failed at step {}",
                self.seed, self.steps
            );
        }
    }
}

/// A reservation is what was asked for or, clamped, what was left, and never more than was left.
fn check_reserved(tenant: &Tenant, wanted: Wanted, reserved: &Reserved, left: Option<i128>) {
    let units = i128::from(reserved.units().0);
    assert!(left.is_none_or(|left| units <= left), "{units} of {left:?}");
    let all = i128::from(wanted.input.plus(wanted.output).0);
    if units != all {
        let left = left.unwrap();
        assert!(tenant.rules.clamp && units < all && reserved.cap() > Units::ZERO);
        assert!(
            left - units < i128::from(wanted.choices),
            "{units} of {left}"
        );
    }
}
