//! The data folder and the lock that keeps a second process out of it.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The locked data folder. The lock goes with the process, however it ends.
#[derive(Debug)]
pub struct DataDir {
    _lock: File,
}

impl DataDir {
    /// Makes the folder where it is missing, and locks it. The error is one line that names the folder.
    pub fn lock(path: &Path) -> Result<DataDir, String> {
        let failed = |e: io::Error| {
            format!(
                "server.data_dir {} cannot be used: {e}; give this user a folder it may write to",
                path.display()
            )
        };
        // what is in it is for the gateway's own user: requests, their costs, whose they are
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(failed)?;
        let file = path.join("lock");
        let mut lock = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(&file)
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => note_pid(&mut lock).map_err(failed)?,
            Err(TryLockError::WouldBlock) => return Err(taken(path, &file)),
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        }
        Ok(DataDir { _lock: lock })
    }
}

fn note_pid(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

fn taken(path: &Path, lock: &PathBuf) -> String {
    let mut pid = String::new();
    let read = File::open(lock).and_then(|mut f| f.read_to_string(&mut pid));
    let by = match read {
        Ok(_) if !pid.trim().is_empty() => format!("process {}", pid.trim()),
        _ => "another process".to_owned(),
    };
    format!(
        "server.data_dir {} is in use by {by}; stop it, or give this one a data_dir of its own",
        path.display()
    )
}
