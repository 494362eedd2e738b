//! The binary: what the command line asks for, and the exit code of it.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    ExitCode::from(streamgate::cli::run(args))
}
