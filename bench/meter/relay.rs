//! The whole relay's CPU per event, with the meter and without it.
//!
//! What an event costs changes from moment to moment with what else the machine does, by more than the meter takes. So
//! two gateways run at once on one core, one with event streams and one with the same bytes unread, and change places
//! from round to round: each moment weighs on both. Then nginx runs beside one of them in the same way.

use crate::crowd::Crowd;
use crate::engine::{Engine, GAP, Kind};
use crate::nginx::{self, Nginx};
use crate::process::{Cpu, keep_on_core};
use crate::support::gateway::Gateway;
use crate::support::wait;
use std::time::{Duration, Instant};

/// Of each kind.
pub const STREAMS: usize = 300;

/// Many short ones: a busy moment of the machine is then in neighbours of every kind.
pub const ROUNDS: usize = 11;
pub const WINDOW: Duration = Duration::from_secs(3);

/// What comes before a window: everything gets to its pace.
const WARM_UP: Duration = Duration::from_millis(500);

/// Microseconds of CPU per event in one turn.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    pub user: f64,
    pub system: f64,
    pub events_per_second: f64,
}

impl Turn {
    pub fn total(self) -> f64 {
        self.user + self.system
    }
}

/// All turns, a round each.
#[derive(Default)]
pub struct Relayed {
    pub metered: Vec<Turn>,
    pub unread: Vec<Turn>,
    /// Where nginx is installed: its turns, and those of a gateway with event streams at the same time.
    pub nginx: Vec<Turn>,
    pub beside_nginx: Vec<Turn>,
}

/// Two equal gateways with a model for each kind, an engine for each; and nginx with one of its own, where it is.
struct Ground {
    events: Engine,
    unread: Engine,
    gateways: [Gateway; 2],
    nginx: Option<(Nginx, Engine)>,
}

pub fn measure() -> Relayed {
    let ground = Ground::start();
    if !ground.keep_apart() {
        println!("the relays share their cores with engine and clients: expect more noise");
    }
    let mut relayed = Relayed::default();
    for round in 1..=ROUNDS {
        println!("round {round} of {ROUNDS}");
        let (metered, unread) = ground.through_gateways(round % 2);
        relayed.metered.push(metered);
        relayed.unread.push(unread);
        if let Some((beside, nginx)) = ground.through_nginx(round % 2) {
            relayed.beside_nginx.push(beside);
            relayed.nginx.push(nginx);
        }
    }
    relayed
}

impl Ground {
    fn start() -> Ground {
        let (events, unread) = (Engine::start(Kind::Events), Engine::start(Kind::Unread));
        let gateway = || {
            let pool = format!(
                "[[pool]]\nname = \"unread\"\nmodels = [\"{}\"]\nbackends = [{{ addr = \"{}\" }}]",
                Kind::Unread.model(),
                unread.addr()
            );
            Gateway::builder()
                .backend(events.addr())
                .extra(&pool)
                .start()
        };
        Ground {
            gateways: [gateway(), gateway()],
            nginx: nginx::is_installed().then(|| {
                let engine = Engine::start(Kind::Events);
                (Nginx::before(engine.addr()), engine)
            }),
            events,
            unread,
        }
    }

    /// Relays on one core, everything else on the other.
    fn keep_apart(&self) -> bool {
        let gateways = self.gateways.iter().map(|gateway| gateway.process.pid());
        let relays = gateways.chain(self.nginx.iter().flat_map(|(nginx, _)| nginx.pids()));
        relays.into_iter().all(|pid| keep_on_core(pid, 0)) && keep_on_core(std::process::id(), 1)
    }

    /// Both kinds at once, the event streams through the gateway of this number.
    fn through_gateways(&self, first: usize) -> (Turn, Turn) {
        let [metering, other] = [&self.gateways[first], &self.gateways[1 - first]];
        let metered = Passage::new(&self.events, Kind::Events, metering.addr())
            .by(vec![metering.process.pid()]);
        let unread =
            Passage::new(&self.unread, Kind::Unread, other.addr()).by(vec![other.process.pid()]);
        let turns = turns(&[metered, unread]);
        metering.settled();
        other.settled();
        (turns[0], turns[1])
    }

    /// Event streams through the gateway of this number and through nginx at once.
    fn through_nginx(&self, number: usize) -> Option<(Turn, Turn)> {
        let (nginx, engine) = self.nginx.as_ref()?;
        let gateway = &self.gateways[number];
        let beside = Passage::new(&self.events, Kind::Events, gateway.addr())
            .by(vec![gateway.process.pid()]);
        let through = Passage::new(engine, Kind::Events, nginx.addr()).by(nginx.pids());
        let turns = turns(&[beside, through]);
        gateway.settled();
        Some((turns[0], turns[1]))
    }
}

/// Streams of a kind through a relay.
struct Passage<'a> {
    engine: &'a Engine,
    kind: Kind,
    relay: &'a str,
    pids: Vec<u32>,
}

impl<'a> Passage<'a> {
    fn new(engine: &'a Engine, kind: Kind, relay: &'a str) -> Passage<'a> {
        Passage {
            engine,
            kind,
            relay,
            pids: Vec::new(),
        }
    }

    fn by(mut self, pids: Vec<u32>) -> Passage<'a> {
        self.pids = pids;
        self
    }

    fn crowd(&self) -> Crowd {
        let crowd = Crowd::of(STREAMS, self.kind, self.relay);
        wait::until("all streams to run", || match self.engine.running() {
            STREAMS => Ok(()),
            running => Err(format!("{running} run")),
        });
        crowd
    }
}

/// The CPU of a relay and the events it has passed, at a moment.
struct Reading {
    at: Instant,
    cpu: Cpu,
    events: u64,
}

impl Reading {
    fn of(passage: &Passage<'_>, crowd: &Crowd) -> Reading {
        Reading {
            at: Instant::now(),
            cpu: Cpu::of(&passage.pids),
            events: crowd.events(),
        }
    }

    fn turn_since(&self, before: &Reading) -> Turn {
        let (took, events) = (self.at - before.at, self.events - before.events);
        let cpu = self.cpu.since(before.cpu);
        let expected = STREAMS as f64 * took.as_secs_f64() / GAP.as_secs_f64();
        assert!(
            events as f64 > expected * 0.9,
            "only {events} of {expected:.0} events came: the machine is too busy"
        );
        assert!(!cpu.total().is_zero(), "the relay used no CPU at all");
        let per_event = |time: Duration| time.as_secs_f64() * 1e6 / events as f64;
        Turn {
            user: per_event(cpu.user),
            system: per_event(cpu.system),
            events_per_second: events as f64 / took.as_secs_f64(),
        }
    }
}

/// All passages at once: their streams at their pace, the CPU of each over a window, the events that came in it.
fn turns(passages: &[Passage<'_>]) -> Vec<Turn> {
    let crowds: Vec<Crowd> = passages.iter().map(Passage::crowd).collect();
    let read = || -> Vec<Reading> {
        let pairs = passages.iter().zip(&crowds);
        pairs
            .map(|(passage, crowd)| Reading::of(passage, crowd))
            .collect()
    };
    std::thread::sleep(WARM_UP);
    let before = read();
    std::thread::sleep(WINDOW);
    let after = read();
    // nothing of this turn is left in the next
    passages
        .iter()
        .for_each(|passage| passage.engine.end_streams());
    crowds.into_iter().for_each(Crowd::leave);
    let turns = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after.turn_since(before));
    turns.collect()
}
