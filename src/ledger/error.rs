//! What can go wrong with the ledger, in words an operator can act on: which ledger, what happened, what to do.

use std::fmt;

/// A failure of the ledger. Cheap enough to hand to every request that waits for the same commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerError {
    place: String,
    kind: Kind,
    cause: String,
}

/// The kinds of failure, each with its own advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    BadUrl,
    Missing,
    Unopenable,
    /// A file that was there at the start, and is no more.
    Lost,
    /// What stood beside it was there, and is no more.
    LogLost,
    /// A server that does not answer, or a connection that was lost.
    Unreachable,
    Denied,
    /// A server that follows another one and takes no writes.
    Standby,
    NotADatabase,
    OtherProgram,
    NewerSchema,
    OlderSchema,
    Damaged,
    /// As `Damaged`, of a server's database.
    Broken,
    ReadOnly,
    Full,
    Locked,
    Io,
    /// One entry only; the others are fine.
    BadEntry,
    Late,
    Closed,
}

impl LedgerError {
    pub(super) fn new(place: impl Into<String>, kind: Kind, cause: impl Into<String>) -> Self {
        LedgerError {
            place: place.into(),
            kind,
            cause: cause.into(),
        }
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether only the entry at hand is to blame, so that trying the same again is useless.
    pub fn is_of_one_entry(&self) -> bool {
        self.kind == Kind::BadEntry
    }

    /// Whether an entry may be to blame, and others could succeed.
    pub(super) fn may_be_of_one_entry(&self) -> bool {
        matches!(
            self.kind,
            Kind::BadEntry | Kind::Damaged | Kind::Broken | Kind::Io
        )
    }

    /// Whether another process holds the ledger's lock.
    pub fn is_locked(&self) -> bool {
        self.kind == Kind::Locked
    }

    /// Whether the disk, or the quota, is full.
    pub fn is_full(&self) -> bool {
        self.kind == Kind::Full
    }

    /// Whether a reader that may not write could fail so on a ledger that is fine.
    pub(super) fn may_be_for_want_of_writing(&self) -> bool {
        matches!(self.kind, Kind::ReadOnly | Kind::Unopenable | Kind::Io)
    }

    /// Whether a fresh connection may mend it.
    pub(super) fn asks_for_reopening(&self) -> bool {
        matches!(
            self.kind,
            Kind::Damaged
                | Kind::Broken
                | Kind::NotADatabase
                | Kind::Io
                | Kind::ReadOnly
                | Kind::Unopenable
                | Kind::Lost
                | Kind::LogLost
                | Kind::Unreachable
                | Kind::Denied
                | Kind::Standby
        )
    }
}

impl Kind {
    fn advice(self) -> &'static str {
        match self {
            Kind::BadUrl => "correct `ledger.url`",
            Kind::Missing => "start the gateway once to make it, or correct `ledger.url`",
            Kind::Unopenable => "check the folder, its owner and `ledger.url`",
            Kind::Lost => "put it back, or restart to begin a new ledger without its charges",
            Kind::LogLost => {
                "leave the files beside a database in use alone; nothing is lost while this process runs"
            }
            Kind::Unreachable => "check that its server runs and that `ledger.url` names it",
            Kind::Denied => "check the user, its password and its rights, and `ledger.url`",
            Kind::Standby => "name the server that takes writes in `ledger.url`",
            Kind::NotADatabase => "move the file away, or name another one in `ledger.url`",
            Kind::OtherProgram => "name another database in `ledger.url`",
            Kind::NewerSchema => {
                "run the newer streamgate, or name another database in `ledger.url`"
            }
            Kind::OlderSchema => "start the gateway once, it brings the ledger up to date",
            Kind::Damaged => {
                "restore the file from a backup, or mend it with `sqlite3 FILE .recover`"
            }
            Kind::Broken => "restore the database from a backup",
            Kind::ReadOnly => {
                "give the user that runs streamgate write access to the file and its folder"
            }
            Kind::Full => "free space on its disk",
            Kind::Locked => "end the process that holds its lock",
            Kind::Io => "check its disk",
            Kind::BadEntry => "the other entries are not affected",
            Kind::Late => "its disk is slow or its lock is held; see the log",
            Kind::Closed => "the gateway is stopping",
        }
    }
}

impl fmt::Display for LedgerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ledger {}: {} ({})",
            self.place,
            self.cause,
            self.kind.advice()
        )
    }
}

impl std::error::Error for LedgerError {}
