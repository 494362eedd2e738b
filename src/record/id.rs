//! What names a request: the client's `Idempotency-Key`, or a UUIDv7 of ours. Unique per tenant.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A request's id: 1 to 128 of `A-Za-z0-9._:-`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(String);

impl RequestId {
    pub const LEN_MAX: usize = 128;

    /// A fresh UUIDv7.
    pub fn generate() -> RequestId {
        RequestId(uuid::Uuid::now_v7().to_string())
    }

    /// The id of a text, or nothing where the text is no id.
    pub fn parse(text: &str) -> Option<RequestId> {
        let fits = (1..=Self::LEN_MAX).contains(&text.len());
        let plain = text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'));
        (fits && plain).then(|| RequestId(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_odd_characters_or_length_are_none() {
        for bad in ["", "a b", "é", "a/b", "a\n", &"a".repeat(129)] {
            assert_eq!(RequestId::parse(bad), None, "{bad:?}");
        }
        for good in ["a", "named:ok_1.2-3", &"a".repeat(128)] {
            assert!(RequestId::parse(good).is_some(), "{good:?}");
        }
    }
}
