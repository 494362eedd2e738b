//! The real binary as a process: run to its end, or watched while it lives and ended with its owner.

use super::scratch::Scratch;
use super::wait;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_streamgate");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Term,
    Int,
    Quit,
    Hup,
}

impl Signal {
    const fn name(self) -> &'static str {
        match self {
            Signal::Term => "TERM",
            Signal::Int => "INT",
            Signal::Quit => "QUIT",
            Signal::Hup => "HUP",
        }
    }
}

/// A running `streamgate`. Its output goes to a file; it is killed when this is dropped, also by a panic.
pub struct Process {
    child: Child,
    output: PathBuf,
}

impl Process {
    /// Starts the binary in a folder; both output streams are appended to a file there.
    pub fn start(args: &[&str], folder: &Path, output_name: &str) -> Process {
        let output = folder.join(output_name);
        let file = File::options()
            .create(true)
            .append(true)
            .open(&output)
            .expect("the output file");
        let child = Command::new(BINARY)
            .args(args)
            .current_dir(folder)
            // what it leaves behind when it is killed goes with the test's folder
            .env("TMPDIR", folder)
            .stdin(Stdio::null())
            .stdout(
                file.try_clone()
                    .expect("a second handle of the output file"),
            )
            .stderr(file)
            .spawn()
            .expect("the binary starts");
        Process { child, output }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.output).unwrap_or_default()).into_owned()
    }

    /// Its exit, where it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the child can be waited for")
    }

    /// Fails where it has ended, with what it printed.
    #[track_caller]
    pub fn must_run(&mut self) {
        if let Some(status) = self.ended() {
            panic!(
                "streamgate ended by itself with {status}; its output: {}",
                self.output()
            );
        }
    }

    pub fn signal(&self, signal: Signal) {
        // a shell's own `kill`: there is no safe call for it in the standard library
        let line = format!("kill -s {} {}", signal.name(), self.pid());
        let status = Command::new("sh")
            .args(["-c", &line])
            .status()
            .expect("sh runs");
        assert!(status.success(), "{line}: {status}");
    }

    /// Waits for its end and gives the exit code.
    #[track_caller]
    pub fn wait(&mut self, limit: Duration) -> i32 {
        let what = format!("process {} to end", self.pid());
        let status = wait::within(limit, what, || {
            self.ended().ok_or_else(|| "it still runs".to_owned())
        });
        status
            .code()
            .unwrap_or_else(|| panic!("ended by a signal: {status}; its output: {}", self.output()))
    }

    /// `kill -9`, and its end awaited.
    pub fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let text = self.output();
            let tail: Vec<&str> = text.lines().rev().take(20).collect();
            eprintln!("--- the last lines of process {}", self.pid());
            tail.iter().rev().for_each(|line| eprintln!("{line}"));
        }
    }
}

/// What a command that ends by itself printed.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Both streams, for what may stand in either.
    pub fn all(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

/// Runs the binary to its end; it may take ten seconds.
#[track_caller]
pub fn run(args: &[&str]) -> Ran {
    let scratch = Scratch::new();
    run_in(scratch.path(), args)
}

/// Runs the binary to its end in a folder.
#[track_caller]
pub fn run_in(folder: &Path, args: &[&str]) -> Ran {
    finish(Command::new(BINARY).args(args).current_dir(folder))
}

/// As `run_in`, as another user, who needs no way to where the binary is.
#[track_caller]
pub fn run_as(uid: u32, folder: &Path, args: &[&str]) -> Ran {
    let copy = folder.join("streamgate");
    if !copy.exists() {
        std::fs::copy(BINARY, &copy).expect("a copy of the binary");
    }
    let mut command = Command::new(copy);
    finish(command.uid(uid).gid(uid).args(args).current_dir(folder))
}

#[track_caller]
fn finish(command: &mut Command) -> Ran {
    let outputs = Scratch::new();
    let open = |name: &str| File::create(outputs.join(name)).expect("an output file");
    let child = command
        .stdin(Stdio::null())
        .stdout(open("out"))
        .stderr(open("err"))
        .spawn()
        .expect("the binary starts");
    let mut process = Process {
        child,
        output: outputs.join("err"),
    };
    let code = process.wait(wait::PATIENCE);
    Ran {
        code,
        out: outputs.read("out"),
        err: outputs.read("err"),
    }
}
