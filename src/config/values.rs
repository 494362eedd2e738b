//! Plain values: numbers, durations, sizes, texts, words of a list, and how they are written.

use super::reader::Value;
use super::words::Word;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;
use toml::de::{DeInteger, DeValue};

const DAY: u64 = 24 * 60 * 60 * 1000;
/// Unit and milliseconds, the largest first.
const TIMES: [(&str, u64); 5] = [
    ("d", DAY),
    ("h", 60 * 60 * 1000),
    ("m", 60 * 1000),
    ("s", 1000),
    ("ms", 1),
];
/// Ten years: enough for every key, and far from where arithmetic overflows.
const LONGEST_MS: u64 = 3650 * DAY;

/// Unit and bytes, the largest first.
const SIZES: [(&str, u64); 4] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
];

pub(super) fn flag(v: &Value) -> Option<bool> {
    v.wants(v.raw.as_bool(), "true or false")
}

/// A text that is not empty and holds no control characters.
pub(super) fn text(v: &Value) -> Option<String> {
    let plain = v
        .text()
        .filter(|t| !t.is_empty() && !t.chars().any(char::is_control));
    v.wants(plain.map(str::to_owned), "a text in quotes, not empty")
}

/// A name for people and labels.
pub(super) fn name(v: &Value) -> Option<String> {
    let good = |t: &&str| {
        let length = t.chars().count();
        (1..=128).contains(&length)
            && t.trim() == *t
            && !t.chars().any(|c| c.is_control() || c == '/')
    };
    let wanted = "a name of 1 to 128 characters, without / and without spaces around it";
    v.wants(v.text().filter(good).map(str::to_owned), wanted)
}

/// A path, made absolute from the file's folder.
pub(super) fn path(v: &Value) -> Option<PathBuf> {
    let given = v.text().filter(|t| !t.is_empty() && !t.contains('\0'));
    let path = given.map(|given| v.reader.resolve(given));
    v.wants(path, "a path in quotes")
}

/// One of the words of `T`.
pub(super) fn word<T: Word>(v: &Value) -> Option<T> {
    v.wants(v.text().and_then(T::named), &T::choice())
}

/// A whole number in a range.
pub(super) fn count<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&Value) -> Option<T> {
    move |v| {
        let number = whole(v.raw).filter(|n| range.contains(n));
        let wanted = format!("a whole number {}", bounds(&range, u64::to_string));
        v.wants(number.and_then(|n| T::try_from(n).ok()), &wanted)
    }
}

/// A number in a range, with or without a fraction.
pub(super) fn fraction(range: RangeInclusive<f64>) -> impl Fn(&Value) -> Option<f64> {
    move |v| {
        let number = match v.raw {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => integer.as_str().parse().ok(),
            DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => None,
        };
        let (low, high) = (range.start(), range.end());
        let wanted = format!("a number from {low} to {high}");
        v.wants(number.filter(|n| range.contains(n)), &wanted)
    }
}

/// A duration that may be `"0s"`.
pub(super) fn duration(v: &Value) -> Option<Duration> {
    let wanted = "a duration as \"250ms\", \"15s\", \"5m\", \"2h\" or \"30d\", at most 3650d";
    v.wants(v.text().and_then(parse_duration), wanted)
}

/// A duration longer than nothing.
pub(super) fn some_time(v: &Value) -> Option<Duration> {
    let duration = duration(v)?;
    let some = (!duration.is_zero()).then_some(duration);
    v.wants(some, "a duration longer than 0s")
}

/// A number of bytes in a range, as `"64KiB"` or a plain number.
pub(super) fn size(range: RangeInclusive<u64>) -> impl Fn(&Value) -> Option<u64> {
    move |v| {
        let bytes = v.text().map_or_else(|| whole(v.raw), parse_size);
        let bounds = bounds(&range, |bytes| show_size(*bytes));
        let wanted = format!("a size as \"64KiB\", \"32MiB\" or \"512B\", {bounds}");
        v.wants(bytes.filter(|bytes| range.contains(bytes)), &wanted)
    }
}

/// The shortest text that reads as this duration.
pub(super) fn show_duration(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if ms == 0 {
        return "0s".to_owned();
    }
    in_units(ms, &TIMES)
}

/// The shortest text that reads as this size.
pub(super) fn show_size(bytes: u64) -> String {
    in_units(bytes, &SIZES)
}

fn in_units(amount: u64, units: &[(&str, u64)]) -> String {
    let fits = |(_, each): &&(&str, u64)| amount != 0 && amount.is_multiple_of(*each);
    let smallest = units.last();
    match units.iter().find(fits).or(smallest) {
        Some((unit, each)) => format!("{}{unit}", amount / each),
        None => amount.to_string(),
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let ms = parse_units(text, &TIMES)?;
    (ms <= LONGEST_MS).then(|| Duration::from_millis(ms))
}

fn parse_size(text: &str) -> Option<u64> {
    parse_units(text, &SIZES)
}

/// A whole number and its unit, with nothing between them.
fn parse_units(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(end)?;
    let (_, each) = units.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*each)
}

fn whole(raw: &DeValue) -> Option<u64> {
    let parse = |i: &DeInteger| u64::from_str_radix(i.as_str(), i.radix()).ok();
    raw.as_integer().and_then(parse)
}

fn bounds(range: &RangeInclusive<u64>, show: impl Fn(&u64) -> String) -> String {
    let low = show(range.start());
    if *range.end() == u64::MAX {
        return format!("of at least {low}");
    }
    format!("from {low} to {}", show(range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_they_are_shown() {
        for (text, ms) in [
            ("0s", 0),
            ("250ms", 250),
            ("15s", 15_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("30d", 2_592_000_000),
            ("90s", 90_000),
        ] {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse_duration(text), Some(duration), "{text}");
            assert_eq!(show_duration(duration), text);
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in [
            "",
            "s",
            "5",
            "-1s",
            "1.5s",
            "5 s",
            "5S",
            "1m30s",
            "3651d",
            "99999999999999999999d",
            "18446744073709551615d",
            "é5s",
            "+5s",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_read_as_they_are_shown() {
        for (text, bytes) in [
            ("0B", 0),
            ("512B", 512),
            ("64KiB", 65_536),
            ("32MiB", 33_554_432),
            ("1GiB", 1_073_741_824),
        ] {
            assert_eq!(parse_size(text), Some(bytes), "{text}");
            assert_eq!(show_size(bytes), text);
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "KiB",
            "64",
            "64KB",
            "64kib",
            "32 fathoms",
            "17179869184GiB",
        ] {
            assert_eq!(parse_size(text), None, "{text}");
        }
    }
}
