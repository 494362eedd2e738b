//! Every metric: name, type, labels, meaning, in one table. Labels are bounded by the configuration: never a request
//! id, a key or a path.

use prometheus::core::Collector;
use prometheus::{
    Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry,
};

type Result<T> = std::result::Result<T, prometheus::Error>;

/// Seconds, from a tenth of a millisecond: what the gateway itself does.
const FAST: &[f64] = &[
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];
/// Seconds, up to minutes: what engines take.
const SLOW: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

macro_rules! table {
    ($($field:ident = $kind:ident $name:literal $labels:tt $help:literal;)+) => {
        /// The metrics, by the name they have after `streamgate_`.
        pub struct Table { $(pub $field: kind!($kind),)+ }

        impl Table {
            pub fn register(registry: &Registry) -> Result<Table> {
                Ok(Table { $($field: $kind(registry, concat!("streamgate_", $name), $help, &$labels)?,)+ })
            }
        }
    };
}

macro_rules! kind {
    (counter) => {
        IntCounter
    };
    (counters) => {
        IntCounterVec
    };
    (gauges) => {
        IntGaugeVec
    };
    (gauge) => {
        IntGauge
    };
    (number) => {
        Gauge
    };
    (numbers) => {
        GaugeVec
    };
    (fast) => {
        Histogram
    };
    (fast_by) => {
        HistogramVec
    };
    (slow_by) => {
        HistogramVec
    };
}

table! {
    requests = counters "requests_total" ["tenant", "pool", "api", "state", "ended_by"] "requests that ended, by how";
    rejected = counters "rejected_total" ["tenant", "code"] "requests refused before admission, by error code";
    streams = gauges "streams" ["tenant", "pool", "state"] "requests that run, by state";
    slots = gauges "slots" ["pool"] "execution slots taken";
    slots_max = numbers "slots_max" ["pool"] "execution slots there are; +Inf where unlimited";
    queue_length = gauges "queue_length" ["pool", "tenant"] "requests that wait for a slot";
    units = counters "units_total" ["tenant", "pool", "kind"] "units: input, generated, delivered, charged, overrun";
    units_reserved = gauges "units_reserved" ["tenant"] "units reserved by running requests";
    units_held = gauges "units_held" ["tenant"] "units held for requests whose usage is unknown";
    budget_remaining = gauges "budget_remaining_units" ["tenant"] "limit - charged - reserved - held, of the current period";
    retries = counters "retries_total" ["pool", "reason"] "upstream tries after the first, by what made them necessary";
    heartbeats = counters "heartbeats_total" ["pool"] "heartbeats written";
    backend_up = gauges "backend_up" ["pool", "backend"] "1 where the backend is thought to work";
    ledger_open = gauge "ledger_open" [] "ledger entries of running requests";
    ledger_unknown = gauge "ledger_unknown" [] "ledger entries whose usage is unknown, to be reconciled";
    ledger_up = gauge "ledger_up" [] "0 while the ledger cannot be written, or does not answer";
    ledger_unwritten = gauge "ledger_unwritten" [] "ends of requests that wait to be written to the ledger";
    ledger_failures = counter "ledger_failures_total" [] "tries to write the ledger that failed";
    loop_lag = number "loop_lag_seconds" [] "how late the event loop woke, at its worst in the last ten seconds";
    open_fds = gauge "open_fds" [] "open file descriptors";
    build_info = gauges "build_info" ["version"] "1, with the version as label";
    first_output = slow_by "first_output_seconds" ["pool"] "admission to first output";
    inter_event = slow_by "inter_event_seconds" ["pool"] "time between two content events of a stream";
    inter_event_max = numbers "inter_event_seconds_max" ["pool"] "longest such time within the last minute";
    queue_wait = slow_by "queue_wait_seconds" ["pool"] "wait for a slot";
    release = fast_by "release_seconds" ["cause"] "client gone or cancel asked, to slot free";
    connect = fast_by "upstream_connect_seconds" ["pool"] "connecting to a backend; a reused connection is not counted";
    ledger_commit = fast "ledger_commit_seconds" [] "one group commit of the ledger";
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, metric: C) -> Result<C> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn counter(r: &Registry, name: &str, help: &str, _: &[&str]) -> Result<IntCounter> {
    registered(r, IntCounter::new(name, help)?)
}

fn counters(r: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec> {
    registered(r, IntCounterVec::new(Opts::new(name, help), labels)?)
}

fn gauges(r: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec> {
    registered(r, IntGaugeVec::new(Opts::new(name, help), labels)?)
}

fn gauge(r: &Registry, name: &str, help: &str, _: &[&str]) -> Result<IntGauge> {
    registered(r, IntGauge::new(name, help)?)
}

fn number(r: &Registry, name: &str, help: &str, _: &[&str]) -> Result<Gauge> {
    registered(r, Gauge::new(name, help)?)
}

fn numbers(r: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec> {
    registered(r, GaugeVec::new(Opts::new(name, help), labels)?)
}

fn fast(r: &Registry, name: &str, help: &str, _: &[&str]) -> Result<Histogram> {
    let opts = HistogramOpts::new(name, help).buckets(FAST.to_vec());
    registered(r, Histogram::with_opts(opts)?)
}

fn fast_by(r: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<HistogramVec> {
    let opts = HistogramOpts::new(name, help).buckets(FAST.to_vec());
    registered(r, HistogramVec::new(opts, labels)?)
}

fn slow_by(r: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<HistogramVec> {
    let opts = HistogramOpts::new(name, help).buckets(SLOW.to_vec());
    registered(r, HistogramVec::new(opts, labels)?)
}
