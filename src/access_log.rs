//! The access log: one line per answer, in JSON or nginx's combined format. Its fields are named as the record's, plus
//! what belongs to HTTP: method, path (without the query), status, bytes, and the phase a request ended in.

use crate::clock::{self, Timestamp};
use crate::config::LogFormat;
use crate::ops::LogFile;
use crate::record::{Record, State};
use serde::Serialize;

/// A longer path is cut: what a client sent must not fill the disk.
const PATH_MAX: usize = 1024;

/// One HTTP exchange as the access line tells it.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    pub method: String,
    /// Without the query: it may hold a key.
    pub path: String,
    pub version: &'static str,
    pub client: String,
    pub user_agent: Option<String>,
    /// 0 where nothing was answered.
    pub status: u16,
    /// Body bytes.
    pub bytes_in: u64,
    pub bytes_out: u64,
}

#[derive(Clone, Debug)]
pub struct AccessLog {
    file: LogFile,
    format: LogFormat,
}

#[derive(Serialize)]
struct Line<'a> {
    time: Timestamp,
    client: &'a str,
    method: &'a str,
    path: &'a str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    bytes_in: u64,
    bytes_out: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<State>,
    #[serde(flatten)]
    who: Who<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Who<'a> {
    Ended(&'a Record),
    Other {
        request_id: &'a str,
        tenant: Option<&'a str>,
    },
}

impl AccessLog {
    pub fn new(file: LogFile, format: LogFormat) -> AccessLog {
        AccessLog { file, format }
    }

    pub fn file(&self) -> &LogFile {
        &self.file
    }

    /// A request that was admitted has ended; `phase` is the state it was in until then.
    pub fn ended(&self, wire: &Wire, record: &Record, phase: State, code: Option<&str>) {
        self.write(wire, code, Some(phase), Who::Ended(record));
    }

    /// Any other answer: a refusal with its code, a record, a list.
    pub fn answered(
        &self,
        wire: &Wire,
        request_id: &str,
        tenant: Option<&str>,
        code: Option<&str>,
    ) {
        self.write(wire, code, None, Who::Other { request_id, tenant });
    }

    fn write(&self, wire: &Wire, code: Option<&str>, phase: Option<State>, who: Who) {
        if self.file.is_off() {
            return;
        }
        let path = clip(&wire.path);
        let line = match self.format {
            LogFormat::Combined => combined(wire, path).into_bytes(),
            LogFormat::Json => {
                let line = Line {
                    time: clock::now(),
                    client: &wire.client,
                    method: &wire.method,
                    path,
                    status: wire.status,
                    code,
                    bytes_in: wire.bytes_in,
                    bytes_out: wire.bytes_out,
                    phase,
                    who,
                };
                serde_json::to_vec(&line).unwrap_or_default()
            }
        };
        self.file.line(line);
    }
}

fn clip(path: &str) -> &str {
    path.get(..path.floor_char_boundary(PATH_MAX)).unwrap_or("")
}

/// nginx's `combined`: address, user, time, request line, status, bytes, referer, agent.
fn combined(wire: &Wire, path: &str) -> String {
    let t = clock::now().date_time();
    let month: String = t.month().to_string().chars().take(3).collect();
    format!(
        "{} - - [{:02}/{month}/{}:{:02}:{:02}:{:02} +0000] \"{} {} {}\" {} {} \"-\" \"{}\"",
        wire.client,
        t.day(),
        t.year(),
        t.hour(),
        t.minute(),
        t.second(),
        escaped(&wire.method),
        escaped(path),
        wire.version,
        wire.status,
        wire.bytes_out,
        escaped(wire.user_agent.as_deref().unwrap_or("-")),
    )
}

/// As nginx does: quotes, backslashes and whatever is not printable ASCII become `\xHH`.
fn escaped(text: &str) -> String {
    text.bytes()
        .fold(String::with_capacity(text.len()), |mut out, b| {
            match b {
                b'"' | b'\\' | 0..=0x1f | 0x7f..=0xff => out.push_str(&format!("\\x{b:02X}")),
                _ => out.push(char::from(b)),
            }
            out
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_combined_line_cannot_be_forged() {
        let wire = Wire {
            method: "GET".to_owned(),
            path: "/a\"\n1.2.3.4 - -".to_owned(),
            version: "HTTP/1.1",
            client: "127.0.0.1".to_owned(),
            status: 404,
            ..Wire::default()
        };
        let line = combined(&wire, &wire.path);
        assert!(
            line.contains(r#""GET /a\x22\x0A1.2.3.4 - - HTTP/1.1" 404 0 "-" "-""#),
            "{line}"
        );
    }

    #[test]
    fn a_long_path_is_cut_at_a_character() {
        let path = "é".repeat(PATH_MAX);
        assert!(clip(&path).len() <= PATH_MAX);
    }
}
