//! The `streamgate ledger …` command: reads and reconciles the ledger, beside a gateway that runs or without one.

mod bill;
mod contradiction;
mod csv;
mod export;
mod list;
mod options;
mod output;
mod reconcile;
mod report;
mod show;
mod stranger;

use super::error::LedgerError;
use super::postgres::PostgresBooks;
use super::sqlite::SqliteBooks;
use super::store::Books;
use crate::config::{self, Config, LedgerStore};
use crate::tenant::TenantName;
use options::{Action, Options};
use std::io::{self, BufWriter, Write};

const USAGE: &str = "usage: streamgate ledger list      [--tenant NAME] [--state STATE] [--limit N] [--format FORMAT]
       streamgate ledger show      [--tenant NAME] [--format FORMAT] ID
       streamgate ledger report    [--tenant NAME] [--format FORMAT]
       streamgate ledger export    [--tenant NAME] [--state STATE] [--format FORMAT]
       streamgate ledger reconcile [--tenant NAME] [--dry-run] FILE

NAME is of a tenant, of the config or of the ledger. STATE is QUEUED, RUNNING, STREAMING, COMPLETED,
CANCELLED, FAILED, open (not ended; such an entry is shown as the gateway last wrote it) or unknown
(awaits its bill). FORMAT is table, csv, json or jsonl; left out, show writes json, export jsonl, list
and report a table.

list shows the newest entries, 50 where --limit names no other number; export all that are kept,
oldest first. report sums by day of admission (UTC), tenant and model what ended, also what is not
kept any more.

FILE is CSV whose first line names the columns request_id, units and, where ids are not unique,
tenant; or JSONL with members of these names. Units are whole, from 0 to 1000000000. Other columns
are let be. A file with a line that cannot be read changes nothing; of an id whose lines disagree
nothing is settled; a line that was settled before changes nothing.

Exit codes: 0; 1 where something failed, is not there, or lines of the bill did not match; 64 where
the words make no command.";

/// What ends a command early.
#[derive(Debug)]
enum Failure {
    /// The words make no command.
    Usage(String),
    /// It was a command, and it failed; in words.
    Said(String),
    Ledger(LedgerError),
    Output(io::Error),
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Failure {
        Failure::Ledger(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

/// The usage, where it is what the words after `ledger` ask for: no config is needed for it.
pub fn help(args: &[String]) -> Option<&'static str> {
    let asks = |options: Options| matches!(options.action, Action::Help);
    options::parse(args).is_ok_and(asks).then_some(USAGE)
}

/// Runs the command on the words after `ledger`, without the `-c FILE` that may be among them. The exit code: 0, 1
/// where something is unknown, did not match or failed, 64 where the words make no command.
pub fn run(args: &[String], config: &Config, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    let tenants: Vec<&TenantName> = config.tenants.iter().map(|t| &t.name).collect();
    run_on(
        args,
        &config.ledger,
        &tenants,
        &mut BufWriter::new(out),
        err,
    )
}

/// `tenants` are those of the config.
pub(super) fn run_on(
    args: &[String],
    ledger: &config::Ledger,
    tenants: &[&TenantName],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let ran =
        options::parse(args).and_then(|options| act(&options, &ledger.store, tenants, out, err));
    match ran.and_then(|code| Ok(unless_left(out.flush()).map(|()| code)?)) {
        Ok(code) => code,
        Err(failure) => explain(&failure, err),
    }
}

/// A reader that has seen enough (`| head`) is no failure.
fn unless_left(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

fn act(
    options: &Options,
    store: &LedgerStore,
    tenants: &[&TenantName],
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let read = || {
        let books = to_read(store)?;
        stranger::refuse(&*books, options, tenants)?;
        Ok::<_, Failure>(books)
    };
    match &options.action {
        Action::Help => Ok(writeln!(out, "{USAGE}").map(|()| 0)?),
        Action::List { limit } => list::run(&*read()?, options, *limit, out, err),
        Action::Show(id) => show::run(&*read()?, options, id, out),
        Action::Report => report::run(&*read()?, options, out),
        Action::Export => export::run(&*read()?, options, out, err),
        Action::Reconcile { file, dry } => {
            let bill = bill::read(file, options.tenant.as_ref())?;
            let mut books = to_reconcile(store)?;
            stranger::refuse(&*books, options, tenants)?;
            reconcile::run(&mut *books, &bill, file, *dry, out)
        }
    }
}

fn to_read(store: &LedgerStore) -> Result<Box<dyn Books>, LedgerError> {
    Ok(match store {
        LedgerStore::Sqlite(file) => Box::new(SqliteBooks::to_read(file)?),
        LedgerStore::Postgres(url) => Box::new(PostgresBooks::to_read(url)?),
    })
}

fn to_reconcile(store: &LedgerStore) -> Result<Box<dyn Books>, LedgerError> {
    Ok(match store {
        LedgerStore::Sqlite(file) => Box::new(SqliteBooks::to_reconcile(file)?),
        LedgerStore::Postgres(url) => Box::new(PostgresBooks::to_reconcile(url)?),
    })
}

/// Says why a command ended early. Where its reader left, it did what it was asked to.
fn explain(failure: &Failure, err: &mut dyn Write) -> u8 {
    let (text, code) = match failure {
        Failure::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => return 0,
        Failure::Output(e) => (format!("cannot write the output: {e}"), 1),
        Failure::Usage(why) => (format!("{why}\n{USAGE}"), 64),
        Failure::Said(why) => (why.clone(), 1),
        Failure::Ledger(e) => (e.to_string(), 1),
    };
    // Where even the error stream is closed, the exit code has to do.
    writeln!(err, "{text}").map_or(code, |()| code)
}
