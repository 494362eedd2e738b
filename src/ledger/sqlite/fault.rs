//! SQLite's errors as the ledger's: which kind it is, and in which file.

use crate::ledger::error::{Kind, LedgerError};
use rusqlite::{Error, ErrorCode};
use std::path::Path;

/// The error of a call on a database file.
pub(super) fn fault(file: &Path, error: &Error) -> LedgerError {
    LedgerError::new(file.display().to_string(), kind(error), words(error))
}

fn kind(error: &Error) -> Kind {
    const KINDS: &[(ErrorCode, Kind)] = &[
        (ErrorCode::NotADatabase, Kind::NotADatabase),
        (ErrorCode::DatabaseCorrupt, Kind::Damaged),
        (ErrorCode::ReadOnly, Kind::ReadOnly),
        (ErrorCode::PermissionDenied, Kind::ReadOnly),
        (ErrorCode::DiskFull, Kind::Full),
        (ErrorCode::DatabaseBusy, Kind::Locked),
        (ErrorCode::DatabaseLocked, Kind::Locked),
        (ErrorCode::CannotOpen, Kind::Unopenable),
        (ErrorCode::TooBig, Kind::BadEntry),
        (ErrorCode::ConstraintViolation, Kind::BadEntry),
        (ErrorCode::TypeMismatch, Kind::BadEntry),
    ];
    let Some(code) = error.sqlite_error_code() else {
        return Kind::BadEntry;
    };
    let found = KINDS.iter().find(|(c, _)| *c == code);
    found.map_or(Kind::Io, |(_, kind)| *kind)
}

fn words(error: &Error) -> String {
    match kind(error) {
        Kind::NotADatabase => "the file is not a SQLite database".into(),
        Kind::Damaged => format!("the database is damaged: {error}"),
        Kind::ReadOnly => format!("the database cannot be written: {error}"),
        Kind::Full => "the disk is full".into(),
        Kind::Locked => "another process holds the database locked".into(),
        Kind::Unopenable => format!("the database cannot be opened: {error}"),
        Kind::BadEntry => format!("an entry cannot be read or stored: {error}"),
        Kind::Missing
        | Kind::Lost
        | Kind::LogLost
        | Kind::OtherProgram
        | Kind::NewerSchema
        | Kind::OlderSchema
        | Kind::Io
        | Kind::Late
        | Kind::Closed
        | Kind::BadUrl
        | Kind::Unreachable
        | Kind::Denied
        | Kind::Standby
        | Kind::Broken => error.to_string(),
    }
}
