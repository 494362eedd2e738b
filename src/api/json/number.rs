//! Numbers as they are spelled: `1.0` and `1e3` are whole, whatever their size nothing is rounded.

/// A JSON number, as far as caps and usage figures care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Whole(u64),
    /// Whole, positive, and more than a `u64` holds.
    Huge,
    Negative,
    /// Not whole.
    Fraction,
}

impl Number {
    /// The number of a token, or nothing where the token is none.
    pub fn of(raw: &[u8]) -> Option<Number> {
        let (negative, digits) = match raw {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, raw),
        };
        if let [b'1'..=b'9', ..] | [b'0'] = digits
            && digits.len() < 20
            && digits.iter().all(u8::is_ascii_digit)
        {
            return Some(plain(negative, digits));
        }
        let (whole, rest) = split_digits(digits);
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with(b"0")) {
            return None;
        }
        let (fraction, rest) = fraction(rest)?;
        let exponent = exponent(rest)?;
        Some(valued(negative, whole, fraction, exponent))
    }
}

fn plain(negative: bool, digits: &[u8]) -> Number {
    let value = digits
        .iter()
        .fold(0u64, |sum, d| sum * 10 + u64::from(d - b'0'));
    match (negative, value) {
        (true, 1..) => Number::Negative,
        _ => Number::Whole(value),
    }
}

fn split_digits(bytes: &[u8]) -> (&[u8], &[u8]) {
    let len = bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    bytes.split_at(len)
}

/// The digits behind the point, and what follows; nothing where a point stands without digits.
fn fraction(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [b'.', rest @ ..] = bytes else {
        return Some((&[], bytes));
    };
    let (digits, rest) = split_digits(rest);
    (!digits.is_empty()).then_some((digits, rest))
}

/// The power of ten; clamped, since no number of ours has so many digits.
fn exponent(bytes: &[u8]) -> Option<i64> {
    let [b'e' | b'E', rest @ ..] = bytes else {
        return bytes.is_empty().then_some(0);
    };
    let (negative, rest) = match rest {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, rest),
    };
    let (digits, rest) = split_digits(rest);
    if digits.is_empty() || !rest.is_empty() {
        return None;
    }
    let size = digits.iter().fold(0i64, |sum, d| {
        (sum * 10 + i64::from(d - b'0')).min(1_000_000_000_000)
    });
    Some(if negative { -size } else { size })
}

/// The value of `whole.fraction × 10^exponent`.
fn valued(negative: bool, whole: &[u8], fraction: &[u8], exponent: i64) -> Number {
    let digits = whole.iter().chain(fraction);
    let zeros = digits.clone().rev().take_while(|d| **d == b'0').count();
    let count = whole.len() + fraction.len();
    if zeros == count {
        return Number::Whole(0);
    }
    if negative {
        return Number::Negative;
    }
    let as_power = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let power = exponent + as_power(zeros) - as_power(fraction.len());
    if power < 0 {
        return Number::Fraction;
    }
    let significant = digits.take(count - zeros).try_fold(0u64, |sum, d| {
        sum.checked_mul(10)?.checked_add(u64::from(d - b'0'))
    });
    significant
        .zip(u32::try_from(power).ok().and_then(|p| 10u64.checked_pow(p)))
        .and_then(|(value, power)| value.checked_mul(power))
        .map_or(Number::Huge, Number::Whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_whole_however_they_are_spelled() {
        for (raw, value) in [
            ("0", 0),
            ("-0", 0),
            ("-0.0", 0),
            ("0e99999999999999999999", 0),
            ("1", 1),
            ("50", 50),
            ("1.0", 1),
            ("1.50e1", 15),
            ("1e3", 1000),
            ("1E+2", 100),
            ("1200e-2", 12),
            ("18446744073709551615", u64::MAX),
            ("9999999999999999999", 9_999_999_999_999_999_999),
        ] {
            assert_eq!(
                Number::of(raw.as_bytes()),
                Some(Number::Whole(value)),
                "{raw}"
            );
        }
    }

    #[test]
    fn other_numbers_say_why_they_are_no_figure() {
        for (raw, number) in [
            ("18446744073709551616", Number::Huge),
            ("1e30", Number::Huge),
            ("1e99999999999999999999999", Number::Huge),
            ("3.7", Number::Fraction),
            ("1e-1", Number::Fraction),
            ("1e-99999999999999999999", Number::Fraction),
            ("-1", Number::Negative),
            ("-0.1", Number::Negative),
            ("-1e30", Number::Negative),
        ] {
            assert_eq!(Number::of(raw.as_bytes()), Some(number), "{raw}");
        }
    }

    #[test]
    fn what_is_no_json_number_is_none() {
        for raw in [
            "",
            "-",
            "+1",
            "01",
            "-01",
            "1.",
            ".5",
            "1.e1",
            "1e",
            "1e+",
            "NaN",
            "Infinity",
            "0x1",
            "1 ",
            "1-",
            "--1",
            "1.2.3",
            "00000000000000000000000",
        ] {
            assert_eq!(Number::of(raw.as_bytes()), None, "{raw}");
        }
    }
}
