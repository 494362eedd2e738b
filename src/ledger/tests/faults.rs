//! The thread over a store that fails on demand: nothing is lost, nothing is written twice, nothing waits for long.

use super::*;
use crate::clock::Timestamp;
use crate::ledger::entry::RunId;
use crate::ledger::error::Kind;
use crate::ledger::handle::Observer;
use crate::ledger::leftovers::Leftovers;
use crate::ledger::sqlite::SqliteStore;
use crate::ledger::store::{Committed, Standing, Store, Write};
use crate::ledger::worker::Clockwork;
use crate::ledger::{Amounts, Known, Ledger, LedgerError, Opened, Posting, owner};
use crate::record::{RequestId, State};
use crate::tenant::TenantName;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// What fails.
#[derive(Debug, Default)]
struct Plan {
    all: Option<Kind>,
    /// A group that holds this id.
    id: Option<String>,
    /// A group that settles something.
    ends: bool,
    /// Look-ups.
    finds: bool,
    /// The transaction is written and its success reported as a failure, once.
    in_doubt: bool,
    reopened: usize,
}

/// A SQLite store that fails as planned.
struct Faulty {
    store: SqliteStore,
    /// Held, no commit ends.
    gate: Arc<Mutex<()>>,
    plan: Arc<Mutex<Plan>>,
}

impl Faulty {
    fn fail(&self) -> Result<(), LedgerError> {
        match self.plan.lock().unwrap().all {
            Some(kind) => Err(LedgerError::new("ledger.db", kind, "as planned")),
            None => Ok(()),
        }
    }
}

impl Store for Faulty {
    fn place(&self) -> &str {
        "ledger.db"
    }

    fn recover(&mut self, now: Timestamp) -> Result<Standing, LedgerError> {
        self.store.recover(now)
    }

    fn commit(&mut self, writes: &[Write], now: Timestamp) -> Result<Committed, LedgerError> {
        drop(self.gate.lock().unwrap());
        self.fail()?;
        let bad = self.plan.lock().unwrap().id.clone();
        let is_bad = |w: &Write| bad.as_deref() == Some(w.names().1.as_str());
        let no_ends = self.plan.lock().unwrap().ends;
        let is_end = |w: &Write| no_ends && matches!(w, Write::Settle(_));
        if writes.iter().any(|w| is_bad(w) || is_end(w)) {
            return Err(LedgerError::new(
                "ledger.db",
                Kind::Damaged,
                "a page is damaged",
            ));
        }
        let committed = self.store.commit(writes, now)?;
        if std::mem::take(&mut self.plan.lock().unwrap().in_doubt) {
            return Err(LedgerError::new("ledger.db", Kind::Io, "the sync failed"));
        }
        Ok(committed)
    }

    fn probe(&mut self, now: Timestamp) -> Result<(), LedgerError> {
        self.fail()?;
        self.store.probe(now)
    }

    fn find(&mut self, tenant: &TenantName, id: &RequestId) -> Result<Option<Known>, LedgerError> {
        self.fail()?;
        if self.plan.lock().unwrap().finds {
            return Err(LedgerError::new(
                "ledger.db",
                Kind::Damaged,
                "a page is damaged",
            ));
        }
        self.store.find(tenant, id)
    }

    fn follow(&mut self, now: Timestamp) -> Result<Vec<Posting>, LedgerError> {
        self.fail()?;
        self.store.follow(now)
    }

    fn total(&mut self) -> Result<Amounts, LedgerError> {
        self.fail()?;
        self.store.total()
    }

    fn forget(&mut self, before: Timestamp) -> Result<bool, LedgerError> {
        self.fail()?;
        self.store.forget(before)
    }

    fn configure(&mut self, config: &crate::config::Ledger) {
        self.store.configure(config);
    }

    fn act_as(&mut self, run: RunId) -> RunId {
        self.store.act_as(run)
    }

    fn reopen(&mut self) -> Result<(), LedgerError> {
        self.plan.lock().unwrap().reopened += 1;
        self.store.reopen()
    }

    fn close(&mut self) {
        self.store.close();
    }
}

struct Stage {
    scratch: Scratch,
    ledger: Ledger,
    ears: Ears,
    plan: Arc<Mutex<Plan>>,
    gate: Arc<Mutex<()>>,
}

fn stage() -> Stage {
    stage_with(Duration::from_millis(50))
}

/// With its own time between two looks at what others did.
fn stage_with(tick: Duration) -> Stage {
    let scratch = Scratch::new();
    let config = config(&scratch.database());
    let run = owner::fresh_run();
    let store = SqliteStore::start(&scratch.database(), &config, run.clone()).unwrap();
    let plan = Arc::new(Mutex::new(Plan::default()));
    let gate = Arc::new(Mutex::new(()));
    let faulty = Faulty {
        store,
        gate: gate.clone(),
        plan: plan.clone(),
    };
    let ears = Ears::default();
    let observer: Box<dyn Observer + Send> = Box::new(ears.clone());
    let clockwork = Clockwork {
        tick,
        farewell: Duration::from_millis(300),
        ..Clockwork::of(config.retention)
    };
    let leftovers = Leftovers {
        folder: config.leftovers.clone(),
        run,
    };
    let (ledger, _) = Ledger::on(Box::new(faulty), observer, clockwork, leftovers).unwrap();
    Stage {
        scratch,
        ledger,
        ears,
        plan,
        gate,
    }
}

impl Stage {
    fn plan(&self, change: impl FnOnce(&mut Plan)) {
        change(&mut self.plan.lock().unwrap());
    }

    /// The charges and the counts of what the ledger holds after all.
    fn charged_in_the_end(self) -> (i64, u64, u64) {
        self.ledger.close().ok();
        let (ledger, recovered, _) = start(&config(&self.scratch.database()));
        ledger.close().unwrap();
        let charged = recovered.accounts.iter().map(|p| p.amounts.charged).sum();
        (charged, recovered.open, recovered.unknown)
    }
}

#[tokio::test]
async fn openings_that_come_during_a_commit_share_the_next() {
    let stage = stage();
    let names: Vec<String> = (0..100).map(|n| format!("r{n}")).collect();
    let mut openings: Vec<_> = names
        .iter()
        .map(|name| Box::pin(stage.ledger.open(opening(name))))
        .collect();
    let closed = stage.gate.lock().unwrap();
    let polled = openings.iter_mut().map(|o| polled(o.as_mut()));
    assert!(
        polled
            .collect::<Vec<_>>()
            .iter()
            .all(std::task::Poll::is_pending)
    );
    drop(closed);
    for opening in openings {
        assert_eq!(opening.await, Ok(Opened::New));
    }
    let commits = stage
        .ears
        .heard()
        .into_iter()
        .filter(|h| matches!(h, Heard::Committed(_)));
    assert!(commits.count() <= 2, "{:?}", stage.ears.heard());
    stage.ledger.close().unwrap();
}

#[tokio::test]
async fn after_a_full_disk_all_settlements_are_written_once() {
    let stage = stage();
    for n in 0..20 {
        let opened = stage.ledger.open(opening(&format!("r{n}"))).await;
        assert_eq!(opened, Ok(Opened::New));
    }
    stage.plan(|p| p.all = Some(Kind::Full));
    for n in 0..20 {
        stage
            .ledger
            .settle(ended(complete(&running(&format!("r{n}")))));
    }
    until("some failures", || stage.ears.failures() > 3).await;
    stage.plan(|p| p.all = None);
    until("all to be settled", || stage.ears.state() == Some((0, 0))).await;
    until("it to be up", || stage.ledger.is_up()).await;
    assert_eq!(
        stage.plan.lock().unwrap().reopened,
        0,
        "a full disk is no reason to reopen"
    );
    assert_eq!(stage.charged_in_the_end(), (800, 0, 0));
}

#[tokio::test]
async fn an_opening_that_waited_is_written_as_soon_as_the_trouble_is_over() {
    let stage = stage_with(Duration::from_secs(60));
    stage.plan(|p| p.all = Some(Kind::Full));
    let mut opening = Box::pin(stage.ledger.open(opening("r")));
    assert!(polled(opening.as_mut()).is_pending());
    until("a failure", || stage.ears.failures() > 0).await;
    stage.plan(|p| p.all = None);
    assert_eq!(opening.await, Ok(Opened::New));
    stage.ledger.close().unwrap();
}

#[tokio::test]
async fn on_a_slow_disk_an_opening_fails_in_time_and_leaves_nothing_open() {
    let stage = stage();
    let gate = stage.gate.clone();
    let ((close, closed), (open, opened)) = (mpsc::channel(), mpsc::channel::<()>());
    let disk = std::thread::spawn(move || {
        let _held = gate.lock().unwrap();
        close.send(()).unwrap();
        opened.recv().unwrap_err();
    });
    closed.recv().unwrap();
    let error = stage.ledger.open(opening("late")).await.unwrap_err();
    assert!(error.to_string().contains("its disk is slow"), "{error}");
    stage.ledger.settle(ended(complete(&running("other"))));
    drop(open);
    disk.join().unwrap();
    until("the disk to be quick again", || stage.ledger.is_up()).await;
    let late = stage.ledger.find(&acme(), &id("late")).await;
    let late = late.unwrap().unwrap().record;
    assert_eq!(late.state, State::Failed);
    assert_eq!(
        late.error.as_deref(),
        Some("the ledger did not answer in time")
    );
    assert_eq!(stage.charged_in_the_end(), (40, 0, 0));
}

#[tokio::test]
async fn while_a_commit_hangs_ends_are_known_and_nobody_waits_for_the_rest() {
    let stage = stage();
    let gate = stage.gate.clone();
    let (closed, opened) = (mpsc::channel(), mpsc::channel::<()>());
    let disk = std::thread::spawn(move || {
        let _held = gate.lock().unwrap();
        closed.0.send(()).unwrap();
        opened.1.recv().unwrap_err();
    });
    closed.1.recv().unwrap();
    assert!(stage.ledger.open(opening("served")).await.is_err());
    until("the hang to be seen", || !stage.ledger.is_up()).await;
    stage.ledger.settle(ended(complete(&running("served"))));
    let found = stage.ledger.find(&acme(), &id("served")).await;
    let found = found.unwrap().expect("its end waits to be written");
    assert!(found.shown && found.is_of(&print("payload")));
    let from = crate::clock::instant();
    for _ in 0..20 {
        let error = stage.ledger.open(opening("next")).await.unwrap_err();
        assert!(error.to_string().contains("no answer"), "{error}");
        assert!(stage.ledger.find(&acme(), &id("other")).await.is_err());
    }
    let took = crate::clock::instant().saturating_duration_since(from);
    // each of forty would wait for a second
    assert!(took < Duration::from_secs(20), "each waited: {took:?}");
    assert_eq!(stage.ledger.unwritten(), 1);
    drop(opened.0);
    disk.join().unwrap();
    until("the end to be written", || stage.ledger.unwritten() == 0).await;
    assert!(stage.ledger.is_up());
    assert_eq!(stage.charged_in_the_end(), (40, 0, 0));
}

#[tokio::test]
async fn a_damaged_connection_is_made_anew() {
    let stage = stage();
    stage.plan(|p| p.all = Some(Kind::Io));
    stage.ledger.settle(ended(complete(&running("r"))));
    until("some failures", || stage.ears.failures() > 2).await;
    stage.plan(|p| p.all = None);
    until("it to be written", || stage.ledger.is_up()).await;
    assert!(stage.plan.lock().unwrap().reopened > 0);
    assert_eq!(stage.charged_in_the_end(), (40, 0, 0));
}

#[tokio::test]
async fn an_entry_that_cannot_be_written_does_not_hold_up_the_others() {
    let stage = stage();
    stage.plan(|p| p.id = Some("bad".into()));
    for name in ["a", "b", "bad", "c"] {
        stage.ledger.settle(ended(complete(&running(name))));
    }
    let opened = stage.ledger.open(opening("d")).await;
    assert_eq!(opened, Ok(Opened::New), "{:?}", stage.ears.heard());
    for name in ["a", "b", "c"] {
        assert!(
            stage
                .ledger
                .find(&acme(), &id(name))
                .await
                .unwrap()
                .is_some(),
            "{name}"
        );
    }
    let waiting = stage.ledger.find(&acme(), &id("bad")).await.unwrap();
    assert!(waiting.is_some(), "what is set aside is still seen");
    stage.ledger.settle(ended(complete(&running("d"))));
    stage.plan(|p| p.id = None);
    assert_eq!(stage.charged_in_the_end(), (5 * 40, 0, 0));
}

#[tokio::test]
async fn where_the_ends_of_many_cannot_be_written_nothing_more_is_begun() {
    let stage = stage();
    stage.plan(|p| p.ends = true);
    let mut begun = 0;
    while stage
        .ledger
        .open(opening(&format!("r{begun}")))
        .await
        .is_ok()
    {
        stage
            .ledger
            .settle(ended(complete(&running(&format!("r{begun}")))));
        begun += 1;
        assert!(begun < 10_000, "the ledger goes on");
        until("it to have failed", || !stage.ledger.is_up()).await;
    }
    assert_eq!(stage.ledger.unwritten(), begun);
    stage.plan(|p| p.ends = false);
    until("all ends to be written", || stage.ledger.unwritten() == 0).await;
    assert_eq!(stage.ledger.open(opening("next")).await, Ok(Opened::New));
    stage.ledger.settle(ended(complete(&running("next"))));
    let charged = i64::try_from(begun + 1).unwrap() * 40;
    assert_eq!(stage.charged_in_the_end(), (charged, 0, 0));
}

#[tokio::test]
async fn a_look_up_that_fails_is_no_secret() {
    let stage = stage_with(Duration::from_secs(3600));
    assert_eq!(stage.ledger.open(opening("r")).await, Ok(Opened::New));
    stage.plan(|p| p.finds = true);
    assert!(stage.ledger.find(&acme(), &id("r")).await.is_err());
    assert!(!stage.ledger.is_up() && stage.ears.failures() == 1);
    stage.plan(|p| p.finds = false);
    assert!(stage.ledger.find(&acme(), &id("r")).await.is_ok());
    assert!(stage.ledger.is_up());
    stage.ledger.close().unwrap();
}

#[tokio::test]
async fn an_opening_that_cannot_be_written_is_told_so_and_the_others_go_on() {
    let stage = stage();
    stage.plan(|p| p.id = Some("bad".into()));
    let (bad, good) = tokio::join!(
        stage.ledger.open(opening("bad")),
        stage.ledger.open(opening("good"))
    );
    assert!(bad.unwrap_err().to_string().contains("a page is damaged"));
    assert_eq!(good, Ok(Opened::New));
    assert_eq!(stage.ledger.open(opening("next")).await, Ok(Opened::New));
    stage.ledger.close().unwrap();
}

#[tokio::test]
async fn a_commit_that_came_through_though_it_was_reported_failed_is_not_written_twice() {
    let stage = stage();
    stage.plan(|p| p.in_doubt = true);
    assert_eq!(stage.ledger.open(opening("r")).await, Ok(Opened::New));
    stage.plan(|p| p.in_doubt = true);
    stage.ledger.settle(ended(complete(&running("r"))));
    let found = stage.ledger.find(&acme(), &id("r")).await.unwrap().unwrap();
    assert_eq!(found.record, complete(&running("r")));
    until("the trouble to be over", || {
        stage.ears.failures() == 2 && stage.ledger.is_up()
    })
    .await;
    until("the counts to be right", || {
        stage.ears.state() == Some((0, 0))
    })
    .await;
    assert_eq!(stage.charged_in_the_end(), (40, 0, 0));
}

#[tokio::test]
async fn a_request_served_while_the_ledger_was_down_is_booked_when_it_is_back() {
    let stage = stage();
    stage.plan(|p| p.all = Some(Kind::ReadOnly));
    assert!(stage.ledger.open(opening("r")).await.is_err());
    stage.ledger.settle(ended(complete(&running("r"))));
    stage.plan(|p| p.all = None);
    until("it to be written", || stage.ledger.is_up()).await;
    assert_eq!(stage.charged_in_the_end(), (40, 0, 0));
}

#[tokio::test]
async fn closing_does_not_wait_for_ever_and_what_it_could_not_write_is_brought_in_by_the_next() {
    let stage = stage();
    assert_eq!(stage.ledger.open(opening("r")).await, Ok(Opened::New));
    stage.plan(|p| p.all = Some(Kind::Full));
    stage.ledger.settle(ended(complete(&running("r"))));
    let never_opened = complete(&running("never-opened"));
    stage.ledger.settle(ended(never_opened));
    let told = stage.ledger.clone().close().unwrap_err();
    assert!(
        told.contains("2 ends") && told.contains("unsettled"),
        "{told}"
    );
    assert_eq!(stage.charged_in_the_end(), (80, 0, 0));
}

#[tokio::test]
async fn a_long_outage_keeps_settlements_and_no_more() {
    let stage = stage();
    stage.plan(|p| p.all = Some(Kind::Full));
    for n in 0..50 {
        assert!(
            stage
                .ledger
                .open(opening(&format!("refused-{n}")))
                .await
                .is_err()
        );
        stage.ledger.checkpoint(running("served"));
    }
    stage.ledger.settle(ended(complete(&running("served"))));
    stage.plan(|p| p.all = None);
    until("it to be written", || stage.ledger.is_up()).await;
    let written: usize = stage
        .ears
        .heard()
        .iter()
        .map(|h| if let Heard::Committed(n) = h { *n } else { 0 })
        .sum();
    assert!(written <= 3, "{written} writes after the outage");
    assert_eq!(stage.charged_in_the_end(), (40, 0, 0));
}
