//! What a request made, was delivered and costs: three numbers that are not the same. Pure.

use crate::budget::Units;
use crate::config::ChargeCancelled;
use crate::record::{State, UpstreamEnd, UsageSource};

/// What is known of a request's units so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub input: Units,
    pub input_cached: Option<Units>,
    pub input_cache_write: Option<Units>,
    pub generated: Units,
    pub delivered: Units,
    pub source: UsageSource,
}

impl Usage {
    /// Before the upstream has said anything.
    pub fn estimated(input: Units) -> Usage {
        Usage {
            input,
            input_cached: None,
            input_cache_write: None,
            generated: Units::ZERO,
            delivered: Units::ZERO,
            source: UsageSource::Counted,
        }
    }

    /// What a request costs that ended so. Free is only what the upstream was never called for or refused by status.
    pub fn charge(&self, end: &Ended) -> Units {
        if end.upstream == UpstreamEnd::None || end.refused {
            return Units::ZERO;
        }
        let by_delivery =
            end.state == State::Cancelled && end.charge_cancelled == ChargeCancelled::Delivered;
        self.input.plus(if by_delivery {
            self.delivered
        } else {
            self.generated
        })
    }
}

/// What of an end decides the charge.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub state: State,
    pub upstream: UpstreamEnd,
    /// Every try was refused by status or not connected: nothing ran.
    pub refused: bool,
    pub charge_cancelled: ChargeCancelled,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> Usage {
        Usage {
            generated: Units(41),
            delivered: Units(38),
            ..Usage::estimated(Units(128))
        }
    }

    fn ended(state: State, upstream: UpstreamEnd) -> Ended {
        Ended {
            state,
            upstream,
            refused: false,
            charge_cancelled: ChargeCancelled::Generated,
        }
    }

    #[test]
    fn a_cancelled_request_costs_what_was_made_or_by_choice_what_was_delivered() {
        let end = ended(State::Cancelled, UpstreamEnd::Aborted);
        assert_eq!(usage().charge(&end), Units(169));
        let end = Ended {
            charge_cancelled: ChargeCancelled::Delivered,
            ..end
        };
        assert_eq!(usage().charge(&end), Units(166));
        let end = Ended {
            state: State::Failed,
            ..end
        };
        assert_eq!(usage().charge(&end), Units(169));
    }

    #[test]
    fn what_was_never_called_or_was_refused_is_free() {
        assert_eq!(
            usage().charge(&ended(State::Failed, UpstreamEnd::None)),
            Units::ZERO
        );
        let refused = Ended {
            refused: true,
            ..ended(State::Failed, UpstreamEnd::Complete)
        };
        assert_eq!(usage().charge(&refused), Units::ZERO);
    }
}
