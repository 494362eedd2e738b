//! The whole relay's CPU per event, with the meter and without it, in turns.

use crate::crowd::Crowd;
use crate::engine::{Engine, GAP, Kind};
use crate::nginx::{self, Nginx};
use crate::process::{Cpu, keep_on_core};
use crate::support::gateway::Gateway;
use crate::support::wait;
use std::time::{Duration, Instant};

pub const STREAMS: usize = 400;

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
    /// Where nginx is installed.
    pub nginx: Vec<Turn>,
}

/// One gateway for both kinds, each with an engine and a model of its own; and nginx, where it is.
struct Ground {
    events: Engine,
    unread: Engine,
    gateway: Gateway,
    nginx: Option<Nginx>,
}

pub fn measure() -> Relayed {
    let ground = Ground::start();
    if !ground.keep_apart() {
        println!("the relays share their cores with engine and clients: expect more noise");
    }
    let mut relayed = Relayed::default();
    for round in 1..=ROUNDS {
        println!("round {round} of {ROUNDS}");
        // who goes first gains nothing by it over all rounds
        if round % 2 == 0 {
            relayed.unread.push(ground.through_gateway(Kind::Unread));
        }
        relayed.metered.push(ground.through_gateway(Kind::Events));
        if round % 2 == 1 {
            relayed.unread.push(ground.through_gateway(Kind::Unread));
        }
        relayed.nginx.extend(ground.through_nginx());
    }
    relayed
}

impl Ground {
    fn start() -> Ground {
        let (events, unread) = (Engine::start(Kind::Events), Engine::start(Kind::Unread));
        let pool = format!(
            "[[pool]]\nname = \"unread\"\nmodels = [\"{}\"]\nbackends = [{{ addr = \"{}\" }}]",
            Kind::Unread.model(),
            unread.addr()
        );
        Ground {
            gateway: Gateway::builder()
                .backend(events.addr())
                .extra(&pool)
                .start(),
            nginx: nginx::is_installed().then(|| Nginx::before(events.addr())),
            events,
            unread,
        }
    }

    /// Relays on one core, everything else on the other.
    fn keep_apart(&self) -> bool {
        let relays = std::iter::once(self.gateway.process.pid())
            .chain(self.nginx.iter().flat_map(Nginx::pids));
        relays.into_iter().all(|pid| keep_on_core(pid, 0)) && keep_on_core(std::process::id(), 1)
    }

    fn through_gateway(&self, kind: Kind) -> Turn {
        let engine = match kind {
            Kind::Events => &self.events,
            Kind::Unread => &self.unread,
        };
        let turn = turn(
            engine,
            kind,
            self.gateway.addr(),
            &[self.gateway.process.pid()],
        );
        self.gateway.settled();
        turn
    }

    fn through_nginx(&self) -> Option<Turn> {
        let nginx = self.nginx.as_ref()?;
        Some(turn(
            &self.events,
            Kind::Events,
            nginx.addr(),
            &nginx.pids(),
        ))
    }
}

/// One turn: all streams at their pace, the CPU of the relay's processes over a window, the events that came in it.
fn turn(engine: &Engine, kind: Kind, relay: &str, pids: &[u32]) -> Turn {
    let crowd = Crowd::of(STREAMS, kind, relay);
    wait::until("all streams to run", || match engine.running() {
        STREAMS => Ok(()),
        running => Err(format!("{running} run")),
    });
    std::thread::sleep(WARM_UP);
    let (start, cpu, events) = (Instant::now(), Cpu::of(pids), crowd.events());
    std::thread::sleep(WINDOW);
    let (took, cpu, events) = (
        start.elapsed(),
        Cpu::of(pids).since(cpu),
        crowd.events() - events,
    );
    // nothing of this turn is left in the next
    engine.end_streams();
    crowd.leave();
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
