//! A SQLite ledger that its process may read and not write: nothing starts on it and nothing is settled in it, and both say
//! why.

use crate::support::engine::Engine;
use crate::support::gateway::Gateway;
use crate::support::process::{Ran, Signal, run_as, run_in};
use crate::support::script::tokens;
use crate::support::wait::ms;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

const ROOT: u32 = 0;
/// Who may do nothing but what everybody may.
const NOBODY: u32 = 65534;

/// A ledger with an entry, whose gateway has ended, and who is to use it: not root, who may write what he may not.
struct Stage {
    gateway: Gateway,
    as_nobody: bool,
}

impl Stage {
    fn new() -> Stage {
        let engine = Engine::scripted(tokens(2, ms(0)));
        let mut gateway = Gateway::before(&engine);
        gateway.chat("r").rest();
        gateway.settled();
        gateway.signal(Signal::Term);
        assert_eq!(gateway.exit(), 0);
        let folder = gateway.written.scratch.path();
        let as_nobody = std::fs::metadata(folder).unwrap().uid() == ROOT;
        if as_nobody {
            give(folder);
        }
        Stage { gateway, as_nobody }
    }

    fn file(&self) -> PathBuf {
        self.gateway.written.scratch.join("data/ledger.db")
    }

    fn allow(&self, mode: u32) {
        std::fs::set_permissions(self.file(), Permissions::from_mode(mode)).unwrap();
    }

    fn run(&self, args: &[&str]) -> Ran {
        let folder = self.gateway.written.scratch.path();
        let config = self.gateway.written.file();
        let args = [&["-c", &config], args].concat();
        match self.as_nobody {
            true => run_as(NOBODY, folder, &args),
            false => run_in(folder, &args),
        }
    }
}

/// Gives a folder and all that is in it to nobody.
fn give(path: &Path) {
    let given = chown(path, Some(NOBODY), Some(NOBODY));
    given.expect("a root who may give files away; in a namespace run this test as another user");
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        entries.for_each(|entry| give(&entry.unwrap().path()));
    }
}

#[test]
fn a_ledger_that_cannot_be_written_is_refused_and_named_and_can_still_be_read() {
    let stage = Stage::new();
    let bill = stage
        .gateway
        .written
        .scratch
        .write("bill.csv", "request_id,units\nr,1\n");
    let reconcile = ["ledger", "reconcile", bill.to_str().unwrap()];
    stage.allow(0o400);
    let before = std::fs::read(stage.file()).unwrap();
    for args in [&[][..], &reconcile] {
        let ran = stage.run(args);
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (1, ""),
            "{args:?}: {}",
            ran.err
        );
        let place = format!("ledger {}: ", stage.file().display());
        for words in [
            &*place,
            "cannot be written",
            "give the user that runs streamgate write access",
        ] {
            assert!(ran.err.contains(words), "{args:?}: {}", ran.err);
        }
    }
    assert_eq!(
        std::fs::read(stage.file()).unwrap(),
        before,
        "it was changed"
    );
    let list = stage.run(&["ledger", "list", "--format", "csv"]);
    assert_eq!(
        (list.code, list.out.lines().count()),
        (0, 2),
        "{}",
        list.all()
    );

    stage.allow(0o600);
    let settled = stage.run(&reconcile);
    assert_eq!(settled.code, 0, "nothing else was wrong: {}", settled.all());
}
