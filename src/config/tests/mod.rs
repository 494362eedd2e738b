//! What the checked configuration promises, shown on whole files.

mod conf;
mod findings;
mod shown;
mod values;

use super::check::check as read;
use super::findings::Findings;
use super::{Config, KeyHash};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use toml::de::{DeTable, DeValue};

/// What every file needs, to be put below a few lines under test.
const BASE: &str = r#"
[[listen]]
addr = "127.0.0.1:18080"
[[pool]]
name = "base"
models = ["base"]
backends = [{ addr = "127.0.0.1:18000" }]
"#;

/// A config folder of its own, gone when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(files: &[(&str, &str)]) -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "streamgate-config-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        for (name, content) in files {
            fs::write(folder.join(name), content).unwrap();
        }
        Scratch(folder)
    }

    /// With the files that the uncommented `conf/streamgate.toml` names.
    fn with_certificates() -> Scratch {
        const CERT: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
        const KEY: &str = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n";
        let mut files: Vec<(&str, &str)> = ["a.pem", "b.pem", "c.pem", "ca.pem"]
            .map(|f| (f, CERT))
            .to_vec();
        files.extend(["a.key", "b.key", "c.key"].map(|f| (f, KEY)));
        files.extend([
            ("local.key", "sk-in-local-file\n"),
            ("llama.key", "sk-in-llama-file\r\n"),
        ]);
        Scratch::new(&files)
    }

    fn file(&self) -> PathBuf {
        self.0.join("streamgate.toml")
    }

    fn read(&self, text: &str) -> (Config, Findings, BTreeSet<String>) {
        let (config, outcome) = read(text, &self.file(), &environment);
        (config, Findings::new(outcome.findings), outcome.known)
    }

    /// The configuration of a text that is in order.
    fn good(&self, text: &str) -> Config {
        let (config, findings, _) = self.read(text);
        assert!(findings.is_empty(), "{findings}\n--- in\n{text}");
        config
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

/// Every variable is set, but for those that say otherwise.
fn environment(name: &str) -> Option<String> {
    match name {
        "UNSET" => None,
        "EMPTY" => Some(String::new()),
        "TWO_LINES" => Some("a\nb".to_owned()),
        name => Some(format!("sk-in-env-{name}")),
    }
}

/// The configuration of a few lines that are in order, above what every file needs.
fn good(lines: &str) -> Config {
    Scratch::new(&[]).good(&format!("{lines}{BASE}"))
}

/// The findings of a few lines above what every file needs, as `LINE:COL: message`.
fn found(lines: &str) -> Vec<String> {
    let scratch = Scratch::new(&[]);
    let (_, findings, _) = scratch.read(&format!("{lines}{BASE}"));
    let place = format!("{}:", scratch.file().display());
    let folder = format!("{}/", scratch.0.display());
    findings
        .lines()
        .map(|line| {
            line.strip_prefix(&place)
                .unwrap()
                .replace(&folder, "FOLDER/")
        })
        .collect()
}

/// The findings of some lines are exactly these.
fn check(lines: &str, expected: &[&str]) {
    assert_eq!(found(lines), expected, "in\n{lines}");
}

fn conf(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("conf")
        .join(name)
}

/// `conf/streamgate.toml`, and the same with every setting in effect.
fn commented() -> (String, String) {
    let text = fs::read_to_string(conf("streamgate.toml")).unwrap();
    let setting = |line: &str| {
        let off = line
            .strip_prefix('#')
            .filter(|l| !l.is_empty() && !l.starts_with(' '));
        off.unwrap_or(line).to_owned()
    };
    let full: Vec<String> = text.lines().map(setting).collect();
    (text, full.join("\n"))
}

/// A value of a file: the path of its key and its bytes; no place where it has a header instead of a value.
struct Written {
    path: String,
    span: Option<std::ops::Range<usize>>,
}

fn written(text: &str) -> Vec<Written> {
    let table = DeTable::parse(text).unwrap();
    let mut all = Vec::new();
    walk(text, "", table.get_ref(), &mut all);
    all
}

fn walk(text: &str, path: &str, table: &DeTable, all: &mut Vec<Written>) {
    for (key, value) in table {
        let path = format!("{path}.{}", key.get_ref());
        value_at(text, path.trim_start_matches('.'), value, all);
    }
}

fn value_at(text: &str, path: &str, value: &toml::Spanned<DeValue>, all: &mut Vec<Written>) {
    let span = value.span();
    let is_header = |line: &str| {
        line.starts_with("[[") || (line.starts_with('[') && value.get_ref().is_table())
    };
    let span = (!is_header(&text[span.clone()])).then_some(span);
    all.push(Written {
        path: path.to_owned(),
        span,
    });
    match value.get_ref() {
        DeValue::Table(table) => walk(text, path, table, all),
        DeValue::Array(list) => list.iter().for_each(|v| value_at(text, path, v, all)),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => {}
    }
}

/// The keys of a file. The names of headers are the user's own and none.
fn keys(text: &str) -> BTreeSet<String> {
    let is_key = |path: &String| !path.contains(".set.");
    let paths = written(text).into_iter().map(|w| w.path);
    paths
        .filter(is_key)
        .map(|path| either_form(&path))
        .collect()
}

/// A secret stands in one of two forms; both count as one key.
fn either_form(path: &str) -> String {
    let is_secret = |path: &str| {
        ["token", "keys", "api_key"]
            .iter()
            .any(|s| path.ends_with(s))
    };
    match path.strip_suffix(".env").or(path.strip_suffix(".file")) {
        Some(secret) if is_secret(secret) => format!("{secret}.env|file"),
        Some(_) | None => path.to_owned(),
    }
}
