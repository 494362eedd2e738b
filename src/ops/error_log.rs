//! The error log: the `log` crate's records as lines of text.

use super::log_file::LogFile;
use crate::clock;
use log::{Level, LevelFilter, Log, Metadata, Record};
use std::fmt::Write as _;

/// Longer messages are cut: what a client sent must not fill the disk.
const LEN_MAX: usize = 4096;

struct ErrorLog {
    file: LogFile,
}

/// Makes this the process' log. Called once, at start.
pub fn install(file: LogFile, level: LevelFilter) -> Result<(), log::SetLoggerError> {
    log::set_boxed_logger(Box::new(ErrorLog { file }))?;
    log::set_max_level(level);
    Ok(())
}

impl Log for ErrorLog {
    fn enabled(&self, metadata: &Metadata) -> bool {
        metadata.level() <= level_of(metadata.target(), log::max_level())
    }

    fn log(&self, record: &Record) {
        if self.enabled(record.metadata()) {
            self.file.line(line(record));
        }
    }

    fn flush(&self) {}
}

/// Pingora logs each client that leaves as an error and each of its phases as information. Ours say it better, so of
/// Pingora's only warnings and errors pass at the usual level, and all of it at debug.
fn level_of(target: &str, level: LevelFilter) -> LevelFilter {
    let foreign = !target.starts_with("streamgate");
    if foreign && level == LevelFilter::Info {
        LevelFilter::Warn
    } else {
        level
    }
}

fn line(record: &Record) -> Vec<u8> {
    let level = match record.level() {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    };
    let mut line = format!("{} [{level}] ", clock::now());
    if !record.target().starts_with("streamgate") {
        line.push_str(record.target());
        line.push_str(": ");
    }
    let message = record.args().to_string();
    for c in message.chars().take(LEN_MAX) {
        push_plain(&mut line, c);
    }
    line.into_bytes()
}

/// Control characters and line separators are written as escapes: one record is one line.
fn push_plain(line: &mut String, c: char) {
    if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
        // writing to a string cannot fail
        let _infallible = write!(line, "{}", c.escape_default());
    } else {
        line.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_with_line_ends_and_escapes_stays_one_line() {
        let args = format_args!("path \"/a\r\nb\u{1b}[2J\u{2028}\"");
        let record = Record::builder()
            .args(args)
            .level(Level::Warn)
            .target("streamgate::x")
            .build();
        let text = String::from_utf8(line(&record)).unwrap();
        assert!(
            text.ends_with(r#"[warn] path "/a\r\nb\u{1b}[2J\u{2028}""#),
            "{text}"
        );
    }
}
