//! From a file's text to the configuration, or to everything that is wrong with it.

use super::findings::{Findings, Lines};
use super::models::Claims;
use super::reader::{Env, Outcome, Reader, Table};
use super::{Config, RouteKind};
use super::{cluster, ledger, listen, logging, pool, route, secrets, server, source, tenant};
use std::fs;
use std::path::{Path, PathBuf};

/// Reads and checks a file.
///
/// # Errors
/// Everything that is wrong with it, also where it cannot be read.
pub fn load(file: &Path) -> Result<Config, Findings> {
    load_in(file, &secrets::environment)
}

/// Reads and checks a file for a command beside the gateway: tenants' keys and other secrets of the gateway's
/// environment need not be in the command's own. One that the command itself needs is of no use where it is not.
///
/// # Errors
/// As `load`.
pub fn load_beside(file: &Path) -> Result<Config, Findings> {
    let env = |name: &str| {
        let unset = || format!("the variable {name} is not set");
        Some(secrets::environment(name).unwrap_or_else(unset))
    };
    load_in(file, &env).or_else(|_| load(file))
}

fn load_in(file: &Path, env: Env) -> Result<Config, Findings> {
    let unreadable = |message| {
        let finding = Lines::new(file, "").finding(0, message);
        Findings::new(vec![finding])
    };
    let bytes = fs::read(file).map_err(|e| unreadable(format!("cannot be read: {e}")))?;
    match String::from_utf8(bytes) {
        Ok(text) => parse_in(&text, file, env),
        Err(error) => Err(not_utf8(file, error.as_bytes())),
    }
}

/// Checks a text as if it stood in `file`, which need not exist: relative paths start at its folder.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(text: &str, file: &Path) -> Result<Config, Findings> {
    parse_in(text, file, &secrets::environment)
}

fn parse_in(text: &str, file: &Path, env: Env) -> Result<Config, Findings> {
    let (config, outcome) = check(text, file, env);
    let findings = Findings::new(outcome.findings);
    if findings.is_empty() {
        Ok(config)
    } else {
        Err(findings)
    }
}

fn not_utf8(file: &Path, bytes: &[u8]) -> Findings {
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let message = "the file is not UTF-8 from here on: save it as UTF-8".to_owned();
    let finding = Lines::new(file, valid).finding(valid.len(), message);
    Findings::new(vec![finding])
}

/// The configuration as far as it could be read (to be used only where there are no findings), and what was found.
pub(super) fn check(text: &str, file: &Path, env: Env) -> (Config, Outcome) {
    let lines = Lines::new(file, text);
    let mut spare = String::new();
    let source = source::read(text, &mut spare, &lines);
    // Absolute, as the process may leave the folder it started in.
    let home = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let folder = home.parent().map_or_else(PathBuf::new, Path::to_owned);
    let reader = Reader::new(&lines, folder, env, !source.errors.is_empty());
    let mut config = reader.root(&source.root, |t| root(t, home));
    let mut outcome = reader.finish();
    outcome.findings.extend(source.errors);
    let pending = std::mem::take(&mut outcome.pending);
    config.not_in_effect = Findings::new(pending).lines().collect();
    (config, outcome)
}

fn root<'r>(t: &Table<'r>, file: PathBuf) -> Config {
    let server = t.section("server", server::read);
    let listeners = listen::Taken::new(t.reader);
    let routes = route::Taken::new(t.reader);
    let tenants = tenant::Seen::new(t.reader);
    let pools = Claims::new(t.reader);
    let config = Config {
        listen: t.tables("listen", |t| listen::read(t, &listeners)),
        admin: t.table("admin", |t| listen::read_admin(t, &listeners)),
        log: t.section("log", logging::read),
        ledger: t.section("ledger", |t| ledger::read(t, &server.data_dir)),
        tenants: t.tables("tenant", |t| tenant::read(t, &tenants)),
        pools: t.tables("pool", |t| pool::read(t, &pools)),
        routes: t.tables("route", |t| route::read(t, &routes)),
        shed: t.table("shed", cluster::read_shed),
        cluster: t.table("cluster", cluster::read),
        not_in_effect: Vec::new(),
        unlisted_keys: tenants.unlisted.take(),
        server,
        file,
    };
    pools.check(&config.pools);
    check_whole(t, &config);
    config
}

/// What only the whole file can show to be missing.
fn check_whole(t: &Table, config: &Config) {
    if t.lacks("listen") {
        t.missing("listen", "at least one [[listen]] with its addr");
    }
    let serves_llm = |kind: &RouteKind| matches!(kind, RouteKind::Llm);
    let needs_pool = config.routes.is_empty() || config.routes.iter().any(|r| serves_llm(&r.kind));
    if needs_pool && t.lacks("pool") {
        t.missing(
            "pool",
            "at least one [[pool]] for the models, or only routes of other kinds",
        );
    }
}
