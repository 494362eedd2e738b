//! How long a large ledger may take to make, and how much disk it leaves to others. One that would go beyond is measured
//! as far as it came.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const TIME_MAX: Duration = Duration::from_secs(20 * 60);
/// What stays free on the disk.
const FREE_MIN: u64 = 12_000_000_000;

pub struct Bounds {
    folder: PathBuf,
    since: Instant,
}

impl Bounds {
    pub fn on(folder: &Path) -> Bounds {
        Bounds {
            folder: folder.to_owned(),
            since: Instant::now(),
        }
    }

    /// Whether more entries may follow those that are there.
    pub fn allow_more(&self, done: u64) -> bool {
        let (took, free) = (self.since.elapsed(), free(&self.folder));
        if took <= TIME_MAX && free >= FREE_MIN {
            return true;
        }
        println!(
            "  stopped at {done} entries: {took:.0?} have passed, {:.1} GB of the disk are free",
            free as f64 / 1e9
        );
        false
    }
}

/// Bytes that are free on a folder's disk.
fn free(folder: &Path) -> u64 {
    let ran = Command::new("df").arg("-Pk").arg(folder).output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    let words = text.lines().last().unwrap_or_default().split_whitespace();
    let kib: u64 = words.skip(3).find_map(|word| word.parse().ok()).unwrap();
    kib * 1024
}
