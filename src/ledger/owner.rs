//! Which run of which process owns an open entry, and whether that process still lives: a run holds the lock of a file
//! named after it, beside the database, and the system gives the lock back when the process ends, however it ends.

use super::entry::RunId;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A name no other run has.
pub(super) fn fresh_run() -> RunId {
    RunId::from(uuid::Uuid::now_v7().to_string())
}

/// Whether a text is the name of a run.
pub(super) fn is_run(name: &str) -> bool {
    uuid::Uuid::try_parse(name).is_ok()
}

/// Where the locks of a database's owners are: `ledger.db-owners`.
pub(super) fn folder(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(OsString::from("-owners"));
    PathBuf::from(name)
}

/// The lock of a living run. Dropped, the run counts as dead.
#[derive(Debug)]
pub(super) struct OwnerLock {
    path: PathBuf,
    file: File,
}

impl OwnerLock {
    /// Makes and locks the file of a run. Tries again where a process that tidies up removed it in between.
    pub fn take(folder: &Path, run: &str) -> io::Result<OwnerLock> {
        fs::create_dir_all(folder)?;
        let path = folder.join(run);
        loop {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)?;
            file.lock()?;
            let lock = OwnerLock {
                path: path.clone(),
                file,
            };
            if lock.is_in_place() {
                return Ok(lock);
            }
        }
    }

    /// Whether the file is still the one that other processes look at.
    pub fn is_in_place(&self) -> bool {
        let ours = self.file.metadata().map(|m| (m.dev(), m.ino()));
        let there = fs::metadata(&self.path).map(|m| (m.dev(), m.ino()));
        matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
    }

    /// Removes the file, then gives the lock back.
    pub fn give_back(self) {
        if let Err(e) = fs::remove_file(&self.path) {
            log::debug!("cannot remove {}: {e}", self.path.display());
        }
    }
}

/// Whether a run's process is dead. One whose lock cannot be tried is taken for alive.
pub(super) fn is_dead(folder: &Path, run: &str) -> bool {
    match File::open(folder.join(run)) {
        Ok(file) => matches!(try_lock(&file), Ok(true)),
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

/// Removes the lock file of a run that is dead.
pub(super) fn clear(folder: &Path, run: &str) {
    let path = folder.join(run);
    let Ok(file) = File::open(&path) else { return };
    if matches!(try_lock(&file), Ok(true))
        && let Err(e) = fs::remove_file(&path)
    {
        log::debug!("cannot remove {}: {e}", path.display());
    }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::tests::Scratch;

    #[test]
    fn a_run_is_alive_while_it_holds_its_lock_and_dead_after() {
        let scratch = Scratch::new();
        let folder = scratch.join("db-owners");
        let lock = OwnerLock::take(&folder, "r1").unwrap();
        assert!(!is_dead(&folder, "r1"));
        drop(lock);
        assert!(is_dead(&folder, "r1"));
        clear(&folder, "r1");
        assert!(!folder.join("r1").exists());
        assert!(is_dead(&folder, "r1"), "a run without a file is dead");
    }

    #[test]
    fn the_file_of_a_living_run_is_not_cleared() {
        let scratch = Scratch::new();
        let folder = scratch.join("db-owners");
        let lock = OwnerLock::take(&folder, "r1").unwrap();
        clear(&folder, "r1");
        assert!(lock.is_in_place());
        lock.give_back();
        assert!(!folder.join("r1").exists());
    }

    #[test]
    fn a_lock_whose_file_was_removed_is_not_in_place() {
        let scratch = Scratch::new();
        let folder = scratch.join("db-owners");
        let lock = OwnerLock::take(&folder, "r1").unwrap();
        fs::remove_file(folder.join("r1")).unwrap();
        assert!(!lock.is_in_place());
    }
}
