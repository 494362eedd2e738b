//! `-t` and `-T`: every finding at once, with its place; nothing bound, nothing secret shown.

use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::process::{run, run_in};
use crate::support::scratch::Scratch;
use crate::support::script::tokens;
use crate::support::sha256;
use crate::support::wait::ms;
use std::path::Path;

/// Runs `-t` on a config; gives the exit code and the findings as (line, column, message).
fn findings(config: &str) -> (i32, Vec<(usize, usize, String)>) {
    let scratch = Scratch::new();
    let file = scratch.write("bad.toml", config);
    let ran = run_in(scratch.path(), &["-t", "-c", &file.display().to_string()]);
    let place = |line: &str| {
        let (_, rest) = line.split_once("bad.toml:")?;
        let mut parts = rest.splitn(3, ':');
        let (line, column) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some((line, column, parts.next()?.trim().to_owned()))
    };
    (ran.code, ran.all().lines().filter_map(place).collect())
}

#[test]
fn a_good_config_passes_beside_the_running_process_and_binds_nothing() {
    let engine = Engine::scripted(tokens(1, ms(0)));
    let gateway = Gateway::before(&engine);
    let ran = gateway.command(&["-t"]);
    assert_eq!(ran.code, 0, "{}", ran.all());
}

#[test]
fn every_finding_is_told_with_its_line_and_column() {
    let hash = sha256("k");
    let wrong = [
        ("threds = 4", "threds"),
        ("max_body = \"32 fathoms\"", "fathoms"),
        ("balance = \"fastest\"", "fastest"),
        ("max_streams = -3", "max_streams"),
        ("hartbeat = \"1s\"", "hartbeat"),
    ];
    let config = format!(
        "[server]\n{}\n{}\n[[listen]]\naddr = \"127.0.0.1:1\"\n[[tenant]]\nname = \"a\"\nkeys = [{{ sha256 = \"{hash}\" }}]\n{}\n\
         [[pool]]\nname = \"p\"\nmodels = [\"m\"]\n{}\nbackends = [{{ addr = \"127.0.0.1:1\" }}]\n{}\n",
        wrong[0].0, wrong[1].0, wrong[3].0, wrong[2].0, wrong[4].0
    );
    let (code, found) = findings(&config);
    assert_eq!(code, 64, "{found:?}");
    for (line, word) in wrong {
        let number = config.lines().position(|l| l == line).unwrap() + 1;
        let told = found.iter().find(|(at, ..)| *at == number);
        let (_, column, message) =
            told.unwrap_or_else(|| panic!("no finding in line {number} for {line:?}: {found:?}"));
        assert!(
            (1..=line.len()).contains(column),
            "column {column} of {line:?}"
        );
        assert!(message.contains(word), "{message:?} does not name {word:?}");
    }
    assert_eq!(found.len(), wrong.len(), "{found:?}");
}

#[test]
fn a_file_that_is_no_toml_is_one_finding_at_its_place() {
    let (code, found) = findings("[server]\nthreads = 1\n[[listen]\naddr = \"x\"\n");
    assert_eq!(code, 64);
    assert_eq!(
        found.iter().map(|(line, ..)| *line).collect::<Vec<_>>(),
        [3],
        "{found:?}"
    );
}

#[test]
fn a_bad_file_stops_the_start_as_it_fails_the_test() {
    let scratch = Scratch::new();
    let file = scratch
        .write("bad.toml", "nonsense = 1\n")
        .display()
        .to_string();
    assert_eq!(run_in(scratch.path(), &["-c", &file]).code, 64);
    let missing = scratch.join("missing.toml").display().to_string();
    let ran = run_in(scratch.path(), &["-t", "-c", &missing]);
    assert_eq!(ran.code, 64);
    assert!(ran.all().contains("missing.toml"), "{}", ran.all());
}

#[test]
fn the_effective_config_is_printed_without_its_secrets() {
    let scratch = Scratch::new();
    let secret = "sk-upstream-77aa55";
    scratch.write("upstream.key", format!("{secret}\n"));
    let hash = sha256("k");
    let config = format!(
        "[server]\ndata_dir = \"data\"\n[[listen]]\naddr = \"127.0.0.1:1\"\n[[tenant]]\nname = \"a\"\nkeys = [{{ sha256 = \"{hash}\" }}]\n\
         [[pool]]\nname = \"p\"\nmodels = [\"m\"]\nmax_streams = 77\napi_key = {{ file = \"upstream.key\" }}\n\
         backends = [{{ addr = \"127.0.0.1:1\" }}]\n"
    );
    let file = scratch.write("good.toml", config).display().to_string();
    let ran = run_in(scratch.path(), &["-T", "-c", &file]);
    assert_eq!(ran.code, 0, "{}", ran.all());
    for part in ["max_streams", "77", "heartbeat", "15s"] {
        assert!(ran.out.contains(part), "{part:?} is missing: {}", ran.out);
    }
    assert!(!ran.all().contains(secret), "the secret is shown");
}

#[test]
fn every_file_in_conf_passes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf");
    let files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        .collect();
    assert!(
        files.iter().any(|file| file.ends_with("streamgate.toml")),
        "{files:?}"
    );
    for file in files {
        let ran = run_in(&folder, &["-t", "-c", &file.display().to_string()]);
        assert_eq!(ran.code, 0, "{}: {}", file.display(), ran.all());
    }
}

#[test]
fn wrong_usage_is_exit_64_and_says_so() {
    for args in [
        &["--no-such-flag"][..],
        &["no-such-command"],
        &["-c"],
        &["ledger", "dance"],
        &["key", "new"],
        &["sim", "--no-such-flag"],
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 64, "{args:?}: {}", ran.all());
        assert!(
            !ran.all().trim().is_empty(),
            "{args:?} fails without a word"
        );
        assert!(!ran.all().contains("panicked"), "{args:?}: {}", ran.all());
    }
}
