//! The disconnect matrix: whatever a client was waiting for, and in whatever way it leaves, the upstream is let go, the
//! slot is free, the record says what happened, and the request is settled once.
//!
//! A phase, a way to leave and an endpoint make a cell. To add one of them, add it to its list.

use crate::support::ask::Ask;
use crate::support::books::Books;
use crate::support::client::Stream;
use crate::support::dialect;
use crate::support::gateway::Gateway;
use crate::support::http2::{Http2, Http2Stream};
use crate::support::phase::{ENDPOINTS, Endpoint, Ground, PHASES, Phase};
use crate::support::turns::{ONE_SLOT, Turns, is_queued};
use crate::support::wait::{self, ms};
use crate::support::{KEY, OTHER_KEY};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// From the client's leaving to the upstream's close, and to the free slot.
const BOUND: Duration = ms(500);

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Fin,
    Rst,
    /// Its process is killed.
    Killed,
    /// It resets its HTTP/2 stream and keeps the connection.
    StreamReset,
    /// Its HTTP/2 connection goes.
    ConnectionGone,
}

const WAYS: [Way; 5] = [
    Way::Fin,
    Way::Rst,
    Way::Killed,
    Way::StreamReset,
    Way::ConnectionGone,
];

impl Way {
    fn is_http2(self) -> bool {
        matches!(self, Way::StreamReset | Way::ConnectionGone)
    }
}

/// All cells, in the order they are played.
fn cells() -> Vec<(Phase, Way, Endpoint)> {
    let mut cells = Vec::new();
    for phase in PHASES {
        for way in WAYS {
            let endpoints = ENDPOINTS.into_iter().filter(|e| e.has(phase));
            cells.extend(endpoints.map(|endpoint| (phase, way, endpoint)));
        }
    }
    cells
}

/// A client with a request under way.
enum Client {
    One(Stream),
    Many(Http2, Http2Stream),
}

impl Client {
    fn send(gateway: &Gateway, way: Way, ask: &Ask) -> Client {
        if way.is_http2() {
            let connection = Http2::connect(gateway.addr());
            let stream = connection.send(ask);
            Client::Many(connection, stream)
        } else {
            Client::One(gateway.send(ask))
        }
    }

    /// Reads until the body so far is as wanted.
    fn until(&mut self, wanted: impl Fn(&[u8]) -> bool) {
        match self {
            Client::One(stream) => stream.read_until(wanted),
            Client::Many(_, stream) => {
                stream.until(wanted);
                assert!(!stream.complete, "the answer ended");
                assert_eq!(stream.status, 200);
            }
        }
    }

    /// Leaves; what stays of it, and the moment before.
    fn leave(self, way: Way) -> (Option<Http2>, Instant) {
        match self {
            Client::One(stream) if way == Way::Killed => (None, die_with(stream)),
            Client::One(stream) => {
                let left = Instant::now();
                if way == Way::Rst {
                    stream.reset();
                } else {
                    stream.close();
                }
                (None, left)
            }
            Client::Many(connection, stream) => {
                let left = Instant::now();
                if way == Way::StreamReset {
                    stream.reset();
                    return (Some(connection), left);
                }
                connection.close();
                (None, left)
            }
        }
    }
}

/// Hands the connection to a process that reads on, and kills it.
fn die_with(stream: Stream) -> Instant {
    let socket = std::os::fd::OwnedFd::from(stream.into_socket());
    let mut process = Command::new("cat")
        .stdin(Stdio::from(socket))
        .stdout(Stdio::null())
        .spawn()
        .expect("cat runs");
    let left = Instant::now();
    process.kill().expect("the client is killed");
    process.wait().expect("the client's end");
    left
}

/// How long it took until the upstream was let go, where there was one, and until the slot was free.
struct Measured {
    closed: Option<Duration>,
    freed: Duration,
}

/// Plays one cell. `number` is the engine's next call.
fn play(
    ground: &Ground,
    number: usize,
    (phase, way, endpoint): (Phase, Way, Endpoint),
) -> Measured {
    let Ground {
        engine, gateway, ..
    } = ground;
    let id = format!("{phase:?}-{way:?}-{}", endpoint.api());
    let [state, ended_by, ..] = phase.cut_by("client_closed");
    let books = || Books::of(gateway, endpoint.api(), state, ended_by);
    let before = books();
    let mut client = Client::send(gateway, way, &endpoint.ask(phase).id(&id));
    let call = ground.arrives(number, phase, &id);
    if endpoint.has_head(phase) {
        client.until(|body| endpoint.is_there(phase, body));
    }
    let (kept, left) = client.leave(way);
    let freed = freed(gateway, &id, left);
    let closed = call.map(|call| call.closed().saturating_duration_since(left));
    let record = gateway.ended(&id);
    phase.must_be_cut("client_closed", &record);
    if phase != Phase::AfterTheEnd {
        assert!(record["client_gone_at"].is_string(), "{record}");
    }
    gateway.settled();
    books().must_be_one_more_than(&before, &record);
    let late = closed.unwrap_or_default().max(freed);
    assert!(
        late <= BOUND,
        "{id}: closed after {closed:?}, free after {freed:?}"
    );
    assert_eq!(
        engine.calls().len(),
        number + usize::from(closed.is_some()),
        "{id}"
    );
    drop(kept);
    Measured { closed, freed }
}

/// The slot is seen free; each look takes a part of the time.
fn freed(gateway: &Gateway, id: &str, left: Instant) -> Duration {
    wait::until(format!("the slot of {id} to be free"), || {
        match gateway.metric("streamgate_slots", &[]) {
            0.0 => Ok(()),
            taken => Err(format!("{taken} taken; {}", gateway.record(id))),
        }
    });
    left.elapsed()
}

#[test]
fn a_client_that_leaves_in_any_phase_and_any_way_frees_everything() {
    let ground = Ground::start();
    let mut calls = 0;
    let mut worst: Vec<(Phase, Way, Measured)> = Vec::new();
    for (phase, way, endpoint) in cells() {
        let measured = play(&ground, calls, (phase, way, endpoint));
        calls += usize::from(measured.closed.is_some());
        match worst.iter_mut().find(|row| (row.0, row.1) == (phase, way)) {
            Some((.., row)) => {
                row.closed = row.closed.max(measured.closed);
                row.freed = row.freed.max(measured.freed);
            }
            None => worst.push((phase, way, measured)),
        }
    }
    for (phase, way, Measured { closed, freed }) in worst {
        eprintln!(
            "{phase:?}, {way:?}: the upstream was let go after {closed:?}, the slot seen free after {freed:?}"
        );
    }
}

/// Plays the cell of a request that waits in line: nothing of it has reached the upstream.
fn play_in_line(turns: &Turns, gateway: &Gateway, way: Way, endpoint: Endpoint) {
    let phase = if endpoint.has(Phase::BeforeHeaders) {
        Phase::BeforeHeaders
    } else {
        Phase::Whole
    };
    let id = format!("line-{way:?}-{}", endpoint.api());
    let mut hold = turns.holds(
        gateway,
        &endpoint.ask(phase).key(OTHER_KEY),
        &format!("hold-{id}"),
    );
    let ran = turns.order().len();
    let client = Client::send(gateway, way, &endpoint.ask(phase).id(&id));
    is_queued(gateway, KEY, &id);
    let (kept, left) = client.leave(way);
    wait::until(format!("the place of {id} to be free"), || {
        match gateway.metric("streamgate_queue_length", &[]) {
            0.0 => Ok(()),
            taken => Err(format!("{taken} in line; {}", gateway.record(&id))),
        }
    });
    let freed = left.elapsed();
    assert!(freed <= BOUND, "{id}: free after {freed:?}");
    let record = gateway.ended(&id);
    let told = ["state", "ended_by", "upstream_end"].map(|member| record[member].clone());
    assert_eq!(told, ["CANCELLED", "client_closed", "none"], "{record}");
    assert_eq!(record["attempts"], serde_json::json!([]), "{record}");
    assert_eq!(record["charged_units"], 0, "{record}");
    assert!(record["started_at"].is_null(), "{record}");
    assert!(record["client_gone_at"].is_string(), "{record}");
    turns.let_go();
    hold.rest();
    gateway.settled();
    assert_eq!(turns.order().len(), ran, "{id} ran");
    drop(kept);
}

#[test]
fn a_client_that_leaves_its_place_in_line_in_any_way_gives_everything_back() {
    let turns = Turns::default();
    let engine = turns.engine();
    let gateway = dialect::builder(&engine, ONE_SLOT)
        .listen("h2c = true")
        .tenant("max_streams = 1\nbudget = { units = 100000, period = \"total\" }")
        .start();
    for way in WAYS {
        for endpoint in ENDPOINTS {
            play_in_line(&turns, &gateway, way, endpoint);
        }
    }
    let remaining = gateway.metric("streamgate_budget_remaining_units", &[("tenant", "acme")]);
    assert_eq!(remaining, 100_000.0);
}
