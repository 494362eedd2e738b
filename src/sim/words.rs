//! Reads a prompt's JSON for its size alone: its words are counted as they are parsed, nothing is kept. Pure.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The size of a text, a list of parts, a list of messages, or a list of token numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Words, and token numbers.
    pub words: u64,
    /// Separate texts: the members of a list, but one where the members are token numbers.
    pub texts: usize,
    pub is_list: bool,
    is_number: bool,
}

/// A whole number, however it is spelt: `1000`, `1e3`, `1000.0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(pub u64);

impl Words {
    const NOTHING: Words = Words {
        words: 0,
        texts: 1,
        is_list: false,
        is_number: false,
    };
    const NUMBER: Words = Words {
        words: 1,
        texts: 1,
        is_list: false,
        is_number: true,
    };

    fn of_text(text: &str) -> Words {
        let words = u64::try_from(text.split_whitespace().count()).unwrap_or(u64::MAX);
        Words {
            words,
            ..Words::NOTHING
        }
    }
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(WordsVisitor)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or a list of texts, messages or tokens")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
        Ok(Words::of_text(text))
    }

    fn visit_unit<E: Error>(self) -> Result<Words, E> {
        Ok(Words::NOTHING)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Words, E> {
        Ok(Words::NOTHING)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Words, E> {
        Ok(Words::NUMBER)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Words, E> {
        Ok(Words::NUMBER)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Words, E> {
        Ok(Words::NUMBER)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
        let mut sum = Words {
            texts: 0,
            is_list: true,
            ..Words::NOTHING
        };
        let mut numbers = 0;
        while let Some(member) = list.next_element::<Words>()? {
            sum.words = sum.words.saturating_add(member.words);
            sum.texts += 1;
            numbers += usize::from(member.is_number);
        }
        if numbers > 0 && numbers == sum.texts {
            sum.texts = 1;
        }
        Ok(sum)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Words, A::Error> {
        let mut sum = Words::NOTHING;
        while let Some(name) = members.next_key::<String>()? {
            if matches!(name.as_str(), "text" | "content") {
                let member = members.next_value::<Words>()?;
                sum.words = sum.words.saturating_add(member.words);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(sum)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number that is not negative")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Count, E> {
        Ok(Count(n))
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is whole and within the range in which a float is exact"
    )]
    fn visit_f64<E: Error>(self, n: f64) -> Result<Count, E> {
        if n.fract() == 0.0 && (0.0..=9e15).contains(&n) {
            Ok(Count(n as u64))
        } else {
            Err(E::invalid_value(serde::de::Unexpected::Float(n), &self))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Option<u64> {
        serde_json::from_str::<Count>(text).ok().map(|n| n.0)
    }

    #[test]
    fn a_whole_number_is_read_however_it_is_spelt() {
        for (text, n) in [("0", 0), ("1000", 1000), ("1e3", 1000), ("1000.0", 1000)] {
            assert_eq!(count(text), Some(n), "{text}");
        }
        for text in ["-1", "1.5", "1e30", "-1e3", "\"1\"", "true", "null"] {
            assert_eq!(count(text), None, "{text}");
        }
    }

    #[test]
    fn roles_urls_and_tool_arguments_are_no_text() {
        let message = r#"{"role":"user two","content":[{"type":"text","text":"a b"},{"image_url":{"url":"c d"}}],"tool_calls":[{"text":"e"}]}"#;
        let words: Words = serde_json::from_str(message).expect("a message");
        assert_eq!(words.words, 2);
    }
}
