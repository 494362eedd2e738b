//! The words that keys with a choice take: one table each for reading, for the findings and for showing.

use super::{
    Affinity, Balance, CapMember, ChargeCancelled, ClientAuth, Durability, HalfClose, LineEnds,
    LogFormat, OnClusterFailure, OnError, OnUnknown, Period, Priority, Protocol, TlsVersion,
    UsageMode,
};
use log::LevelFilter;

/// A choice between words.
pub trait Word: Copy + PartialEq + 'static {
    /// Each choice as it is written.
    const WORDS: &'static [(&'static str, Self)];

    fn named(word: &str) -> Option<Self> {
        let (_, choice) = Self::WORDS.iter().find(|(w, _)| *w == word)?;
        Some(*choice)
    }

    /// The choice as it is written.
    fn word(self) -> &'static str {
        let of = |(_, choice): &&(&'static str, Self)| *choice == self;
        Self::WORDS.iter().find(of).map_or("", |(word, _)| word)
    }

    /// All choices, for a finding.
    fn choice() -> String {
        let words: Vec<String> = Self::WORDS
            .iter()
            .map(|(w, _)| format!("\"{w}\""))
            .collect();
        format!("one of {}", words.join(", "))
    }
}

macro_rules! words {
    ($($choice:ty { $($word:literal = $value:expr),+ $(,)? })+) => {
        $(impl Word for $choice {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $value)),+];
        })+

        #[cfg(test)]
        mod tests {
            use super::*;

            #[test]
            fn each_word_reads_as_the_choice_it_shows() {
                $($(
                    assert!(<$choice>::named($word) == Some($value), $word);
                    assert_eq!($value.word(), $word);
                )+)+
            }
        }
    };
}

words! {
    Affinity { "session" = Affinity::Session, "prefix" = Affinity::Prefix }
    Balance {
        "round_robin" = Balance::RoundRobin,
        "least_streams" = Balance::LeastStreams,
        "hash" = Balance::Hash,
        "affinity" = Balance::Affinity,
    }
    CapMember {
        "max_tokens" = CapMember::MaxTokens,
        "max_completion_tokens" = CapMember::MaxCompletionTokens,
    }
    ChargeCancelled {
        "generated" = ChargeCancelled::Generated,
        "delivered" = ChargeCancelled::Delivered,
    }
    ClientAuth { "required" = ClientAuth::Required, "optional" = ClientAuth::Optional }
    Durability { "process" = Durability::Process, "power" = Durability::Power }
    HalfClose { "abort" = HalfClose::Abort, "continue" = HalfClose::Continue }
    LevelFilter {
        "off" = LevelFilter::Off,
        "error" = LevelFilter::Error,
        "warn" = LevelFilter::Warn,
        "info" = LevelFilter::Info,
        "debug" = LevelFilter::Debug,
        "trace" = LevelFilter::Trace,
    }
    LineEnds { "keep" = LineEnds::Keep, "lf" = LineEnds::Lf }
    LogFormat { "json" = LogFormat::Json, "combined" = LogFormat::Combined }
    OnClusterFailure { "local" = OnClusterFailure::Local, "reject" = OnClusterFailure::Reject }
    OnError { "refuse" = OnError::Refuse, "serve" = OnError::Serve }
    OnUnknown {
        "hold" = OnUnknown::Hold,
        "charge_reserved" = OnUnknown::ChargeReserved,
        "charge_counted" = OnUnknown::ChargeCounted,
    }
    Period {
        "hour" = Period::Hour,
        "day" = Period::Day,
        "month" = Period::Month,
        "total" = Period::Total,
    }
    Priority { "core" = Priority::Core, "normal" = Priority::Normal, "batch" = Priority::Batch }
    Protocol { "openai" = Protocol::OpenAi, "anthropic" = Protocol::Anthropic }
    TlsVersion { "1.2" = TlsVersion::V1_2, "1.3" = TlsVersion::V1_3 }
    UsageMode { "inject" = UsageMode::Inject, "keep" = UsageMode::Keep }
}
