//! Whether the files that are open are still those that other processes see by their names. One that was moved or removed
//! would take writes that nobody finds again.

use crate::ledger::error::Kind;
use std::ffi::OsString;
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
            file_inode: inode(&file),
            log_inode: inode(&log),
            file,
            log,
        }
    }

    /// What was found changed.
    pub fn fault(&mut self) -> Option<(Kind, &'static str)> {
        if inode(&self.file) != self.file_inode {
            let cause = "the file was moved, replaced or removed while in use";
            return Some((Kind::Lost, cause));
        }
        let log = inode(&self.log);
        if self.log_inode.is_some() && log != self.log_inode {
            let cause = "its write-ahead log was moved, replaced or removed while in use";
            return Some((Kind::LogLost, cause));
        }
        self.log_inode = log;
        None
    }

    /// Whether another file is there now.
    pub fn is_taken(&self) -> bool {
        let there = inode(&self.file);
        there.is_some() && there != self.file_inode
    }
}

fn inode(file: &Path) -> Option<Inode> {
    let there = std::fs::metadata(file).ok()?;
    Some((there.dev(), there.ino()))
}
