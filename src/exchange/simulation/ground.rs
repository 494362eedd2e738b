//! What a world is made of: a configuration, and services that report to nobody.

use crate::access_log::AccessLog;
use crate::budget::Units;
use crate::clock;
use crate::config::{self, Config, LogTarget};
use crate::exchange::Services;
use crate::ledger::{Ledger, Observer, Posting};
use crate::metrics::Metrics;
use crate::ops::LogFile;
use crate::record::{Admitted, Api, Record, RequestId};
use crate::tenant::{Tenant, Wanted};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Four tenants that differ in all that admission looks at.
const TENANTS: &str = r#"
[[tenant]]
name = "day"
keys = [{ sha256 = "0000000000000000000000000000000000000000000000000000000000000001" }]
weight = 3
max_streams = 3
max_queued = 6
requests_per_minute = 90
budget = { units = 3000000, period = "day" }
[[tenant]]
name = "hour"
keys = [{ sha256 = "0000000000000000000000000000000000000000000000000000000000000002" }]
units_per_minute = 20000
budget = { units = 400000, period = "hour" }
[[tenant]]
name = "clamp"
keys = [{ sha256 = "0000000000000000000000000000000000000000000000000000000000000003" }]
max_streams = 2
budget = { units = 150000, period = "hour" }
clamp = true
[[tenant]]
name = "free"
keys = [{ sha256 = "0000000000000000000000000000000000000000000000000000000000000004" }]
weight = 2
max_queued = 4
charge_cancelled = "delivered"
[[listen]]
addr = "127.0.0.1:1"
[[pool]]
name = "p"
models = ["m"]
backends = [{ addr = "10.0.0.1:8000" }]
queue = { max_wait = "2s", max_len = 16 }
"#;

pub fn config() -> Config {
    config::parse(TENANTS, std::path::Path::new("/x/t.toml")).unwrap()
}

struct Deaf;

impl Observer for Deaf {
    fn committed(&self, _took: Duration, _writes: usize) {}
    fn state(&self, _open: u64, _unknown: u64) {}
    fn adjusted(&self, _change: &Posting) {}
}

pub fn services(config: &Config, ledger: Ledger) -> Arc<Services> {
    let log = LogFile::open(&LogTarget::Off).unwrap();
    Arc::new(Services {
        ledger,
        metrics: Arc::new(Metrics::new().unwrap()),
        access_log: AccessLog::new(log, config.log.format),
        checkpoints: AtomicBool::new(false),
    })
}

/// A ledger that has been closed: here the book is what lasts, and what exchanges tell the ledger goes nowhere.
pub fn closed_ledger(seed: u64, config: &mut Config) -> Ledger {
    let name = format!("sg-simulation-{}-{seed}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    config.ledger.store = config::LedgerStore::Sqlite(folder.join("ledger.db"));
    let (ledger, _) = Ledger::start(&config.ledger, Box::new(Deaf)).unwrap();
    ledger.clone().close().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    ledger
}

/// The record of a request that is admitted now.
pub fn record(id: RequestId, tenant: &Tenant, wanted: Wanted, reserved: Units) -> Record {
    let admitted = Admitted {
        request_id: id,
        tenant: tenant.name().clone(),
        api: Api::Chat,
        model: "m".to_owned(),
        pool: "p".to_owned(),
        node: "n".to_owned(),
        at: clock::now(),
    };
    Record {
        reserved_units: reserved,
        input_units: wanted.input,
        ..Record::new(admitted)
    }
}
