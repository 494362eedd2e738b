//! Secrets and the files beside the configuration. What is secret never stands in a finding.

use super::reader::{Table, Value};
use super::values::path;
use super::{KeyHash, Secret};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::PathBuf;

const SECRET: &str = "give a secret as { env = \"NAME\" } or { file = \"PATH\" }";
const KEY: &str =
    "give a key as { sha256 = \"64 hex digits\" }, { env = \"NAME\" } or { file = \"PATH\" }";

/// A tenant's key.
pub(super) struct Key {
    pub hash: KeyHash,
    /// The file holds the hash itself; else the key comes from the environment or from a file.
    pub listed: bool,
}

/// A secret, resolved.
pub(super) fn secret(v: &Value) -> Option<Secret> {
    open(v, SECRET, |t| {
        let secret = resolve(t);
        only_one(v, t, &["env", "file"], SECRET)?;
        secret.map(Secret::new)
    })
}

/// A tenant's key, resolved and hashed.
pub(super) fn key(v: &Value) -> Option<Key> {
    open(v, KEY, |t| {
        let listed = t.value("sha256", hash);
        let key = resolve(t);
        only_one(v, t, &["sha256", "env", "file"], KEY)?;
        let hash = listed.or_else(|| key.map(|k| KeyHash(Sha256::digest(k).into())))?;
        Some(Key {
            hash,
            listed: listed.is_some(),
        })
    })
}

/// A PEM file with a certificate in it.
pub(super) fn certificate(v: &Value) -> Option<PathBuf> {
    pem(v, "certificate", &["CERTIFICATE"])
}

/// A PEM file with a private key in it; an encrypted one cannot be used.
pub(super) fn private_key(v: &Value) -> Option<PathBuf> {
    const LABELS: [&str; 3] = ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY"];
    pem(v, "unencrypted private key", &LABELS)
}

fn pem(v: &Value, what: &str, labels: &[&str]) -> Option<PathBuf> {
    let path = path(v)?;
    match fs::read_to_string(&path) {
        Err(error) => v.refuse_because(&format!("cannot read {}: {error}", path.display())),
        Ok(text) if is_pem(&text, labels) => return Some(path),
        Ok(_) => v.refuse_because(&format!("no {what} in PEM form in {}", path.display())),
    }
    None
}

fn is_pem(text: &str, labels: &[&str]) -> bool {
    let label = |line: &str| {
        let label = line.trim().strip_prefix("-----BEGIN ")?;
        Some(labels.contains(&label.strip_suffix("-----")?))
    };
    text.lines().filter_map(label).any(|known| known)
}

/// The table of a secret. Anything else may be the secret itself, so it is not shown.
fn open<T>(v: &Value, wanted: &str, read: impl FnOnce(&Table) -> Option<T>) -> Option<T> {
    if v.raw.is_table() {
        return v.table(read).flatten();
    }
    v.refuse_hidden(wanted);
    None
}

fn resolve(t: &Table) -> Option<String> {
    let env = t.value("env", from_environment);
    let file = t.value("file", from_file);
    env.or(file)
}

fn only_one(v: &Value, t: &Table, sources: &[&str], wanted: &str) -> Option<()> {
    let given = sources.iter().filter(|source| t.has(source)).count();
    if given != 1 {
        v.refuse_hidden(wanted);
    }
    (given == 1).then_some(())
}

/// A variable's name that cannot be one is not shown either: it may be the secret.
fn from_environment(v: &Value) -> Option<String> {
    let is_name = |n: &&str| {
        let inner = n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        inner && n.starts_with(|c: char| !c.is_ascii_digit())
    };
    let Some(name) = v.text().filter(is_name) else {
        v.refuse_hidden("give the name of an environment variable");
        return None;
    };
    let Some(value) = (v.reader.env)(name) else {
        v.refuse_because("the environment has no such variable, or not as UTF-8: set it");
        return None;
    };
    usable(v, value)
}

fn from_file(v: &Value) -> Option<String> {
    let path = path(v)?;
    match fs::read_to_string(&path) {
        Err(error) => v.refuse_because(&format!("cannot read {}: {error}", path.display())),
        Ok(mut value) => {
            trim_line_end(&mut value);
            return usable(v, value);
        }
    }
    None
}

fn trim_line_end(value: &mut String) {
    if value.ends_with('\n') {
        value.pop();
        if value.ends_with('\r') {
            value.pop();
        }
    }
}

/// A secret travels in a header, so it is plain ASCII on one line.
fn usable(v: &Value, value: String) -> Option<String> {
    if value.is_empty() {
        v.refuse_because("it is empty: put the secret there");
        return None;
    }
    if !value.chars().all(|c| c.is_ascii_graphic() || c == ' ') {
        v.refuse_because("it holds more than one line of plain ASCII: put only the secret there");
        return None;
    }
    Some(value)
}

/// The digits are not shown where they are wrong: they may be a key that was put there by mistake.
fn hash(v: &Value) -> Option<KeyHash> {
    let hash = v.text().and_then(parse_hash);
    if hash.is_none() {
        v.refuse_hidden(
            "give the SHA-256 of the key as 64 hex digits (streamgate key new prints it)",
        );
    }
    hash.map(KeyHash)
}

fn parse_hash(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect::<Option<_>>()?;
    let mut bytes = [0; 32];
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = pair.iter().fold(0, |value, digit| value << 4 | digit);
    }
    Some(bytes)
}

/// The environment of the process.
#[allow(clippy::disallowed_methods, reason = "secrets are resolved here")]
pub(super) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
