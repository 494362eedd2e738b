//! The files in `conf/`: all of them are in order, and the commented one knows every key.

use super::*;
use crate::config::{ModelSet, show};
use sha2::{Digest, Sha256};

#[test]
fn every_file_passes_without_an_environment() {
    let mut seen = Vec::new();
    for entry in fs::read_dir(conf("")).unwrap() {
        let file = entry.unwrap().path();
        if file.extension().is_some_and(|e| e == "toml") {
            let text = fs::read_to_string(&file).unwrap();
            let (_, outcome) = read(&text, &file, &|_| None);
            let findings = Findings::new(outcome.findings);
            assert!(findings.is_empty(), "{findings}");
            seen.push(file);
        }
    }
    assert!(
        seen.contains(&conf("streamgate.toml")) && seen.len() > 5,
        "{seen:?}"
    );
}

#[test]
fn the_commented_file_names_every_known_key_and_no_other() {
    let scratch = Scratch::with_certificates();
    let (_, full) = commented();
    let (_, findings, known) = scratch.read(&full);
    assert!(findings.is_empty(), "{findings}");
    let known: BTreeSet<String> = known.iter().map(|key| either_form(key)).collect();
    assert_eq!(keys(&full), known);
}

#[test]
fn a_wrong_type_is_found_at_its_place_for_every_key() {
    let scratch = Scratch::with_certificates();
    let (_, full) = commented();
    // No key takes a date.
    let wrong = "1979-05-27";
    let mut tried = BTreeSet::new();
    for Written { path, span } in written(&full) {
        let text = match &span {
            Some(span) => format!("{}{wrong}{}", &full[..span.start], &full[span.end..]),
            None if path.contains('.') => panic!("{path} is to be written inline"),
            None => format!("{path} = {wrong}\n"),
        };
        let at = span.map_or(path.len() + 3, |s| s.start);
        let line = text[..at].matches('\n').count() + 1;
        let column = text[..at]
            .lines()
            .next_back()
            .map_or(0, |l| l.chars().count())
            + 1;
        let (_, findings, _) = scratch.read(&text);
        let here = findings
            .iter()
            .find(|f| (f.line, f.column) == (line, column) && f.message.starts_with(&path));
        assert!(
            here.is_some(),
            "{path} at {line}:{column}, found:\n{findings}"
        );
        tried.insert(path);
    }
    assert!(tried.len() > 150, "only {} keys", tried.len());
}

#[test]
fn what_is_not_commented_out_is_the_default() {
    let scratch = Scratch::with_certificates();
    let (text, _) = commented();
    let commented = show(&scratch.good(&text));
    let left_out = show(&scratch.good(&format!("{BASE}[[tenant]]\nname = \"t\"\nkeys = []\n")));
    let example = ["addr", "name", "anonymous", "models", "backends", "[admin]"];
    let defaults = |shown: &str| -> BTreeSet<String> {
        let is_example = |line: &&str| example.iter().any(|e| line.split(" = ").next() == Some(*e));
        shown
            .lines()
            .filter(|line| !is_example(line))
            .map(str::to_owned)
            .collect()
    };
    let (with, without) = (defaults(&commented), defaults(&left_out));
    let odd: Vec<_> = with.symmetric_difference(&without).collect();
    assert_eq!(
        odd,
        ["# token: none"],
        "as commented:\n{commented}\nas left out:\n{left_out}"
    );
}

#[test]
fn the_demo_serves_its_tenant_with_and_without_the_key_it_prints() {
    let text = fs::read_to_string(conf("demo.toml")).unwrap();
    let config = Scratch::new(&[]).good(&text);
    let [tenant] = config.tenants.as_slice() else {
        panic!("{:?}", config.tenants);
    };
    let key = KeyHash(Sha256::digest("sk-demo-streamgate").into());
    assert_eq!((tenant.name.as_str(), tenant.anonymous), ("demo", true));
    assert_eq!(
        (tenant.keys.as_slice(), &tenant.models),
        ([key].as_slice(), &ModelSet::All)
    );
    assert!(
        config.not_in_effect.is_empty(),
        "{:?}",
        config.not_in_effect
    );
}
