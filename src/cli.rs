//! The command line: what is asked, and the exit code of it. 0 clean, 1 failed, 64 bad config or usage.

use crate::config::{self, Config, Findings};
use crate::ops::HangUp;
use crate::{demo, keys, ledger, server, sim};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const OK: u8 = 0;
const FAILED: u8 = 1;
const BAD_USAGE: u8 = 64;

const USAGE: &str = "\
usage: streamgate [-c FILE]                 run in the foreground
       streamgate [-c FILE] -t              test the config: print every finding
       streamgate [-c FILE] -T              print the effective config, secrets redacted
       streamgate [-c FILE] -s reload|quit|stop
                                            signal the running process: take the config file anew, drain, or stop at once
       streamgate demo                      two simulated engines and a gateway on loopback
       streamgate sim [FLAGS]               the engine simulator; sim --help lists its flags
       streamgate key new --tenant NAME     make an API key
       streamgate [-c FILE] ledger list|show ID|report|export|reconcile
                                            read and reconcile the ledger
       streamgate --version

Without -c the config is conf/streamgate.toml, else /etc/streamgate/streamgate.toml.
";

const DEFAULT_FILES: &[&str] = &["conf/streamgate.toml", "/etc/streamgate/streamgate.toml"];

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Run,
    Test,
    Show,
    Signal(String),
    Help,
    Version,
    /// A command by name, with its own arguments.
    Command(String, Vec<String>),
}

/// Runs what the arguments ask for; the exit code.
pub fn run(args: Vec<OsString>) -> u8 {
    let mut texts = Vec::with_capacity(args.len());
    for arg in args {
        match arg.into_string() {
            Ok(text) => texts.push(text),
            Err(arg) => return usage(&format!("the argument {arg:?} is not UTF-8")),
        }
    }
    match parse(texts) {
        Ok((asked, file)) => execute(asked, file.as_deref()),
        Err(message) => usage(&message),
    }
}

/// Splits the arguments: `-c FILE` may stand before or after a command, everything else behind a command is its own.
fn parse(args: Vec<String>) -> Result<(Asked, Option<PathBuf>), String> {
    let mut file = None;
    let mut asked = Asked::Run;
    let mut own = Vec::new();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        match (arg.as_str(), &asked) {
            ("-c", _) => {
                let path = args.next().ok_or("-c needs a file")?;
                file = Some(PathBuf::from(path));
            }
            (_, Asked::Command(..)) => own.push(arg),
            ("-s", Asked::Run) => {
                let word = args
                    .next()
                    .ok_or("-s needs a signal: reload, quit or stop")?;
                asked = Asked::Signal(word);
            }
            ("-t", Asked::Run) => asked = Asked::Test,
            ("-T", Asked::Run) => asked = Asked::Show,
            ("-h" | "--help", Asked::Run) => asked = Asked::Help,
            ("-V" | "--version", Asked::Run) => asked = Asked::Version,
            ("-d" | "-u", _) => return Err(format!("{arg} is not in this build yet")),
            (word, Asked::Run) if !word.starts_with('-') => asked = Asked::Command(arg, Vec::new()),
            _ => return Err(format!("{arg} is not known here")),
        }
    }
    if let Asked::Command(_, args) = &mut asked {
        *args = own;
    }
    Ok((asked, file))
}

fn execute(asked: Asked, file: Option<&Path>) -> u8 {
    match asked {
        Asked::Run => with_config(file, start),
        Asked::Test => with_config(file, test),
        Asked::Show => with_config(file, |config| print(&config::show(&config))),
        Asked::Signal(word) => with_config(file, |config| signal(&config, &word)),
        Asked::Help => print(USAGE),
        Asked::Version => print(concat!("streamgate ", env!("CARGO_PKG_VERSION"), "\n")),
        Asked::Command(name, args) => command(&name, &args, file),
    }
}

fn command(name: &str, args: &[String], file: Option<&Path>) -> u8 {
    match name {
        "demo" => match args {
            [] => report(demo::run()),
            [extra, ..] => usage(&format!("demo takes no {extra}")),
        },
        "help" => print(USAGE),
        "sim" => simulate(args),
        "key" => match keys::new_key(args) {
            Ok(text) => print(&text),
            Err(message) => usage(&message),
        },
        "ledger" => match ledger::help(args) {
            Some(text) => print(&format!("{text}\n")),
            None => with_config_of(config::load_beside, file, |config| {
                ledger::run(args, &config, &mut io::stdout(), &mut io::stderr())
            }),
        },
        _ => usage(&format!("{name} is no command")),
    }
}

/// A good config is silent, but for what of it this build does not do yet.
fn test(config: Config) -> u8 {
    for line in &config.not_in_effect {
        complain(&format!("{line}\n"));
    }
    OK
}

fn start(config: Config) -> u8 {
    report(server::run(config, HangUp::Reload, Box::new(|| {})))
}

/// A failure is one line on standard error.
fn report(result: Result<(), String>) -> u8 {
    match result {
        Ok(()) => OK,
        Err(message) => {
            complain(&format!("streamgate: {message}\n"));
            FAILED
        }
    }
}

fn simulate(args: &[String]) -> u8 {
    if args.iter().any(|a| a == "--help" || a == "-h") {
        return print(sim::USAGE);
    }
    let options = match sim::Options::from_args(args) {
        Ok(options) => options,
        Err(message) => return usage(&message),
    };
    let listening = std::net::TcpListener::bind(&options.listen)
        .map_err(|e| format!("--listen {} cannot be bound: {e}", options.listen));
    report(listening.and_then(|l| sim::run(l, options).map_err(|e| e.to_string())))
}

/// Sends a signal to the process that the config's pid file names.
fn signal(config: &Config, word: &str) -> u8 {
    let number = match word {
        "reload" => libc::SIGHUP,
        "quit" => libc::SIGQUIT,
        "stop" => libc::SIGINT,
        _ => {
            return usage(&format!(
                "-s {word} is not in this build; it takes reload, quit or stop"
            ));
        }
    };
    report(crate::ops::signal_running(&config.server.pid_file, number))
}

/// Loads the config named, or the first default that is there, and goes on with it; else prints its findings.
fn with_config(file: Option<&Path>, then: impl FnOnce(Config) -> u8) -> u8 {
    with_config_of(config::load, file, then)
}

fn with_config_of(
    load: fn(&Path) -> Result<Config, Findings>,
    file: Option<&Path>,
    then: impl FnOnce(Config) -> u8,
) -> u8 {
    let found = match file {
        Some(file) => Some(file.to_owned()),
        None => DEFAULT_FILES.iter().map(PathBuf::from).find(|f| f.exists()),
    };
    let Some(found) = found else {
        return usage(&format!(
            "there is no config at {}; name one with -c FILE",
            DEFAULT_FILES.join(" or ")
        ));
    };
    match load(&found) {
        Ok(config) => then(config),
        Err(findings) => refuse(&findings),
    }
}

fn refuse(findings: &Findings) -> u8 {
    complain(&format!("{findings}\n"));
    BAD_USAGE
}

fn usage(message: &str) -> u8 {
    complain(&format!(
        "streamgate: {message}\nstreamgate --help shows the usage\n"
    ));
    BAD_USAGE
}

/// A reader that closed its end early (`| head`) has what it wanted.
fn print(text: &str) -> u8 {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => OK,
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => OK,
        Err(_) => FAILED,
    }
}

fn complain(text: &str) {
    if io::stderr().write_all(text.as_bytes()).is_err() {
        log::debug!("standard error is closed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<(Asked, Option<PathBuf>), String> {
        parse(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn the_config_is_named_before_or_after_a_command() {
        let file = Some(PathBuf::from("x.toml"));
        let list = Asked::Command("ledger".to_owned(), vec!["list".to_owned()]);
        assert_eq!(parsed("-c x.toml ledger list"), Ok((list, file.clone())));
        let list = Asked::Command("ledger".to_owned(), vec!["list".to_owned()]);
        assert_eq!(parsed("ledger list -c x.toml"), Ok((list, file)));
        assert_eq!(parsed("-t"), Ok((Asked::Test, None)));
        assert_eq!(parsed(""), Ok((Asked::Run, None)));
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for line in ["--no-such-flag", "-c", "-t -t", "-x", "-s"] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
