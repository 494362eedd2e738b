//! The file that names the running process. It is locked for as long as that lives, so that a number which a dead process
//! left, and the system gave to another since, is neither taken for a gateway nor signalled.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// This process's own, removed when it ends.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    _lock: File,
}

impl PidFile {
    /// Writes and locks the file. The error is one line that names it.
    pub fn write(path: &Path) -> Result<PidFile, String> {
        let failed = |e: io::Error| {
            format!(
                "server.pid_file {} cannot be written: {e}; give it a path this user may write to",
                path.display()
            )
        };
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let Some(mut file) = lock(path).map_err(failed)? else {
            return Err(taken(path));
        };
        file.set_len(0)
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(failed)?;
        Ok(PidFile {
            path: path.to_owned(),
            _lock: file,
        })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_file(&self.path) {
            log::warn!("pid file {} cannot be removed: {e}", self.path.display());
        }
    }
}

/// The file, locked; nothing where another process holds it. Who only looks holds it for a moment.
fn lock(path: &Path) -> io::Result<Option<File>> {
    for _ in 0..TRIES {
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            // one that was removed meanwhile names nobody
            Ok(()) if is_in_place(&file, path) => return Ok(Some(file)),
            Ok(()) | Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
    Ok(None)
}

fn is_in_place(file: &File, path: &Path) -> bool {
    let inode = |m: fs::Metadata| (m.dev(), m.ino());
    let (ours, there) = (file.metadata().map(inode), fs::metadata(path).map(inode));
    matches!((ours, there), (Ok(ours), Ok(there)) if ours == there)
}

fn taken(path: &Path) -> String {
    let by = match fs::read_to_string(path) {
        Ok(pid) if !pid.trim().is_empty() => format!("the running process {}", pid.trim()),
        Ok(_) | Err(_) => "another running process".to_owned(),
    };
    format!(
        "server.pid_file {} belongs to {by}; stop it, or give this one a pid_file of its own",
        path.display()
    )
}

/// Sends a signal to the gateway that a pid file names.
pub fn signal_running(path: &Path, number: i32) -> Result<(), String> {
    let is_held = File::open(path)
        .and_then(|file| match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(e)) => Err(e),
        })
        .map_err(|e| {
            format!(
                "{} cannot be read: {e}; is the gateway running?",
                path.display()
            )
        })?;
    let pid = named(path)?;
    if !is_held {
        return Err(format!(
            "{} names process {pid}, which is no gateway any more; start it again",
            path.display()
        ));
    }
    send(pid, number).map_err(|e| {
        format!("process {pid} cannot be signalled: {e}; signal it as its own user, or as root")
    })
}

fn named(path: &Path) -> Result<i32, String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let pid = text.trim().parse().ok().filter(|pid| *pid > 1);
    pid.ok_or_else(|| {
        format!(
            "{} holds no process id; remove it, and start the gateway again",
            path.display()
        )
    })
}

#[allow(unsafe_code, reason = "signals are only sent by a system call")]
fn send(pid: i32, number: i32) -> std::io::Result<()> {
    // SAFETY: kill takes two numbers and touches no memory of ours.
    match unsafe { libc::kill(pid, number) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
