//! The engine that is simulated: its slots and its counters.

use super::options::{Notice, Options};
use super::pace::Pace;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// One simulated engine, shared by all its connections.
pub struct Engine {
    options: Options,
    slots: Option<Semaphore>,
    /// The first model listed also counts what asks for a model that is not.
    first: Tally,
    others: Vec<Tally>,
}

/// The counters of one model.
#[derive(Default)]
struct Tally {
    model: String,
    running: AtomicU64,
    waiting: AtomicU64,
    prompt_tokens: AtomicU64,
    generation_tokens: AtomicU64,
    successes: AtomicU64,
}

/// A place among the running requests; given back where it is dropped.
pub struct Slot<'a> {
    tally: &'a Tally,
    // Dropped after `drop` has counted down, so that never more are counted than may run.
    _permit: Option<SemaphorePermit<'a>>,
}

/// A running request. Dropped, it gives its slot back.
pub struct Run<'a> {
    slot: Slot<'a>,
    pace: Pace,
    prompt_tokens: u64,
}

/// Counts one up as long as it lives.
struct Raised<'a>(&'a AtomicU64);

impl Engine {
    pub fn new(options: Options) -> Engine {
        let tally = |model: &String| Tally {
            model: model.clone(),
            ..Tally::default()
        };
        let mut models = options.models.iter();
        let first = models
            .next()
            .map_or_else(|| tally(&"sim".to_owned()), tally);
        Engine {
            slots: options
                .max_running
                .map(|n| Semaphore::new(n.min(Semaphore::MAX_PERMITS))),
            others: models.map(tally).collect(),
            first,
            options,
        }
    }

    pub fn notice(&self) -> Notice {
        self.options.notice
    }

    /// The models listed, at least one.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.tallies().map(|t| t.model.as_str())
    }

    pub fn first_model(&self) -> &str {
        &self.first.model
    }

    /// Takes a slot, waiting in order of arrival.
    pub async fn admit(&self, model: &str) -> Slot<'_> {
        let listed = self.tallies().find(|t| t.model == model);
        let tally = listed.unwrap_or(&self.first);
        let permit = match &self.slots {
            Some(slots) => {
                let _waiting = Raised::new(&tally.waiting);
                slots.acquire().await.ok()
            }
            None => None,
        };
        tally.running.fetch_add(1, Relaxed);
        Slot {
            tally,
            _permit: permit,
        }
    }

    /// Starts the prefill of a request that has its slot.
    pub fn start<'a>(&self, slot: Slot<'a>, prompt_tokens: u64) -> Run<'a> {
        let tokens = u32::try_from(prompt_tokens).unwrap_or(u32::MAX);
        let of_tokens = self.options.prefill_per_token.saturating_mul(tokens);
        let prefill = self.options.prefill.saturating_add(of_tokens);
        Run {
            slot,
            pace: Pace::start(prefill, self.options.decode),
            prompt_tokens,
        }
    }

    /// The metrics in Prometheus' text format, named as vLLM names them.
    pub fn metrics(&self) -> String {
        let mut out = String::new();
        for (name, kind, help, figure) in FIGURES {
            out.push_str(&format!(
                "# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}\n"
            ));
            for tally in self.tallies() {
                let model = label(&tally.model);
                let n = figure(tally).load(Relaxed);
                out.push_str(&format!("vllm:{name}{{model_name=\"{model}\"}} {n}\n"));
            }
        }
        out
    }

    fn tallies(&self) -> impl Iterator<Item = &Tally> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

type Figure = fn(&Tally) -> &AtomicU64;

const FIGURES: [(&str, &str, &str, Figure); 5] = [
    (
        "num_requests_running",
        "gauge",
        "Requests that hold a slot.",
        |t| &t.running,
    ),
    (
        "num_requests_waiting",
        "gauge",
        "Requests that wait for a slot.",
        |t| &t.waiting,
    ),
    (
        "prompt_tokens_total",
        "counter",
        "Prompt tokens prefilled.",
        |t| &t.prompt_tokens,
    ),
    ("generation_tokens_total", "counter", "Tokens made.", |t| {
        &t.generation_tokens
    }),
    (
        "request_success_total",
        "counter",
        "Requests that ended properly.",
        |t| &t.successes,
    ),
];

/// A label's value with what the text format escapes.
fn label(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

impl Run<'_> {
    pub async fn prefill(&mut self) {
        self.pace.prefilled().await;
        let counter = &self.slot.tally.prompt_tokens;
        counter.fetch_add(self.prompt_tokens, Relaxed);
    }

    /// Makes the next token when it is due.
    pub async fn token(&mut self) {
        self.pace.token().await;
        self.slot.tally.generation_tokens.fetch_add(1, Relaxed);
    }

    pub async fn stall(&mut self, lasts: Duration) {
        self.pace.stall(lasts).await;
    }

    /// Ends the request as one that ended properly.
    pub fn succeed(self) {
        self.slot.tally.successes.fetch_add(1, Relaxed);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.tally.running.fetch_sub(1, Relaxed);
    }
}

impl<'a> Raised<'a> {
    fn new(gauge: &'a AtomicU64) -> Raised<'a> {
        gauge.fetch_add(1, Relaxed);
        Raised(gauge)
    }
}

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(max_running: Option<usize>) -> Engine {
        Engine::new(Options {
            max_running,
            models: vec!["a".to_owned(), "b\"\\".to_owned()],
            ..Options::default()
        })
    }

    fn shows(engine: &Engine, line: &str) -> bool {
        engine.metrics().lines().any(|l| l == line)
    }

    #[tokio::test]
    async fn metrics_count_by_model_and_a_slot_is_given_back_when_dropped() {
        let engine = engine(None);
        let slot = engine.admit("b\"\\").await;
        let mut run = engine.start(slot, 3);
        run.prefill().await;
        run.token().await;
        assert!(shows(
            &engine,
            r#"vllm:num_requests_running{model_name="b\"\\"} 1"#
        ));
        assert!(shows(
            &engine,
            r#"vllm:num_requests_running{model_name="a"} 0"#
        ));
        assert!(shows(
            &engine,
            r#"vllm:prompt_tokens_total{model_name="b\"\\"} 3"#
        ));
        assert!(shows(
            &engine,
            r#"vllm:generation_tokens_total{model_name="b\"\\"} 1"#
        ));
        drop(run);
        assert!(shows(
            &engine,
            r#"vllm:num_requests_running{model_name="b\"\\"} 0"#
        ));
        assert!(shows(
            &engine,
            r#"vllm:request_success_total{model_name="b\"\\"} 0"#
        ));
        let slot = engine.admit("unlisted").await;
        engine.start(slot, 0).succeed();
        assert!(shows(
            &engine,
            r#"vllm:request_success_total{model_name="a"} 1"#
        ));
    }

    #[tokio::test]
    async fn waiting_requests_run_in_order_of_arrival_and_leaving_frees_the_place() {
        let engine = engine(Some(1));
        let slot = engine.admit("a").await;
        let mut second = Box::pin(engine.admit("a"));
        let mut third = Box::pin(engine.admit("a"));
        assert!(
            tokio::time::timeout(Duration::ZERO, &mut second)
                .await
                .is_err()
        );
        assert!(
            tokio::time::timeout(Duration::ZERO, &mut third)
                .await
                .is_err()
        );
        assert!(shows(
            &engine,
            r#"vllm:num_requests_waiting{model_name="a"} 2"#
        ));
        drop(second);
        assert!(shows(
            &engine,
            r#"vllm:num_requests_waiting{model_name="a"} 1"#
        ));
        let mut fourth = Box::pin(engine.admit("a"));
        assert!(
            tokio::time::timeout(Duration::ZERO, &mut fourth)
                .await
                .is_err()
        );
        drop(slot);
        let held = third.await;
        assert!(
            tokio::time::timeout(Duration::ZERO, &mut fourth)
                .await
                .is_err()
        );
        assert!(shows(
            &engine,
            r#"vllm:num_requests_running{model_name="a"} 1"#
        ));
        drop(held);
        drop(fourth.await);
        assert!(shows(
            &engine,
            r#"vllm:num_requests_waiting{model_name="a"} 0"#
        ));
    }
}
