//! The effective configuration as it is shown.

use super::*;
use crate::config::show;
use toml::de::DeTable;

/// The shown text as a file that can be read: something stands where a secret was.
fn unredacted(shown: &str) -> String {
    let mut text = shown.replace("redis = \"[redacted]\"", "redis = \"redis://r\"");
    let mut count = 0;
    while text.contains("= \"[redacted]\"") || text.contains(" \"[redacted]\"") {
        count += 1;
        text = text.replacen(
            "\"[redacted]\"",
            &format!("{{ env = \"SHOWN_{count}\" }}"),
            1,
        );
    }
    text
}

#[test]
fn what_is_shown_reads_as_the_same_configuration() {
    let scratch = Scratch::with_certificates();
    let (text, full) = commented();
    for text in [text.as_str(), full.as_str(), BASE] {
        let shown = show(&scratch.good(text));
        DeTable::parse(&shown).unwrap();
        let again = show(&scratch.good(&unredacted(&shown)));
        assert_eq!(again, shown);
    }
}

#[test]
fn every_key_that_has_a_value_is_shown() {
    let scratch = Scratch::with_certificates();
    let (_, full) = commented();
    let shown = show(&scratch.good(&full));
    assert_eq!(keys(&unredacted(&shown)), keys(&full));
}

#[test]
fn no_secret_is_shown_or_debugged() {
    let scratch = Scratch::with_certificates();
    let (_, full) = commented();
    let full = full
        .replace("redis://127", "redis://:sk-in-redis@127")
        .replace(
            "\"sqlite:ledger.db\"",
            "\"postgres://u:sk-in-postgres@h/d\"",
        )
        .replace("\"X-Org\" = \"o\"", "\"X-Api-Key\" = \"sk-in-header\"");
    let config = scratch.good(&full);
    let hash_of_env = config.unlisted_keys[0];
    for text in [
        show(&config),
        format!("{config:?}"),
        config.not_in_effect.join("\n"),
    ] {
        assert!(!text.contains("sk-in"), "{text}");
        assert!(
            !text.contains(&super::super::tenant::hex(&hash_of_env)),
            "{text}"
        );
    }
    assert_eq!(config.unlisted_keys.len(), 2);
}
