//! What goes wrong between us and a server, as the ledger's errors.

use crate::ledger::error::{Kind, LedgerError};
use crate::ledger::stored::Misread;
use std::error::Error as _;
use std::time::Duration;
use tokio_postgres::Error;

#[derive(Debug)]
pub(super) enum Fault {
    /// While a connection was made.
    Connecting(Error),
    Postgres(Error),
    /// No answer in time. What was asked may happen all the same.
    Late(Duration),
    /// There is no connection.
    Lost,
    Row(Misread),
    Column(Error),
    Record(serde_json::Error),
    Refused(LedgerError),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Postgres(error)
    }
}

impl From<Misread> for Fault {
    fn from(misread: Misread) -> Fault {
        Fault::Row(misread)
    }
}

impl Fault {
    pub fn is_of_one_entry(&self) -> bool {
        self.kind() == Kind::BadEntry
    }

    /// Whether the connection is of no use any more.
    pub fn ends_the_connection(&self) -> bool {
        matches!(self.kind(), Kind::Unreachable | Kind::Standby)
    }

    pub fn at(self, place: &str) -> LedgerError {
        let kind = self.kind();
        let words = match &self {
            Fault::Refused(_) => String::new(),
            Fault::Connecting(e) => format!("cannot connect: {}", reason(e)),
            Fault::Postgres(e) => format!("{}: {}", what_happened(kind), reason(e)),
            Fault::Late(limit) => format!("its server did not answer within {limit:?}"),
            Fault::Lost => "the connection to its server is lost".into(),
            Fault::Row(e) => format!("an entry cannot be read: {e}"),
            Fault::Column(e) => format!("a row cannot be read: {e}"),
            Fault::Record(e) => format!("an entry cannot be stored: {e}"),
        };
        match self {
            Fault::Refused(error) => error,
            Fault::Connecting(_)
            | Fault::Postgres(_)
            | Fault::Late(_)
            | Fault::Lost
            | Fault::Row(_)
            | Fault::Column(_)
            | Fault::Record(_) => LedgerError::new(place, kind, words),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Fault::Connecting(e) | Fault::Postgres(e) => match e.code() {
                Some(state) => kind_of(state.code()),
                None => Kind::Unreachable,
            },
            Fault::Late(_) | Fault::Lost => Kind::Unreachable,
            Fault::Row(_) | Fault::Column(_) | Fault::Record(_) => Kind::BadEntry,
            Fault::Refused(error) => error.kind(),
        }
    }
}

/// By SQLSTATE: <https://www.postgresql.org/docs/current/errcodes-appendix.html>.
fn kind_of(state: &str) -> Kind {
    match state {
        "53100" => return Kind::Full,
        "55P03" | "40P01" | "40001" => return Kind::Locked,
        "57014" => return Kind::Late,
        "25006" => return Kind::Standby,
        "42501" | "3D000" => return Kind::Denied,
        _ => {}
    }
    match state.get(..2).unwrap_or_default() {
        "28" => Kind::Denied,
        "58" => Kind::Io,
        "21" | "22" | "23" | "54" | "P0" => Kind::BadEntry,
        "0A" | "26" | "3F" | "42" | "XX" => Kind::Broken,
        _ => Kind::Unreachable,
    }
}

fn what_happened(kind: Kind) -> &'static str {
    match kind {
        Kind::Full => "the disk of its server is full",
        Kind::Locked => "another process holds the database locked",
        Kind::Late => "its server takes too long",
        Kind::Standby => "the database cannot be written",
        Kind::Denied => "its server refuses",
        Kind::BadEntry => "an entry cannot be read or stored",
        Kind::Io => "its server cannot use its disk",
        Kind::Broken => "the database is damaged or was changed",
        Kind::Unreachable => "the connection to its server is lost",
        Kind::BadUrl
        | Kind::Missing
        | Kind::Unopenable
        | Kind::NotADatabase
        | Kind::Lost
        | Kind::LogLost
        | Kind::OtherProgram
        | Kind::NewerSchema
        | Kind::OlderSchema
        | Kind::Damaged
        | Kind::ReadOnly
        | Kind::Closed => "it failed",
    }
}

/// The innermost cause, on one line.
fn reason(error: &Error) -> String {
    if let Some(told) = error.as_db_error() {
        return one_line(told.message());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = inner.to_string();
        cause = inner.source();
    }
    one_line(&text)
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}
