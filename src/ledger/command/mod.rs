//! The `streamgate ledger …` command: reads and reconciles the ledger, beside a gateway that runs or without one.

mod bill;
mod csv;
mod export;
mod list;
mod options;
mod output;
mod reconcile;
mod report;
mod show;

use super::error::LedgerError;
use super::postgres::PostgresBooks;
use super::sqlite::SqliteBooks;
use super::store::Books;
use crate::config::{self, Config, LedgerStore};
use options::{Action, Options};
use std::io::{self, BufWriter, Write};

const USAGE: &str = "usage: streamgate ledger list      [--tenant NAME] [--state STATE] [--limit N] [--format FORMAT]
       streamgate ledger show      [--tenant NAME] [--format FORMAT] ID
       streamgate ledger report    [--tenant NAME] [--format FORMAT]
       streamgate ledger export    [--tenant NAME] [--state STATE] [--format FORMAT]
       streamgate ledger reconcile [--tenant NAME] [--dry-run] FILE

FORMAT is table, csv, json or jsonl. STATE is QUEUED, RUNNING, STREAMING, COMPLETED, CANCELLED,
FAILED, open (not ended) or unknown (awaits its bill). FILE is CSV with the columns request_id,
units and, where ids are not unique, tenant; or JSONL with members of these names.";

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

/// Runs the command on the words after `ledger`, without the `-c FILE` that may be among them. The exit code: 0, 1
/// where something is unknown, did not match or failed, 64 where the words make no command.
pub fn run(args: &[String], config: &Config, out: &mut dyn Write, err: &mut dyn Write) -> u8 {
    run_on(args, &config.ledger, &mut BufWriter::new(out), err)
}

pub(super) fn run_on(
    args: &[String],
    ledger: &config::Ledger,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let ran = options::parse(args).and_then(|options| act(&options, ledger, out, err));
    let flushed = ran.and_then(|code| Ok(out.flush().map(|()| code)?));
    match flushed {
        Ok(code) => code,
        Err(failure) => explain(&failure, err),
    }
}

fn act(
    options: &Options,
    ledger: &config::Ledger,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<u8, Failure> {
    let read = || to_read(&ledger.store);
    match &options.action {
        Action::Help => Ok(writeln!(out, "{USAGE}").map(|()| 0)?),
        Action::List { limit } => list::run(&*read()?, options, *limit, out, err),
        Action::Show(id) => show::run(&*read()?, options, id, out),
        Action::Report => report::run(&*read()?, options, out),
        Action::Export => export::run(&*read()?, options, out, err),
        Action::Reconcile { file, dry } => {
            let bill = bill::read(file, options.tenant.as_ref())?;
            let mut books = to_reconcile(&ledger.store)?;
            reconcile::run(&mut *books, &bill, *dry, out)
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

/// Says why a command ended early. A reader that has seen enough (`| head`) is no failure.
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
