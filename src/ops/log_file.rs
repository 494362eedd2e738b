//! A log's destination: a stream of the process or a file that can be reopened after it was rotated.

use crate::config::LogTarget;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Where a log is written. Lines are written whole; a line that cannot be written is lost, not the request.
#[derive(Clone, Debug)]
pub struct LogFile {
    target: Arc<Target>,
}

#[derive(Debug)]
enum Target {
    Off,
    Stdout,
    Stderr,
    File { path: PathBuf, file: Mutex<File> },
}

impl LogFile {
    /// Opens a destination; the folder of a file is made where it is missing.
    pub fn open(target: &LogTarget) -> io::Result<LogFile> {
        let target = match target {
            LogTarget::Off => Target::Off,
            LogTarget::Stdout => Target::Stdout,
            LogTarget::Stderr => Target::Stderr,
            LogTarget::File(path) => Target::File {
                file: Mutex::new(append(path)?),
                path: path.clone(),
            },
        };
        Ok(LogFile {
            target: Arc::new(target),
        })
    }

    pub fn is_off(&self) -> bool {
        matches!(*self.target, Target::Off)
    }

    /// Writes a line; its line end is added.
    pub fn line(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        let written = match &*self.target {
            Target::Off => Ok(()),
            Target::Stdout => io::stdout().lock().write_all(&line),
            Target::Stderr => io::stderr().lock().write_all(&line),
            Target::File { file, .. } => file
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .write_all(&line),
        };
        // nobody is left to tell: the log is what would have told
        drop(written);
    }

    /// Opens the file anew, so that a rotated one can go.
    pub fn reopen(&self) -> io::Result<()> {
        if let Target::File { path, file } = &*self.target {
            let fresh = append(path)?;
            *file.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}
