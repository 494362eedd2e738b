//! What is claimed, and what one round says of it.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub enum Bar {
    AtMost(f64),
    /// For the broken relays: what they do wrong must be seen this clearly.
    Caught(f64),
}

impl Bar {
    pub fn holds(self, value: f64) -> bool {
        match self {
            Bar::AtMost(most) => value <= most,
            Bar::Caught(least) => value >= least,
        }
    }

    /// What is said of a median.
    pub fn verdict(self, value: f64) -> &'static str {
        match (self, self.holds(value)) {
            (Bar::AtMost(_), true) => "pass",
            (Bar::AtMost(_), false) => "MISS",
            (Bar::Caught(_), true) => "caught",
            (Bar::Caught(_), false) => "NOT CAUGHT",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub name: &'static str,
    pub unit: &'static str,
    pub bar: Bar,
}

/// One round's median for a claim, and the figures it was made from.
#[derive(Clone, Debug)]
pub struct Reading {
    pub claim: Claim,
    pub value: f64,
    pub parts: Vec<(&'static str, f64)>,
}

impl Claim {
    pub const fn at_most(name: &'static str, unit: &'static str, most: f64) -> Claim {
        Claim {
            name,
            unit,
            bar: Bar::AtMost(most),
        }
    }

    pub const fn caught(name: &'static str, least: f64) -> Claim {
        Claim {
            name,
            unit: "ms",
            bar: Bar::Caught(least),
        }
    }

    /// A figure as it is, and what stands beside it.
    pub fn reads(self, value: f64, parts: &[(&'static str, f64)]) -> Reading {
        Reading {
            claim: self,
            value,
            parts: parts.to_vec(),
        }
    }

    /// How much more the one is than the other, without a proxy.
    pub fn over_direct(self, through: &'static str, value: f64, direct: f64) -> Reading {
        self.reads(
            value - direct,
            &[(through, value), ("without a proxy", direct)],
        )
    }
}

pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
