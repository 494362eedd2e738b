//! What an exchange owes in every way it can end: units settled once, slots free, the ledger told.

use super::*;
use crate::access_log::{AccessLog, Wire};
use crate::budget::Units;
use crate::clock;
use crate::config::{self, Budget, LogTarget, Period};
use crate::ledger::{Fingerprint, Ledger, Observer, Opening, Posting};
use crate::metrics::Metrics;
use crate::ops::LogFile;
use crate::record::{Admitted, Api, Outcome, Record, RequestId, State, UpstreamEnd};
use crate::slots::Slots;
use crate::tenant::{Directory, Holdings, Tenant, Wanted};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

struct Deaf;

impl Observer for Deaf {
    fn committed(&self, _took: Duration, _writes: usize) {}
    fn state(&self, _open: u64, _unknown: u64) {}
    fn adjusted(&self, _change: &Posting) {}
}

/// A tenant with a budget of a thousand units, a ledger, and slots to look at.
struct Ground {
    folder: PathBuf,
    services: Arc<Services>,
    registry: Arc<Registry>,
    tenant: Arc<Tenant>,
    pool: Arc<Slots>,
}

impl Ground {
    fn new(name: &str) -> Ground {
        let folder = std::env::temp_dir().join(format!("sg-owner-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let text = "[server]\ndata_dir = \"data\"\n[[listen]]\naddr = \"127.0.0.1:1\"\n[[tenant]]\nname = \"t\"\n\
            anonymous = true\nmax_streams = 5\n[[pool]]\nname = \"p\"\nmodels = [\"m\"]\n\
            backends = [{ addr = \"127.0.0.1:2\" }]\n";
        let mut config = config::parse(text, &folder.join("t.toml")).unwrap();
        std::fs::create_dir_all(&config.server.data_dir).unwrap();
        config.tenants[0].budget = Some(Budget {
            units: Units(1000),
            period: Period::Total,
        });
        let (ledger, _) = Ledger::start(&config.ledger, Box::new(Deaf)).unwrap();
        let tenants = Directory::new(&config.tenants, &Holdings::default());
        Ground {
            services: Arc::new(Services {
                ledger,
                metrics: Arc::new(Metrics::new().unwrap()),
                access_log: AccessLog::new(
                    LogFile::open(&LogTarget::Off).unwrap(),
                    config.log.format,
                ),
                checkpoints: AtomicBool::new(false),
            }),
            registry: Arc::new(Registry::default()),
            tenant: tenants.all()[0].clone(),
            pool: Slots::new(Some(1)),
            folder,
        }
    }

    /// A running exchange that reserved a hundred units, its entry open in the ledger.
    async fn exchange(&self, id: &str) -> Exchange {
        let now = clock::now();
        let wanted = Wanted {
            input: Units(10),
            output: Units(90),
            choices: 1,
        };
        let reserved = self.tenant.reserve(&wanted, now, clock::instant()).unwrap();
        let record = Record {
            reserved_units: reserved.units(),
            input_units: Units(10),
            ..record(id, self.tenant.name().clone())
        };
        let fingerprint = Fingerprint::of(self.tenant.name(), "POST", "/", id.as_bytes());
        let opening = Opening {
            record: record.clone(),
            fingerprint,
        };
        self.services.ledger.open(opening).await.unwrap();
        let claim = self
            .registry
            .claim(self.tenant.name(), &record.request_id, fingerprint);
        let claim = claim.unwrap();
        let admission = Admission {
            live: claim.show(record),
            claim,
            tenant: self.tenant.clone(),
            reserved,
            charged_before: Units::ZERO,
        };
        let mut exchange = Exchange::new(admission, self.services.clone(), Wire::default());
        exchange.start(Granted {
            tenant: self.tenant.slots().take().unwrap(),
            pool: self.pool.take().unwrap(),
        });
        exchange.begin_attempt("127.0.0.1:2", Slots::new(None).take().unwrap());
        exchange
    }

    fn charged(&self) -> (Units, Units) {
        let sums = self.tenant.account().sums(clock::now());
        (sums.charged, sums.reserved)
    }

    async fn settled(&self, id: &str) -> Record {
        let id = RequestId::parse(id).unwrap();
        let known = self.services.ledger.find(self.tenant.name(), &id).await;
        known.unwrap().unwrap().record
    }

    fn nothing_is_held(&self) {
        assert_eq!((self.pool.used(), self.tenant.slots().used()), (0, 0));
        assert!(self.registry.is_empty());
        assert_eq!(self.charged().1, Units::ZERO);
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        self.services.ledger.clone().close().unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
    }
}

fn record(id: &str, tenant: crate::tenant::TenantName) -> Record {
    Record::new(Admitted {
        request_id: RequestId::parse(id).unwrap(),
        tenant,
        api: Api::Chat,
        model: "m".to_owned(),
        pool: "p".to_owned(),
        node: "n".to_owned(),
        at: clock::now(),
    })
}

fn made(exchange: &mut Exchange, units: u64) {
    let usage = Usage {
        generated: Units(units),
        ..exchange.usage()
    };
    exchange.count(usage);
}

#[tokio::test]
async fn a_stream_dropped_without_logging_is_charged_what_it_made() {
    let ground = Ground::new("dropped");
    let mut exchange = ground.exchange("a").await;
    exchange.called();
    exchange.show();
    made(&mut exchange, 7);
    drop(exchange);
    ground.nothing_is_held();
    assert_eq!(ground.charged().0, Units(17));
    let record = ground.settled("a").await;
    assert_eq!(
        (record.state, record.charged_units),
        (State::Failed, Units(17))
    );
    assert_eq!(record.attempts.len(), 1);
}

#[tokio::test]
async fn a_second_end_changes_nothing() {
    let ground = Ground::new("twice");
    let mut exchange = ground.exchange("a").await;
    exchange.called();
    made(&mut exchange, 7);
    exchange.end_attempt(Outcome::Ok, None);
    exchange.release(UpstreamEnd::Complete);
    exchange.end(&Ending::completed(), None);
    exchange.end(&Ending::cancelled(), None);
    drop(exchange);
    ground.nothing_is_held();
    assert_eq!(ground.charged().0, Units(17));
    let record = ground.settled("a").await;
    assert_eq!(record.state, State::Completed);
    assert_eq!(record.upstream_end, UpstreamEnd::Complete);
}

#[tokio::test]
async fn the_slots_are_free_at_the_release_and_the_units_at_the_end() {
    let ground = Ground::new("release");
    let mut exchange = ground.exchange("a").await;
    exchange.called();
    exchange.release(UpstreamEnd::Complete);
    assert_eq!((ground.pool.used(), ground.charged().1), (0, Units(100)));
    exchange.end_attempt(Outcome::Ok, None);
    exchange.end(&Ending::completed(), None);
    ground.nothing_is_held();
}

#[tokio::test]
async fn what_was_refused_is_free_but_not_where_another_try_ran_before() {
    let ground = Ground::new("refused");
    let mut exchange = ground.exchange("a").await;
    exchange.called();
    exchange.end_attempt(Outcome::Refused, Some(503));
    exchange.end(&Ending::upstream("refused"), None);
    assert_eq!(ground.charged().0, Units::ZERO);
    drop(exchange);
    let mut exchange = ground.exchange("b").await;
    exchange.called();
    exchange.end_attempt(Outcome::Reset, None);
    exchange.leave_backend();
    exchange.begin_attempt("127.0.0.1:3", Slots::new(None).take().unwrap());
    exchange.end_attempt(Outcome::ConnectFailed, None);
    exchange.release(UpstreamEnd::None);
    exchange.end(&Ending::upstream("unreachable"), None);
    assert_eq!(ground.charged().0, Units(10));
    assert_ne!(ground.settled("b").await.upstream_end, UpstreamEnd::None);
    ground.nothing_is_held();
}

#[tokio::test]
async fn an_id_is_found_by_the_registry_until_the_ledger_has_its_end() {
    let ground = Ground::new("found");
    let mut exchange = ground.exchange("a").await;
    let id = RequestId::parse("a").unwrap();
    assert!(ground.registry.find(ground.tenant.name(), &id).is_some());
    exchange.end(&Ending::client_closed(), None);
    assert!(ground.registry.find(ground.tenant.name(), &id).is_none());
    assert_eq!(ground.settled("a").await.state, State::Cancelled);
}
