//! The upstream's own figures: which are believed, and how those of several events become one.

use crate::api::json::Number;
use crate::budget::Units;

/// The figures of one usage object. A zero is a figure not given: engines that count nothing send zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub input: Option<Units>,
    /// Of the input, read from the upstream's cache.
    pub cached: Option<Units>,
    /// Of the input, written to the upstream's cache.
    pub cache_write: Option<Units>,
    pub output: Option<Units>,
    /// A figure that nobody can have counted stands among them: none of them is believed.
    pub absurd: bool,
}

/// The figure of a token: null is none, anything but a whole number up to a thousand million is absurd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    Given(Units),
    NotGiven,
    Absurd,
}

impl Figure {
    pub fn of(raw: &[u8]) -> Figure {
        if raw == b"null" {
            return Figure::NotGiven;
        }
        match Number::of(raw) {
            Some(Number::Whole(0)) => Figure::NotGiven,
            Some(Number::Whole(value)) if Units(value) <= Units::BELIEVABLE_MAX => {
                Figure::Given(Units(value))
            }
            _ => Figure::Absurd,
        }
    }
}

impl Figures {
    /// A figure has been read for one of the fields.
    pub fn read(&mut self, field: impl FnOnce(&mut Figures) -> &mut Option<Units>, figure: Figure) {
        match figure {
            Figure::Given(units) => *field(self) = Some(units),
            Figure::NotGiven => {}
            Figure::Absurd => self.absurd = true,
        }
    }

    /// Whether anything may be taken from them.
    pub fn believed(&self) -> bool {
        !self.absurd && *self != Figures::default()
    }
}

/// What the upstream has said so far, over all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// The last figures given for the input.
    pub input: Option<Units>,
    pub cached: Option<Units>,
    pub cache_write: Option<Units>,
    /// The output as stated while there was more to come.
    pub running: Option<Units>,
    /// The output as stated at an end.
    pub settled: Option<Units>,
}

impl Usage {
    /// Figures of an event that may be followed by more output: they grow from event to event, or are stated once at
    /// the start. The largest counts, never a sum.
    pub fn runs(&mut self, figures: &Figures) {
        if self.takes_input(figures) {
            self.running = self.running.max(figures.output);
        }
    }

    /// Figures of an OpenAI event that ends an answer: stated for all answers so far, so they never go back.
    pub fn settles(&mut self, figures: &Figures) {
        if self.takes_input(figures) {
            self.settled = self.settled.max(figures.output);
        }
    }

    /// Figures of an Anthropic `message_delta`: each replaces the one before.
    pub fn replaces(&mut self, figures: &Figures) {
        if self.takes_input(figures) {
            self.settled = figures.output.or(self.settled);
        }
    }

    /// The largest output stated.
    pub fn output(&self) -> Option<Units> {
        self.running.max(self.settled)
    }

    fn takes_input(&mut self, figures: &Figures) -> bool {
        if figures.believed() {
            self.input = figures.input.or(self.input);
            self.cached = figures.cached.or(self.cached);
            self.cache_write = figures.cache_write.or(self.cache_write);
        }
        figures.believed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_nobody_can_have_counted_is_absurd() {
        for raw in [
            "-1000000",
            "9223372036854775807",
            "1e30",
            "NaN",
            "3.7",
            "true",
            "1000000001",
            "-1",
        ] {
            assert_eq!(Figure::of(raw.as_bytes()), Figure::Absurd, "{raw}");
        }
        for (raw, units) in [
            ("7", 7),
            ("7.0", 7),
            ("1e3", 1000),
            ("1000000000", 1_000_000_000),
        ] {
            assert_eq!(
                Figure::of(raw.as_bytes()),
                Figure::Given(Units(units)),
                "{raw}"
            );
        }
        for raw in ["0", "null", "0.0", "-0"] {
            assert_eq!(Figure::of(raw.as_bytes()), Figure::NotGiven, "{raw}");
        }
    }

    #[test]
    fn one_absurd_figure_makes_all_of_them_unbelieved() {
        let mut figures = Figures::default();
        figures.read(|f| &mut f.input, Figure::of(b"9"));
        figures.read(|f| &mut f.output, Figure::of(b"-7"));
        let mut usage = Usage::default();
        usage.settles(&figures);
        assert_eq!((usage.input, usage.output()), (None, None));
    }
}
