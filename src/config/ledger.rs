//! `[ledger]`: where requests are accounted for, and what happens where that fails.

use super::reader::{Table, Value};
use super::secrets;
use super::values::{some_time, word};
use super::{Durability, Ledger, LedgerStore, OnError, OnUnknown, Secret};
use crate::ledger::url_fault;
use std::path::Path;
use std::time::Duration;

const URL: &str =
    "give \"sqlite:PATH\" or \"postgres://USER@HOST/DATABASE\", as it is or as { env = \"NAME\" }";

/// A relative SQLite path starts at `data_dir`.
pub(super) fn read(t: &Table, data_dir: &Path) -> Ledger {
    Ledger {
        store: t
            .value("url", |v| store(v, data_dir))
            .unwrap_or_else(|| LedgerStore::Sqlite(data_dir.join("ledger.db"))),
        durability: t.value("durability", word).unwrap_or(Durability::Process),
        on_error: t.value("on_error", word).unwrap_or(OnError::Refuse),
        on_unknown: t.value("on_unknown", word).unwrap_or(OnUnknown::Hold),
        retention: t
            .value("retention", some_time)
            .unwrap_or(Duration::from_secs(30 * 24 * 60 * 60)),
        leftovers: data_dir.join("unsettled"),
    }
}

/// The URL may hold a password, so a bad one is not shown, and it may be had as secrets are.
fn store(v: &Value, data_dir: &Path) -> Option<LedgerStore> {
    let secret;
    let url = if v.raw.is_table() {
        secret = secrets::secret(v)?;
        secret.expose()
    } else {
        v.text().unwrap_or_default()
    };
    match url.split_once(':') {
        Some(("sqlite", path)) if is_path(path) => Some(LedgerStore::Sqlite(data_dir.join(path))),
        Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => postgres(v, url),
        Some(_) | None => {
            v.refuse_hidden(URL);
            None
        }
    }
}

fn postgres(v: &Value, url: &str) -> Option<LedgerStore> {
    match url_fault(url) {
        None => Some(LedgerStore::Postgres(Secret::new(url.to_owned()))),
        Some(fault) => {
            v.refuse_hidden(&format!("{fault}; {URL}"));
            None
        }
    }
}

/// A path of a file; SQLite's own names for databases in memory are none.
fn is_path(path: &str) -> bool {
    !path.is_empty() && !path.starts_with("//") && !path.starts_with(':') && !path.contains('\0')
}
