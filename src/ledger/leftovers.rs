//! Ends that could not be written before the process ended: kept in a file of the data folder, and brought in at the next
//! start, in the name of the run that could not write them.

use super::backlog::GROUP_MAX;
use super::entry::{End, RunId};
use super::error::{Kind, LedgerError};
use super::store::{Applied, Store, Write};
use crate::clock;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Of a run: where its ends would go.
#[derive(Debug)]
pub(super) struct Leftovers {
    pub folder: PathBuf,
    pub run: RunId,
}

impl Leftovers {
    /// Keeps some ends, durably. Where they are.
    pub fn keep(&self, ends: &[Arc<End>]) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.folder)?;
        let file = self.folder.join(format!("{}.jsonl", self.run));
        let unfinished = file.with_extension("part");
        let mut lines = BufWriter::new(File::create(&unfinished)?);
        for end in ends {
            serde_json::to_writer(&mut lines, &**end)?;
            lines.write_all(b"\n")?;
        }
        lines.into_inner()?.sync_all()?;
        fs::rename(&unfinished, &file)?;
        File::open(&self.folder)?.sync_all()?;
        Ok(file)
    }
}

/// Brings in what earlier runs left in a folder, before those are looked for among the dead.
pub(super) fn bring_in(store: &mut dyn Store, folder: &Path) -> Result<(), LedgerError> {
    let Ok(files) = fs::read_dir(folder) else {
        return Ok(());
    };
    for file in files.flatten().map(|file| file.path()) {
        if file.extension() == Some(OsStr::new("jsonl")) {
            bring_in_file(store, &file)?;
        }
    }
    Ok(())
}

fn bring_in_file(store: &mut dyn Store, file: &Path) -> Result<(), LedgerError> {
    let run = file.file_stem().unwrap_or_default().to_string_lossy();
    let (writes, is_whole) = read(file).map_err(|e| {
        let cause = format!("{} cannot be read: {e}", file.display());
        LedgerError::new(store.place(), Kind::Unopenable, cause)
    })?;
    let own = store.act_as(RunId::from(&*run));
    let mut groups = writes.chunks(GROUP_MAX);
    let written = groups.try_fold(true, |all, group| Ok(write(store, group)? && all));
    store.act_as(own);
    let is_whole = written? && is_whole;
    log::warn!(
        "ledger {}: {} ends were brought in that an earlier process could not write",
        store.place(),
        writes.len()
    );
    put_away(file, is_whole);
    Ok(())
}

/// Whether all of a group is in the ledger now, as far as its rules allow.
fn write(store: &mut dyn Store, group: &[Write]) -> Result<bool, LedgerError> {
    let mut all = true;
    let committed = store.commit(group, clock::now())?;
    for (applied, write) in committed.applied.iter().zip(group) {
        match applied {
            Applied::Broken(why) => {
                log::error!("ledger: not written, since {why}: {}", write.text());
            }
            Applied::Failed(error) => {
                all = false;
                log::error!("{error}; not written: {}", write.text());
            }
            Applied::Opened(_) | Applied::Done => {}
        }
    }
    Ok(all)
}

/// The ends of a file, and whether all its lines could be read.
fn read(file: &Path) -> io::Result<(Vec<Write>, bool)> {
    let text = fs::read_to_string(file)?;
    let mut writes = Vec::new();
    let mut is_whole = true;
    for (at, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(end) => writes.push(Write::Settle(Arc::new(end))),
            Err(e) => {
                is_whole = false;
                log::error!("{}:{}: no end of a request: {e}", file.display(), at + 1);
            }
        }
    }
    Ok((writes, is_whole))
}

/// A file that was brought in goes; one with lines that could not be stays for an operator, under another name.
fn put_away(file: &Path, is_whole: bool) {
    let done = match is_whole {
        true => fs::remove_file(file),
        false => fs::rename(file, file.with_extension("rest")),
    };
    if let Err(e) = done {
        log::error!(
            "{} cannot be put away: {e}; remove it, it was brought in",
            file.display()
        );
    }
}
