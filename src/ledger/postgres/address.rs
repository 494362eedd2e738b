//! A `postgres://` URL, understood: where to connect, whom to trust, and what to call it without its password.

use super::tls::Trust;
use crate::config::Secret;
use crate::ledger::error::{Kind, LedgerError};
use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// How a server that vanished without a word is noticed: after half a minute of silence.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(10), Duration::from_secs(5), 4);

#[derive(Clone, Debug)]
pub(super) struct Address {
    pub config: Config,
    pub trust: Trust,
    /// What the log calls it.
    pub place: String,
}

impl Address {
    pub fn of(url: &Secret) -> Result<Address, LedgerError> {
        let refuse = |cause| LedgerError::new("postgres://…", Kind::BadUrl, cause);
        Address::parse(url.expose()).map_err(refuse)
    }

    /// Reads a URL as libpq does. What is wrong with one is said without it: it may hold a password.
    pub fn parse(url: &str) -> Result<Address, String> {
        let (rest, ours) = split(url);
        let (mode, trust) = ours.trust()?;
        let mut config: Config = rest.parse().map_err(|e| why(&e))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("it names no host".into());
        }
        config.ssl_mode(if is_local(&config) {
            SslMode::Disable
        } else {
            mode
        });
        fill_in(&mut config);
        Ok(Address {
            place: place(&config),
            config,
            trust,
        })
    }
}

/// The parameters that are ours to understand, percent-decoded.
#[derive(Debug, Default)]
struct Ours {
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    other: Option<&'static str>,
}

/// Takes our parameters out of a URL.
fn split(url: &str) -> (String, Ours) {
    let mut ours = Ours::default();
    let Some((base, query)) = url.split_once('?') else {
        return (url.to_owned(), ours);
    };
    let rest: Vec<&str> = query.split('&').filter(|pair| !ours.takes(pair)).collect();
    match rest.is_empty() {
        true => (base.to_owned(), ours),
        false => (format!("{base}?{}", rest.join("&")), ours),
    }
}

impl Ours {
    fn takes(&mut self, pair: &str) -> bool {
        let Some((key, value)) = pair.split_once('=') else {
            return false;
        };
        let place = match key {
            "sslmode" => &mut self.sslmode,
            "sslrootcert" => &mut self.sslrootcert,
            "sslcert" | "sslkey" => {
                self.other = Some("sslcert and sslkey");
                return true;
            }
            "sslcrl" | "sslpassword" | "sslcertmode" => {
                self.other = Some("sslcrl, sslpassword and sslcertmode");
                return true;
            }
            _ => return false,
        };
        *place = Some(percent_decode_str(value).decode_utf8_lossy().into_owned());
        true
    }

    /// As libpq has it: `require` asks for encryption and believes any certificate, unless authorities are named.
    fn trust(self) -> Result<(SslMode, Trust), String> {
        if let Some(keys) = self.other {
            return Err(format!("{keys} are not supported"));
        }
        let any = self.sslrootcert.is_none();
        let file = self.sslrootcert.filter(|file| file != "system");
        let file = file.map(PathBuf::from);
        match self.sslmode.as_deref() {
            Some("disable") => Ok((SslMode::Disable, Trust::Anyone)),
            None | Some("allow" | "prefer") => Ok((SslMode::Prefer, Trust::Anyone)),
            Some("require") if any => Ok((SslMode::Require, Trust::Anyone)),
            Some("require" | "verify-ca") => Ok((SslMode::Require, Trust::Signed(file))),
            Some("verify-full") => Ok((SslMode::Require, Trust::Named(file))),
            Some(_) => {
                Err("its sslmode is not disable, prefer, require, verify-ca or verify-full".into())
            }
        }
    }
}

/// Why a URL is none, in words that cannot hold a piece of it.
fn why(error: &tokio_postgres::Error) -> String {
    use std::error::Error as _;
    let inner = error.source().map(ToString::to_string).unwrap_or_default();
    match inner.strip_prefix("invalid value for option `") {
        Some(option) => format!("its {} is not valid", option.trim_end_matches('`')),
        None if inner.starts_with("unknown option") => {
            "it has a parameter that is not known".into()
        }
        None => "it cannot be read".into(),
    }
}

/// Whether all hosts are Unix sockets: what never leaves the machine is not encrypted.
fn is_local(config: &Config) -> bool {
    let unix = |host: &Host| matches!(host, Host::Unix(_));
    config.get_hostaddrs().is_empty() && config.get_hosts().iter().all(unix)
}

fn fill_in(config: &mut Config) {
    if config.get_application_name().is_none() {
        config.application_name("streamgate");
    }
    let (idle, interval, retries) = KEEPALIVE;
    config.keepalives_idle(config.get_keepalives_idle().min(idle));
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(interval);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(retries);
    }
    // Of several servers, the one that takes writes.
    let any = config.get_target_session_attrs() == TargetSessionAttrs::Any;
    if any && config.get_hosts().len() > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |i: usize| ports.get(i).or(ports.first()).copied().unwrap_or(5432);
    let hosts = config.get_hosts().iter().enumerate();
    let hosts: Vec<String> = hosts
        .map(|(i, host)| match host {
            Host::Tcp(name) => format!("{}:{}", plain(name), port(i)),
            Host::Unix(path) => format!("{}:{}", path.display(), port(i)),
        })
        .collect();
    let hosts = match hosts.is_empty() {
        true => config
            .get_hostaddrs()
            .iter()
            .map(|addr| format!("{addr}:{}", port(0)))
            .collect(),
        false => hosts,
    };
    let database = config
        .get_dbname()
        .or(config.get_user())
        .unwrap_or_default();
    format!("postgres://{}/{}", hosts.join(","), plain(database))
}

/// A name, unless it looks like a piece of a password whose `@` or `/` was not escaped.
fn plain(name: &str) -> &str {
    let usual = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '%');
    match name.chars().all(usual) {
        true => name,
        false => "…",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Address {
        Address::parse(url).unwrap_or_else(|e| panic!("{url}: {e}"))
    }

    #[test]
    fn a_place_names_hosts_and_database_and_nobody() {
        for (url, place) in [
            (
                "postgres://u:hunter2@db.example/ledger",
                "postgres://db.example:5432/ledger",
            ),
            (
                "postgresql://u@a:1,b:2/l?target_session_attrs=any",
                "postgres://a:1,b:2/l",
            ),
            (
                "postgres://u@%2Frun%2Fpostgresql/l",
                "postgres:///run/postgresql:5432/l",
            ),
            (
                "postgres://u:hunter2@/l?hostaddr=10.0.0.1",
                "postgres://10.0.0.1:5432/l",
            ),
            ("postgres://u:p@ss/word@host/l", "postgres://ss:5432/…"),
        ] {
            assert_eq!(parsed(url).place, place, "{url}");
        }
    }

    #[test]
    fn a_url_that_is_none_is_refused_without_being_shown() {
        for (url, why) in [
            ("postgres://u:hunter2@host:port/l", "its port is not valid"),
            (
                "postgres://u:hunter2@host/l?hunter2=1",
                "a parameter that is not known",
            ),
            ("postgres://u:hunter2@/l", "it names no host"),
            (
                "postgres://u:hunter2@host/l?sslmode=hunter2",
                "its sslmode is not",
            ),
            (
                "postgres://u:hunter2@host/l?sslcert=hunter2",
                "sslcert and sslkey are not supported",
            ),
            ("postgres://u:hunter2@host/l?port", "it cannot be read"),
        ] {
            let error = Address::of(&Secret::new(url.into())).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(why) && !text.contains("hunter2"), "{text}");
            assert!(text.contains("correct `ledger.url`"), "{text}");
        }
    }

    #[test]
    fn encryption_is_asked_for_in_libpqs_words() {
        let file = || Some(PathBuf::from("/etc/ca s.pem"));
        for (query, mode, trust) in [
            ("", SslMode::Prefer, Trust::Anyone),
            ("?sslmode=disable", SslMode::Disable, Trust::Anyone),
            ("?sslmode=require", SslMode::Require, Trust::Anyone),
            (
                "?sslmode=require&sslrootcert=system",
                SslMode::Require,
                Trust::Signed(None),
            ),
            (
                "?connect_timeout=3&sslrootcert=/etc/ca%20s.pem&sslmode=verify-ca",
                SslMode::Require,
                Trust::Signed(file()),
            ),
            (
                "?sslmode=verify-full&sslrootcert=/etc/ca%20s.pem",
                SslMode::Require,
                Trust::Named(file()),
            ),
            ("?sslmode=verify-full", SslMode::Require, Trust::Named(None)),
        ] {
            let address = parsed(&format!("postgres://u@host/l{query}"));
            assert_eq!(
                (address.config.get_ssl_mode(), address.trust),
                (mode, trust),
                "{query}"
            );
        }
        let local = parsed("postgres://u@%2Frun/l?sslmode=require");
        assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
    }
}
