//! Whether the files that are open are still those that other processes see by their names. One that was moved or removed
//! would take writes that nobody finds again.

use crate::ledger::error::Kind;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

type Inode = (u64, u64);

/// A database file and its write-ahead log, as they were when they were opened.
#[derive(Debug)]
pub(super) struct Place {
    pub file: PathBuf,
    log: PathBuf,
    file_inode: Option<Inode>,
    /// Not known as long as nobody has made it.
    log_inode: Option<Inode>,
}

impl Place {
    /// Of a file that is open.
    pub fn of(file: PathBuf) -> Place {
        let mut log: OsString = file.clone().into_os_string();
        log.push("-wal");
        let log = PathBuf::from(log);
        Place {
            file_inode: inode(&file).ok().flatten(),
            log_inode: inode(&log).ok().flatten(),
            file,
            log,
        }
    }

    /// What was found changed.
    pub fn fault(&mut self) -> Option<(Kind, String)> {
        let (file, log) = match (inode(&self.file), inode(&self.log)) {
            (Ok(file), Ok(log)) => (file, log),
            (Err(e), _) | (_, Err(e)) => return Some((Kind::Unopenable, e.to_string())),
        };
        if file != self.file_inode {
            let cause = "the file was moved, replaced or removed while in use";
            return Some((Kind::Lost, cause.to_owned()));
        }
        if self.log_inode.is_some() && log != self.log_inode {
            let cause = "its write-ahead log was moved, replaced or removed while in use";
            return Some((Kind::LogLost, cause.to_owned()));
        }
        self.log_inode = log;
        None
    }

    /// Whether another file is there now.
    pub fn is_taken(&self) -> bool {
        let there = inode(&self.file).ok().flatten();
        there.is_some() && there != self.file_inode
    }

    /// Renames a log that could not be brought into its file: by its name, it would pass for that of any other.
    pub fn set_log_aside(&self) -> io::Result<()> {
        if self.log_inode.is_none() || inode(&self.log)? != self.log_inode {
            return Ok(());
        }
        let mut aside = self.log.clone().into_os_string();
        aside.push(".lost");
        std::fs::rename(&self.log, aside)
    }
}

fn inode(file: &Path) -> io::Result<Option<Inode>> {
    match std::fs::metadata(file) {
        Ok(there) => Ok(Some((there.dev(), there.ino()))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
