//! How long a large ledger may take to make, and how much disk it leaves to others. One that would go beyond is measured
//! as far as it came.

use crate::support::database::Database;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const TIME_MAX: Duration = Duration::from_secs(20 * 60);
/// What stays free on the disk.
const FREE_MIN: u64 = 12_000_000_000;

pub struct Bounds<'a> {
    disk: Disk<'a>,
    since: Instant,
}

enum Disk<'a> {
    Of(&'a Path),
    /// Where a server keeps its files, on whatever machine.
    OfServer(&'a Database),
}

impl<'a> Bounds<'a> {
    pub fn on(folder: &'a Path) -> Bounds<'a> {
        Bounds::of(Disk::Of(folder))
    }

    pub fn on_server(database: &'a Database) -> Bounds<'a> {
        Bounds::of(Disk::OfServer(database))
    }

    fn of(disk: Disk<'a>) -> Bounds<'a> {
        Bounds {
            disk,
            since: Instant::now(),
        }
    }

    /// Whether more entries may follow those that are there.
    pub fn allow_more(&self, done: u64) -> bool {
        let (took, free) = (self.since.elapsed(), self.disk.free());
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

impl Disk<'_> {
    /// Bytes that are free.
    fn free(&self) -> u64 {
        let told = match self {
            Disk::Of(folder) => {
                let ran = Command::new("df").arg("-Pk").arg(folder).output();
                String::from_utf8_lossy(&ran.unwrap().stdout).into_owned()
            }
            // A server's process works in the folder of its data.
            Disk::OfServer(database) => {
                database.rows("CREATE TEMP TABLE IF NOT EXISTS df (line text)");
                database.rows("TRUNCATE df; COPY df FROM PROGRAM 'df -Pk .'");
                database.rows("SELECT line FROM df").concat().join("\n")
            }
        };
        free(&told)
    }
}

/// The fourth word of the last line. A disk's name may hold blanks, no figure does.
fn free(told: &str) -> u64 {
    let words = told.lines().last().unwrap_or_default().split_whitespace();
    let kib: u64 = words.skip(3).find_map(|word| word.parse().ok()).unwrap();
    kib * 1024
}
