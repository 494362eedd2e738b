//! One request of the simulation: what it asks for, the plan of what its upstream will do, and how it is to end.

use super::random::Random;
use crate::budget::Units;
use crate::exchange::{Ending, Exchange, Place, Usage};
use crate::record::{Outcome, State, UpstreamEnd};
use crate::slots::Slots;
use crate::tenant::Wanted;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// What the upstream does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A backend is tried.
    Try,
    /// The request has been written.
    Called,
    /// The try is over, and another may follow.
    Missed(Outcome),
    /// So many units were made in all.
    Made(u64),
    /// The protocol's end was read.
    Complete,
    /// The upstream broke off, or refused for good.
    Failed,
}

/// What comes between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interrupt {
    Leaves,
    Cancels,
    SlowReader,
    TimesOut,
    Panics,
}

pub const INTERRUPTS: [Interrupt; 5] = [
    Interrupt::Leaves,
    Interrupt::Cancels,
    Interrupt::SlowReader,
    Interrupt::TimesOut,
    Interrupt::Panics,
];

/// A plan: each step with the time before it.
pub type Plan = VecDeque<(Duration, Step)>;

pub struct Life {
    pub tenant: usize,
    pub exchange: Exchange,
    /// While it waits.
    pub place: Option<Place>,
    pub plan: Plan,
    wanted: Wanted,
    usage: Usage,
    called: bool,
    trying: bool,
    ran: bool,
}

pub fn wanted(random: &mut Random) -> Wanted {
    let choices = if random.percent(10) { 3 } else { 1 };
    let cap = if random.percent(5) {
        0
    } else {
        random.between(1, 1000)
    };
    Wanted {
        input: Units(random.between(1, 400)),
        output: Units(cap * choices),
        choices,
    }
}

/// What the upstream will do: retries and faults in one of five.
pub fn plan(random: &mut Random, reserved: Units) -> Plan {
    let mut plan = Plan::new();
    let mut add = |random: &mut Random, ms, step| {
        plan.push_back((Duration::from_millis(random.below(ms)), step));
    };
    while random.percent(10) {
        add(random, 5, Step::Try);
        if random.percent(50) {
            add(random, 20, Step::Missed(Outcome::ConnectFailed));
        } else {
            add(random, 20, Step::Called);
            add(random, 50, Step::Missed(Outcome::Refused));
        }
    }
    if random.percent(5) {
        add(random, 5, Step::Failed);
        return plan;
    }
    add(random, 5, Step::Try);
    add(random, 5, Step::Called);
    let mut made = 0;
    // one in fifty makes more than was reserved
    let over = if random.percent(2) { 3 } else { 1 };
    for _ in 0..random.between(1, 3) {
        made += random.below(reserved.0 * over / 4 + 2);
        add(random, 300, Step::Made(made));
    }
    let end = if random.percent(10) {
        Step::Failed
    } else {
        Step::Complete
    };
    add(random, 100, end);
    plan
}

impl Life {
    pub fn new(tenant: usize, exchange: Exchange, place: Place, wanted: Wanted) -> Life {
        Life {
            tenant,
            exchange,
            place: Some(place),
            plan: Plan::new(),
            usage: Usage::estimated(wanted.input),
            wanted,
            called: false,
            trying: false,
            ran: false,
        }
    }

    /// Takes a step; the end it leads to, if it leads to one.
    pub fn step(&mut self, step: Step, backend: &Arc<Slots>) -> Option<Ending> {
        match step {
            Step::Try => {
                let slot = backend
                    .take()
                    .expect("a backend has a slot for each of its pool");
                self.exchange.begin_attempt("10.0.0.1:8000", slot);
                self.trying = true;
            }
            Step::Called => {
                self.exchange.called();
                self.called = true;
            }
            Step::Missed(outcome) => {
                self.exchange.end_attempt(outcome, None);
                self.exchange.leave_backend();
                self.trying = false;
            }
            Step::Made(units) => self.made(units),
            Step::Complete => {
                self.tried(Outcome::Ok);
                self.exchange.release(UpstreamEnd::Complete);
                return Some(Ending::completed());
            }
            Step::Failed => {
                if self.trying {
                    self.tried(Outcome::Reset);
                }
                self.exchange.release(UpstreamEnd::Error);
                return Some(Ending::upstream("it broke off"));
            }
        }
        None
    }

    fn tried(&mut self, outcome: Outcome) {
        self.exchange.end_attempt(outcome, None);
        self.trying = false;
        self.ran = true;
    }

    fn made(&mut self, units: u64) {
        self.exchange.show();
        self.usage.generated = Units(units);
        self.usage.delivered = Units(units - units / 10);
        self.exchange.count(self.usage);
    }

    /// What comes between; how it ends by that. Nothing where the exchange is just dropped.
    pub fn interrupt(&mut self, interrupt: Interrupt) -> Option<Ending> {
        Some(match interrupt {
            Interrupt::Leaves => {
                self.exchange.client_gone();
                Ending::client_closed()
            }
            Interrupt::Cancels => {
                self.exchange.live().cancel();
                Ending::cancelled()
            }
            Interrupt::SlowReader => Ending::slow_reader(),
            Interrupt::TimesOut => Ending::timed_out("idle"),
            Interrupt::Panics => return None,
        })
    }

    /// What it is to be charged when it ends in a state.
    pub fn charge(&self, state: State, by_delivery: bool) -> Units {
        if !self.called || !(self.ran || self.trying) {
            return Units::ZERO;
        }
        let output = if by_delivery && state == State::Cancelled {
            self.usage.delivered
        } else {
            self.usage.generated
        };
        self.wanted.input.plus(output)
    }

    pub fn is_waiting(&self) -> bool {
        self.place.is_some()
    }
}
