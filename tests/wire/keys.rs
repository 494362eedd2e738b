//! `streamgate key new`: a key shown once, and its hash for the config.

use crate::support::ask::chat;
use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::process::run;
use crate::support::script::tokens;
use crate::support::sha256;
use crate::support::wait::ms;

/// The key and its hash as printed.
fn new_key() -> (String, String) {
    let ran = run(&["key", "new", "--tenant", "acme"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    let words: Vec<&str> = ran
        .out
        .split(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c))
        .collect();
    let hash = words
        .iter()
        .find(|w| w.len() == 64 && w.bytes().all(|b| b.is_ascii_hexdigit()));
    let hash = hash.unwrap_or_else(|| panic!("no hash: {}", ran.out));
    let key = words.iter().find(|word| sha256(word) == **hash);
    let key = key.unwrap_or_else(|| panic!("no key that has the hash: {}", ran.out));
    (key.to_string(), hash.to_string())
}

#[test]
fn its_hash_lets_its_key_in() {
    let (key, hash) = new_key();
    let engine = Engine::scripted(tokens(1, ms(0)));
    let tenant = format!("[[tenant]]\nname = \"fresh\"\nkeys = [{{ sha256 = \"{hash}\" }}]");
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .extra(&tenant)
        .start();
    assert_eq!(gateway.answer(&chat().key(&key)).status, 200);
    gateway
        .answer(&chat().key(&hash))
        .must_refuse(401, "invalid_api_key");
}

#[test]
fn no_two_are_the_same_and_each_is_long() {
    let (one, two) = (new_key().0, new_key().0);
    assert_ne!(one, two);
    assert!(one.len() >= 32, "{one}");
}
