//! What a request's `X-Sim` header asks to go wrong. Pure.

use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const EVENT_BYTES_MAX: usize = 64 << 20;

/// The faults of one request; `Default` is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    pub stalls: Vec<Stall>,
    /// Where several are asked for, the earliest.
    pub cut: Option<Cut>,
    /// 400 to 599.
    pub status: Option<u16>,
    pub line_end: LineEnd,
    pub no_usage: bool,
    pub no_done: bool,
    /// Bytes of the body per write, at least 1.
    pub split: Option<usize>,
    /// Length of each content event, its blank line included; a longer one stays as it is.
    pub event_bytes: Option<usize>,
    pub header_delay: Option<Duration>,
}

/// A pause after so many content events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    pub lasts: Duration,
    pub after: u32,
}

/// How an answer breaks off, after so many content events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    pub kind: CutKind,
    pub after: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    /// A TCP reset.
    Reset,
    /// A close without the last chunk.
    Fin,
    /// Half of the next event, then a reset.
    Torn,
    /// An error event, then a proper end of body.
    Error,
}

/// What ends the lines of an event stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineEnd {
    #[default]
    Lf,
    CrLf,
    Cr,
}

impl LineEnd {
    pub const fn as_str(self) -> &'static str {
        match self {
            LineEnd::Lf => "\n",
            LineEnd::CrLf => "\r\n",
            LineEnd::Cr => "\r",
        }
    }
}

impl Faults {
    /// Reads fault words divided by commas or blanks. The message names the word that is not understood.
    pub fn parse(header: &str) -> Result<Faults, String> {
        let mut faults = Faults::default();
        let words = header.split(|c: char| c == ',' || c.is_whitespace());
        for word in words.filter(|w| !w.is_empty()) {
            if faults.add(word).is_none() {
                let shown: String = word.chars().take(64).collect();
                return Err(format!(
                    "unknown fault {shown:?} in X-Sim; `streamgate sim --help` lists the faults"
                ));
            }
        }
        Ok(faults)
    }

    /// How long to stop after `events` content events.
    pub fn stall_after(&self, events: u32) -> Duration {
        let here = self.stalls.iter().filter(|s| s.after == events);
        here.fold(Duration::ZERO, |sum, s| sum.saturating_add(s.lasts))
    }

    /// Whether the answer breaks off after `events` content events, and how.
    pub fn cut_after(&self, events: u32) -> Option<CutKind> {
        self.cut.filter(|c| c.after == events).map(|c| c.kind)
    }

    fn add(&mut self, word: &str) -> Option<()> {
        let (rest, at) = match word.split_once('@') {
            Some((rest, at)) => (rest, Some(at)),
            None => (word, None),
        };
        let (name, value) = match rest.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest, None),
        };
        match (name, value, at) {
            ("stall", Some(lasts), Some(at)) => self.stalls.push(Stall {
                lasts: duration(lasts)?,
                after: at.parse().ok()?,
            }),
            (_, None, Some(at)) => self.cut_at(cut_kind(name)?, at.parse().ok()?),
            ("status", Some(code), None) => self.status = Some(error_status(code)?),
            ("split", Some(n), None) => self.split = Some(n.parse().ok().filter(|n| *n > 0)?),
            ("event-bytes", Some(n), None) => self.event_bytes = Some(size(n)?),
            ("header-delay", Some(lasts), None) => self.header_delay = Some(duration(lasts)?),
            ("crlf", None, None) => self.line_end = LineEnd::CrLf,
            ("cr", None, None) => self.line_end = LineEnd::Cr,
            ("no-usage", None, None) => self.no_usage = true,
            ("no-done", None, None) => self.no_done = true,
            _ => return None,
        }
        Some(())
    }

    fn cut_at(&mut self, kind: CutKind, after: u32) {
        if self.cut.is_none_or(|earlier| after < earlier.after) {
            self.cut = Some(Cut { kind, after });
        }
    }
}

fn cut_kind(name: &str) -> Option<CutKind> {
    match name {
        "reset" => Some(CutKind::Reset),
        "fin" => Some(CutKind::Fin),
        "torn" => Some(CutKind::Torn),
        "error" => Some(CutKind::Error),
        _ => None,
    }
}

fn error_status(text: &str) -> Option<u16> {
    text.parse().ok().filter(|code| (400..=599).contains(code))
}

/// `600ms`, `3s`, `2m`; at most a day.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let n: u64 = digits.parse().ok()?;
    let lasts = match text.get(digits.len()..)? {
        "ms" => Duration::from_millis(n),
        "s" => Duration::from_secs(n),
        "m" => Duration::from_secs(n.checked_mul(60)?),
        _ => return None,
    };
    (lasts <= DAY).then_some(lasts)
}

/// `1000`, `64KiB`, `2MiB`; at most 64 MiB.
fn size(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let n: usize = digits.parse().ok()?;
    let scale = match text.get(digits.len()..)? {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return None,
    };
    n.checked_mul(scale).filter(|n| *n <= EVENT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_faults_stand_in_one_header() {
        let faults = Faults::parse(
            "stall=3s@5, stall=600ms@0 reset@7,crlf no-usage,no-done split=1 event-bytes=2MiB header-delay=5s status=503",
        );
        let expected = Faults {
            stalls: vec![
                Stall {
                    lasts: Duration::from_secs(3),
                    after: 5,
                },
                Stall {
                    lasts: Duration::from_millis(600),
                    after: 0,
                },
            ],
            cut: Some(Cut {
                kind: CutKind::Reset,
                after: 7,
            }),
            status: Some(503),
            line_end: LineEnd::CrLf,
            no_usage: true,
            no_done: true,
            split: Some(1),
            event_bytes: Some(2 << 20),
            header_delay: Some(Duration::from_secs(5)),
        };
        assert_eq!(faults, Ok(expected));
    }

    #[test]
    fn an_empty_header_asks_for_nothing() {
        assert_eq!(Faults::parse(" , "), Ok(Faults::default()));
    }

    #[test]
    fn the_earliest_of_several_cuts_counts() {
        let faults = Faults::parse("fin@9 torn@2 error@4").expect("known faults");
        assert_eq!(faults.cut_after(2), Some(CutKind::Torn));
        assert_eq!(faults.cut_after(4), None);
    }

    #[test]
    fn stalls_at_one_place_add_up() {
        let faults = Faults::parse("stall=1s@2 stall=500ms@2").expect("known faults");
        assert_eq!(faults.stall_after(2), Duration::from_millis(1500));
        assert_eq!(faults.stall_after(3), Duration::ZERO);
    }

    #[test]
    fn an_unknown_or_misspelt_fault_is_named() {
        for word in [
            "explode",
            "stall=3s",
            "stall@5",
            "stall=3h@5",
            "stall=99999999999999999999s@1",
            "stall=400000m@1",
            "reset",
            "reset@x",
            "reset@-1",
            "reset=1@5",
            "status=200",
            "status=1000",
            "split=0",
            "split=-1",
            "event-bytes=1GiB",
            "event-bytes=65MiB",
            "event-bytes=18446744073709551615MiB",
            "header-delay=5",
            "crlf=1",
            "no-done@3",
            "é@é=é",
            "@",
            "=",
        ] {
            let message = Faults::parse(&format!("crlf {word}")).expect_err(word);
            assert!(message.contains(&format!("{word:?}")), "{word}: {message}");
        }
    }
}
