//! `[log]`: where the access lines and the process's own lines go.

use super::reader::{Table, Value};
use super::values::{path, word};
use super::{Log, LogFormat, LogTarget};
use log::LevelFilter;

pub(super) fn read(t: &Table) -> Log {
    Log {
        access: t
            .value("access", access)
            .unwrap_or_else(|| LogTarget::File(t.reader.resolve("logs/access.log"))),
        error: t.value("error", error).unwrap_or(LogTarget::Stderr),
        format: t.value("format", word).unwrap_or(LogFormat::Json),
        level: t.value("level", word).unwrap_or(LevelFilter::Info),
    }
}

fn access(v: &Value) -> Option<LogTarget> {
    if v.text() == Some("off") {
        return Some(LogTarget::Off);
    }
    target(v, "a path, \"stdout\", \"stderr\" or \"off\"")
}

/// The process's own lines cannot be turned off here: `level` does that.
fn error(v: &Value) -> Option<LogTarget> {
    let wanted = "a path, \"stderr\" or \"stdout\"";
    if v.text() == Some("off") {
        v.refuse(wanted);
        return None;
    }
    target(v, wanted)
}

fn target(v: &Value, wanted: &str) -> Option<LogTarget> {
    match v.text() {
        Some("stdout") => Some(LogTarget::Stdout),
        Some("stderr") => Some(LogTarget::Stderr),
        Some(text) if !text.is_empty() => path(v).map(LogTarget::File),
        Some(_) | None => {
            v.refuse(wanted);
            None
        }
    }
}
