//! The exchange: the one owner of one request, from admission to settlement.

use super::checkpoints::Checkpoints;
use super::ending::Ending;
use super::live::{Live, Stop};
use super::queue::Granted;
use super::registry::Claim;
use super::usage::{Ended, Usage};
use crate::access_log::{AccessLog, Wire};
use crate::budget::Units;
use crate::clock;
use crate::ledger::{End, Ledger};
use crate::metrics::Metrics;
use crate::record::{Attempt, Outcome, Record, State, UpstreamEnd};
use crate::slots::Slot;
use crate::tenant::{Reserved, Tenant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What every exchange reports to.
pub struct Services {
    pub ledger: Ledger,
    pub metrics: Arc<Metrics>,
    pub access_log: AccessLog,
    /// After a crash the figures that the ledger last held are charged: it is told of them often.
    pub checkpoints: AtomicBool,
}

/// What admission took for a request, handed over whole.
pub struct Admission {
    /// The record, as it has been shown under the claim.
    pub live: Arc<Live>,
    pub tenant: Arc<Tenant>,
    pub claim: Claim,
    pub reserved: Reserved,
    /// What earlier attempts under the same id were charged.
    pub charged_before: Units,
}

/// What the end gives back. Taken out of the exchange once: a second end finds nothing.
struct Lease {
    claim: Claim,
    reserved: Reserved,
}

/// The slots that a request holds.
struct Held {
    /// The backend's that is tried at present. Given back before the pool's, so that who gets the pool's slot next finds
    /// the backend's free.
    backend: Option<Slot>,
    _granted: Granted,
}

/// The owner of one request.
pub struct Exchange {
    live: Arc<Live>,
    services: Arc<Services>,
    tenant: Arc<Tenant>,
    lease: Option<Lease>,
    /// Given back as soon as the upstream's part is over.
    slots: Option<Held>,
    usage: Usage,
    charged_before: Units,
    upstream: UpstreamEnd,
    /// A try is under way, of which nothing is on the record yet.
    trying: bool,
    /// A try may have run: it was neither refused by status nor not connected.
    ran: bool,
    checkpoints: Checkpoints,
    /// What the access line says of the HTTP exchange.
    pub wire: Wire,
}

impl Exchange {
    /// Takes over what admission took. From here on every way out settles.
    pub fn new(admission: Admission, services: Arc<Services>, wire: Wire) -> Exchange {
        let Admission {
            live,
            tenant,
            claim,
            reserved,
            charged_before,
        } = admission;
        let usage = {
            let record = live.lock();
            services.metrics.entered(&record, State::Queued);
            Usage::estimated(record.input_units)
        };
        Exchange {
            live,
            services,
            tenant,
            lease: Some(Lease { claim, reserved }),
            slots: None,
            usage,
            charged_before,
            upstream: UpstreamEnd::None,
            trying: false,
            ran: false,
            checkpoints: Checkpoints::new(),
            wire,
        }
    }

    /// The record as it stands.
    pub fn record(&self) -> Record {
        self.live.record()
    }

    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    pub fn metrics(&self) -> &Metrics {
        &self.services.metrics
    }

    fn stop_asked(&self) -> Option<Stop> {
        self.live.stop_asked()
    }

    /// QUEUED → RUNNING: its turn has come.
    pub fn start(&mut self, granted: Granted) {
        self.slots = Some(Held {
            backend: None,
            _granted: granted,
        });
        let mut record = self.live.lock();
        record.started_at = Some(clock::now());
        self.advance(&mut record, State::Running);
    }

    /// A backend is about to be tried. Its slot is held beside the pool's.
    pub fn begin_attempt(&mut self, backend: &str, slot: Slot) {
        self.trying = true;
        if let Some(slots) = &mut self.slots {
            slots.backend = Some(slot);
        }
        let is_another = {
            let mut record = self.live.lock();
            record.backend = Some(backend.to_owned());
            !record.attempts.is_empty()
        };
        if is_another {
            self.checkpoint();
        }
    }

    /// The request is on its way to the upstream: from here on it may cost something.
    pub fn called(&mut self) {
        self.upstream = UpstreamEnd::Error;
    }

    /// Whether an upstream has got the request, and it may have cost something.
    pub fn was_called(&self) -> bool {
        self.upstream != UpstreamEnd::None
    }

    /// How the try went.
    pub fn end_attempt(&mut self, outcome: Outcome, status: Option<u16>) {
        self.trying = false;
        self.ran |= !matches!(outcome, Outcome::Refused | Outcome::ConnectFailed);
        let mut record = self.live.lock();
        let backend = record.backend.clone().unwrap_or_default();
        record.attempts.push(Attempt {
            backend,
            outcome,
            status,
        });
    }

    /// The upstream's own name for the request. Its bill says no other: a crash must not lose it.
    pub fn named_upstream(&mut self, id: String) {
        self.live.lock().upstream_request_id = Some(id);
        self.checkpoint();
    }

    /// RUNNING → STREAMING: output is being shown to the client.
    pub fn show(&mut self) {
        let mut record = self.live.lock();
        if record.first_output_at.is_some() {
            return;
        }
        let now = clock::now();
        record.first_output_at = Some(now);
        self.advance(&mut record, State::Streaming);
        self.services
            .metrics
            .first_output(&record.pool, now.since(record.admitted_at));
    }

    /// What is known of the units by now.
    pub fn count(&mut self, usage: Usage) {
        self.usage = usage;
        write_usage(&mut self.live.lock(), &usage);
        let often = self.services.checkpoints.load(Ordering::Relaxed);
        if self.trying && self.checkpoints.is_due(often) {
            self.checkpoint();
        }
    }

    /// Tells the ledger how far the request has come, for the case of a crash.
    pub fn checkpoint(&self) {
        self.services.ledger.checkpoint(self.live.record());
    }

    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The client is found to have left.
    pub fn client_gone(&mut self) {
        self.live
            .lock()
            .client_gone_at
            .get_or_insert_with(clock::now);
    }

    /// The upstream's part is over: the slots are free. How it ended is what is said first.
    pub fn release(&mut self, upstream: UpstreamEnd) {
        let Some(slots) = self.slots.take() else {
            return;
        };
        // what was called once stays called, also where a later try did not get so far
        if self.upstream != UpstreamEnd::None && upstream != UpstreamEnd::None {
            self.upstream = upstream;
        }
        drop(slots);
        let now = clock::now();
        let mut record = self.live.lock();
        record.upstream_end = self.upstream;
        if self.upstream != UpstreamEnd::None {
            record.upstream_ended_at = Some(now);
        }
        record.released_at = Some(now);
        self.services.metrics.released(&record, now);
    }

    /// Gives back the slot of a backend that is tried no longer; the tenant's and the pool's stay.
    pub fn leave_backend(&mut self) {
        if let Some(slots) = &mut self.slots {
            slots.backend = None;
        }
    }

    /// Ends the request: units settled, slots free, the ledger told, the metrics and the access line written. The first
    /// call does it all, every later one nothing.
    pub fn end(&mut self, ending: &Ending, code: Option<&str>) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        self.release(UpstreamEnd::Aborted);
        if self.trying {
            self.end_attempt(Outcome::Aborted, None);
        }
        let (record, before) = self.close(ending, &lease);
        let charge = record.charged_units.minus(self.charged_before);
        let metrics = &self.services.metrics;
        metrics.left(&record, before);
        metrics.ended(&record, charge, lease.reserved.units());
        lease.reserved.settle(charge);
        // a complete answer is one also where nothing in it is output: its id has had its run
        let shown = record.first_output_at.is_some() || record.state == State::Completed;
        self.services
            .access_log
            .ended(&self.wire, &record, before, code);
        self.services.ledger.settle(End {
            record,
            fingerprint: lease.claim.fingerprint(),
            shown,
            charge,
        });
        // the id is given up only now: whoever looks it up finds it here or in the ledger, never in neither
        drop(lease.claim);
    }

    /// Writes the end into the record; the record and the state it ended in.
    fn close(&mut self, ending: &Ending, lease: &Lease) -> (Record, State) {
        let mut record = self.live.lock();
        let before = record.state;
        let ended = Ended {
            state: ending.state,
            upstream: self.upstream,
            refused: !self.ran,
            charge_cancelled: self.tenant.rules.charge_cancelled,
        };
        record.state = ending.state;
        record.ended_by = Some(ending.by);
        record.error = ending.why.clone();
        record.upstream_end = self.upstream;
        record.reserved_units = lease.reserved.units();
        record.charged_units = self.charged_before.plus(self.usage.charge(&ended));
        record.ended_at = Some(clock::now());
        (record.clone(), before)
    }

    fn advance(&self, record: &mut Record, to: State) {
        let from = record.state;
        if from.is_terminal() || from == to {
            log::error!(
                "request {} cannot go from {from} to {to}",
                record.request_id
            );
            return;
        }
        record.state = to;
        self.services.metrics.left(record, from);
        self.services.metrics.entered(record, to);
    }
}

impl Drop for Exchange {
    /// Where `logging` never came: a panic in a hook, or the runtime going down.
    fn drop(&mut self) {
        let ending = match self.stop_asked() {
            Some(Stop::Drain) => Ending::drained(),
            Some(Stop::Cancel) => Ending::cancelled(),
            None => Ending::gateway("the gateway dropped the request"),
        };
        self.end(&ending, None);
    }
}

fn write_usage(record: &mut Record, usage: &Usage) {
    record.input_units = usage.input;
    record.input_cached_units = usage.input_cached;
    record.input_cache_write_units = usage.input_cache_write;
    record.generated_units = usage.generated;
    record.delivered_units = usage.delivered;
    record.usage_source = usage.source;
}
