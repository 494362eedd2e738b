//! Twenty thousand requests that are read, left, cancelled and broken by chance: afterwards nothing is held, nothing is
//! missing from the books, and the process is no larger than it was early on.
//!
//! The seed makes each request; only their order on the wire is the machine's. A failure names the request's number.

use crate::support::KEY;
use crate::support::ask::{Ask, chat};
use crate::support::client::{Broken, Stream};
use crate::support::dialect::Dialect;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::http2::Http2;
use crate::support::machine;
use crate::support::random::Random;
use crate::support::sim::Sim;
use crate::support::wait::{self, seconds};
use serde_json::Value;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const SEED: u64 = 20_260;
const REQUESTS: usize = 20_000;
const CLIENTS: usize = 24;

/// All of it.
const MOST: Duration = seconds(120);

/// Descriptors that may be open beyond those of the start: connections of the pool that wait for their next request.
const KEPT_OPEN: usize = CLIENTS;

/// How a request goes for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Reads the stream to its end.
    Reads,
    /// Asks for no stream.
    Whole,
    /// Leaves, by FIN or by RST.
    Closes,
    Resets,
    /// Leaves in the middle of its own request.
    StopsSending,
    /// Sends the next request early, and leaves.
    PipelinesAndLeaves,
    Cancels,
    /// Over HTTP/2, and resets its stream.
    ResetsStream,
    /// Is refused: its key or its model is unknown.
    WrongKey,
    WrongModel,
}

/// Faults of the engine, and what a client that reads to the end gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gets {
    All,
    /// An error event at the end of what came.
    Broken,
    /// The engine's own error event.
    TheirError,
    Status(u16),
}

const FAULTS: [(&str, Gets); 14] = [
    ("", Gets::All),
    ("reset@2", Gets::Broken),
    ("fin@2", Gets::Broken),
    ("torn@2", Gets::Broken),
    ("no-done", Gets::Broken),
    ("error@2", Gets::TheirError),
    ("status=503", Gets::Status(503)),
    ("status=400", Gets::Status(400)),
    ("crlf", Gets::All),
    ("cr", Gets::All),
    ("no-usage", Gets::All),
    ("split=1", Gets::All),
    ("header-delay=10ms", Gets::All),
    ("stall=20ms@2", Gets::All),
];

const APIS: [Dialect; 3] = [Dialect::Chat, Dialect::Completions, Dialect::Messages];

/// One request, made by its number alone.
#[derive(Clone, Copy, Debug)]
struct Job {
    number: usize,
    dialect: Dialect,
    how: How,
    fault: &'static str,
    gets: Gets,
    /// Before leaving: events that are read, or a moment that passes.
    events: usize,
    moment: Duration,
}

impl Job {
    fn of(number: usize) -> Job {
        let mut random = Random::new(SEED + number as u64);
        let how = match random.below(100) {
            0..34 => How::Reads,
            34..46 => How::Whole,
            46..60 => How::Closes,
            60..74 => How::Resets,
            74..78 => How::StopsSending,
            78..82 => How::PipelinesAndLeaves,
            82..94 => How::Cancels,
            94..96 => How::ResetsStream,
            96..98 => How::WrongKey,
            _ => How::WrongModel,
        };
        let (fault, gets) = match random.below(3) {
            0 => random.pick(&FAULTS),
            _ => FAULTS[0],
        };
        Job {
            number,
            dialect: random.pick(&APIS),
            how,
            fault,
            gets,
            events: random.below(4),
            moment: Duration::from_micros(random.below(4000) as u64),
        }
    }

    fn id(&self) -> String {
        format!("soak-{}", self.number)
    }

    fn ask(&self) -> Ask {
        let ask = self.dialect.ask().set("max_tokens", 6).id(&self.id());
        let ask = match self.fault {
            "" => ask,
            fault => ask.fault(fault),
        };
        match self.how {
            How::Whole => ask.without("stream"),
            How::WrongKey => ask.key("sk-nobody"),
            How::WrongModel => ask.set("model", "nope"),
            How::Reads
            | How::Closes
            | How::Resets
            | How::StopsSending
            | How::PipelinesAndLeaves
            | How::Cancels
            | How::ResetsStream => ask,
        }
    }
}

/// A client: it keeps its connection where an answer ended well.
struct Client<'a> {
    gateway: &'a Gateway,
    kept: Option<Stream>,
}

/// What is wrong, in words.
type Checked = Result<(), String>;

impl Client<'_> {
    fn plays(&mut self, job: &Job) -> Checked {
        match job.how {
            How::Reads | How::Whole | How::WrongKey | How::WrongModel => self.reads(job),
            How::StopsSending => self.stops_sending(job),
            How::ResetsStream => self.resets_stream(job),
            How::Closes | How::Resets | How::PipelinesAndLeaves => self.leaves(job),
            How::Cancels => self.cancels(job),
        }
    }

    fn send(&mut self, ask: &Ask) -> Stream {
        let kept = self.kept.take();
        let mut stream = kept.unwrap_or_else(|| Stream::connect(self.gateway.addr()));
        stream.write(&ask.bytes());
        stream
    }

    fn reads(&mut self, job: &Job) -> Checked {
        let mut stream = self.send(&job.ask());
        let answer = match stream.try_answer() {
            // a document of known length can only be broken off
            Err(Broken::Cut) if job.how == How::Whole && job.gets == Gets::Broken => return Ok(()),
            read => read.map_err(|e| format!("{e:?}; {stream:?}"))?,
        };
        must_get(job, answer.status, &answer.body)?;
        if answer.status == 200 && answer.headers.get("connection") != Some("close") {
            self.kept = Some(stream);
        }
        Ok(())
    }

    fn stops_sending(&mut self, job: &Job) -> Checked {
        let bytes = job.ask().bytes();
        let mut stream = Stream::connect(self.gateway.addr());
        stream.write(&bytes[..bytes.len() - 1 - job.events * 20]);
        stream.reset();
        Ok(())
    }

    fn resets_stream(&mut self, job: &Job) -> Checked {
        let connection = Http2::connect(self.gateway.addr());
        let mut stream = connection.send(&job.ask());
        let events = job.events;
        // however it goes until then
        stream
            .try_until(|body| events::blocks(body).len() >= events)
            .ok();
        stream.reset();
        std::thread::sleep(job.moment);
        connection.close();
        Ok(())
    }

    fn leaves(&mut self, job: &Job) -> Checked {
        let mut stream = self.send(&job.ask());
        if job.how == How::PipelinesAndLeaves {
            // never whole: it must never run
            stream.write(&chat().head_for(100).into_bytes());
        }
        self.lets_pass(job, &mut stream);
        if job.how == How::Resets {
            stream.reset();
        } else {
            stream.close();
        }
        Ok(())
    }

    fn lets_pass(&self, job: &Job, stream: &mut Stream) {
        if job.events == 0 {
            std::thread::sleep(job.moment);
        }
        // a fault may end it before
        let mut read = 0;
        while read < job.events && matches!(stream.try_event(), Ok(Some(_))) {
            read += 1;
        }
    }

    fn cancels(&mut self, job: &Job) -> Checked {
        let mut stream = self.send(&job.ask());
        self.lets_pass(job, &mut stream);
        let cancel = Ask::post(format!("/generations/{}/cancel", job.id()));
        let status = self.gateway.answer(&cancel).status;
        // 404: it came before the request itself was read, or that one was refused
        if !matches!(status, 200 | 202 | 404) {
            return Err(format!("cancel: {status}"));
        }
        match stream.try_rest() {
            Ok(_) => Ok(()),
            Err(e) => Err(format!("after its cancel: {e:?}; {stream:?}")),
        }
    }
}

/// What a client gets that reads to the end.
fn must_get(job: &Job, status: u16, body: &[u8]) -> Checked {
    let text = String::from_utf8_lossy(body);
    let whole = job.how == How::Whole;
    let tells = |code: &str| text.contains(&format!("\"code\":\"{code}\""));
    let right = match (job.how, job.gets) {
        (How::WrongKey, _) => status == 401 && tells("invalid_api_key"),
        (How::WrongModel, _) => status == 404 && tells("model_not_found"),
        (_, Gets::Status(expected)) => status == expected,
        (_, Gets::All) if whole => status == 200 && serde_json::from_slice::<Value>(body).is_ok(),
        // a fault of the stream may be none of a document, or take the place of it
        (_, Gets::Broken | Gets::TheirError) if whole => matches!(status, 200 | 500 | 502),
        (_, Gets::All) => status == 200 && events::find(body, job.dialect.client_end()).is_some(),
        (_, Gets::Broken) => status == 200 && tells("upstream_broken"),
        (_, Gets::TheirError) => status == 200 && text.contains("\"error\""),
    };
    if right {
        Ok(())
    } else {
        Err(format!("status {status}: {text}"))
    }
}

/// Plays all requests; gives what was wrong, and the memory that was resident when a third of them had been.
fn play_all(gateway: &Gateway) -> (Vec<String>, u64) {
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let third = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = Client {
                    gateway,
                    kept: None,
                };
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= REQUESTS {
                        return;
                    }
                    if number == REQUESTS / 3 {
                        let resident = machine::resident(gateway.process.pid());
                        third.store(usize::try_from(resident).unwrap(), Ordering::Relaxed);
                    }
                    let job = Job::of(number);
                    if let Err(why) = client.plays(&job) {
                        wrong.lock().unwrap().push(format!("{job:?}: {why}"));
                    }
                }
            });
        }
    });
    (wrong.into_inner().unwrap(), third.into_inner() as u64)
}

fn ground() -> (Sim, Gateway) {
    let sim = Sim::with(&[
        "--prefill-ms",
        "1",
        "--prefill-ms-per-token",
        "0",
        "--decode-ms",
        "1",
        "--notice",
        "at-once",
    ]);
    let anthropic = format!(
        "[[pool]]\nname = \"a\"\nprotocol = \"anthropic\"\nmodels = [\"claude\"]\nmax_streams = 4\nqueue = {{ max_wait = \"30s\", max_len = 64 }}\n\
         backends = [{{ addr = \"{}\" }}]\n",
        sim.addr()
    );
    let gateway = Gateway::builder()
        .threads(0)
        .backend(sim.addr())
        .listen("h2c = true")
        .tenant("max_streams = 100\nbudget = { units = 1000000000, period = \"total\" }")
        .pool("max_streams = 8\nqueue = { max_wait = \"30s\", max_len = 64 }")
        .extra(&anthropic)
        .start();
    (sim, gateway)
}

/// The books: each request that was admitted stands there once, ended, and its cost is what the metrics and the budget
/// say.
fn must_be_settled_once(gateway: &Gateway) {
    let listed = gateway.command(&["ledger", "list", "--format", "jsonl", "--limit", "1000000"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    let entries: Vec<Value> = listed
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let open = entries.iter().find(|e| {
        !matches!(
            e["state"].as_str(),
            Some("COMPLETED" | "CANCELLED" | "FAILED")
        )
    });
    assert_eq!(open, None, "an entry without an end");
    let total = gateway.metric("streamgate_requests_total", &[]);
    assert_eq!(
        entries.len() as f64,
        total,
        "entries of the ledger, requests of the metrics"
    );
    assert!(
        (0.8..=1.0).contains(&(total / REQUESTS as f64)),
        "{total} requests were admitted"
    );
    let charged: f64 = entries
        .iter()
        .filter_map(|e| e["charged_units"].as_f64())
        .sum();
    assert_eq!(
        gateway.metric("streamgate_units_total", &[("kind", "charged")]),
        charged
    );
    let remaining = gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]);
    assert_eq!(remaining, 1e9 - charged);
}

#[test]
fn a_soak_of_abandonment_cancels_and_faults_leaves_nothing_behind() {
    let (sim, gateway) = ground();
    let pid = gateway.process.pid();
    assert_eq!(gateway.answer(&chat().key(KEY)).status, 200);
    gateway.settled();
    let open = machine::descriptors(pid).len();
    let start = Instant::now();
    let (wrong, third) = play_all(&gateway);
    let took = start.elapsed();
    let first: Vec<&String> = wrong.iter().take(5).collect();
    assert!(
        wrong.is_empty(),
        "{} of {REQUESTS} went wrong, such as {first:#?}",
        wrong.len()
    );

    gateway.settled();
    wait::until_true("the simulator to be idle", || sim.running() == 0.0);
    wait::until(
        "the descriptors to be given back",
        || match machine::descriptors(pid).len() {
            now if now <= open + KEPT_OPEN => Ok(()),
            now => Err(format!("{now} open, {open} at the start")),
        },
    );
    let resident = machine::resident(pid);
    eprintln!(
        "{REQUESTS} requests in {took:?}; resident {} KiB after a third, {} KiB at the end",
        third >> 10,
        resident >> 10
    );
    assert!(
        resident <= third + third / 10,
        "{} KiB resident, {} after a third",
        resident >> 10,
        third >> 10
    );
    must_be_settled_once(&gateway);
    assert!(took <= MOST, "it took {took:?}");
}
