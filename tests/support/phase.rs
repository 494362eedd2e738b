//! What a request waits for when something befalls it, at every endpoint; and a gateway with one slot for all of them.

use super::ask::Ask;
use super::deaf::Deaf;
use super::dialect::Dialect;
use super::engine::{Call, Engine, Played, Seen};
use super::gateway::Gateway;
use super::{events, script, wait};
use serde_json::{Value, json};

/// The events a client in mid-stream has read.
const EVENTS: usize = 3;

/// What a request waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The backend does not accept.
    Connecting,
    /// The request was sent and no byte has come back.
    BeforeHeaders,
    /// The headers of an event stream have come, and nothing behind them.
    BeforeFirstEvent,
    MidStream,
    /// The protocol's end was sent; the body is still open.
    AfterTheEnd,
    /// No stream was asked for, and nothing has come back.
    Whole,
    /// No stream was asked for, and half of the answer has come.
    InWholeBody,
}

pub const PHASES: [Phase; 7] = [
    Phase::Connecting,
    Phase::BeforeHeaders,
    Phase::BeforeFirstEvent,
    Phase::MidStream,
    Phase::AfterTheEnd,
    Phase::Whole,
    Phase::InWholeBody,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Streaming(Dialect),
    /// Never streams.
    Embeddings,
}

pub const ENDPOINTS: [Endpoint; 6] = [
    Endpoint::Streaming(Dialect::Chat),
    Endpoint::Streaming(Dialect::Completions),
    Endpoint::Streaming(Dialect::Responses),
    Endpoint::Streaming(Dialect::Messages),
    Endpoint::Streaming(Dialect::Native),
    Endpoint::Embeddings,
];

impl Phase {
    pub fn streams(self) -> bool {
        matches!(
            self,
            Phase::BeforeHeaders | Phase::BeforeFirstEvent | Phase::MidStream | Phase::AfterTheEnd
        )
    }

    /// What the engine plays.
    pub fn play(self, dialect: Dialect, call: &mut Call) -> Played {
        match self {
            Phase::Connecting | Phase::BeforeHeaders | Phase::Whole => script::silent(call),
            Phase::BeforeFirstEvent => {
                call.head()?;
                call.hold()
            }
            Phase::MidStream => {
                call.head()?;
                (0..EVENTS).try_for_each(|n| call.chunk(&dialect.say(&script::token(n))))?;
                call.hold()
            }
            Phase::AfterTheEnd => {
                call.head()?;
                call.chunk(&dialect.say("t0 "))?;
                call.chunk(&dialect.end())?;
                call.hold()
            }
            Phase::InWholeBody => {
                let length = [
                    ("Content-Type", "application/json"),
                    ("Content-Length", "1000"),
                ];
                call.head_with(200, &length)?;
                call.raw(b"{\"id\":\"c1\",\"choices\":[")?;
                call.hold()
            }
        }
    }

    /// Events with output that the client has read.
    pub fn read(self) -> usize {
        match self {
            Phase::MidStream => EVENTS,
            Phase::AfterTheEnd => 1,
            Phase::Connecting
            | Phase::BeforeHeaders
            | Phase::BeforeFirstEvent
            | Phase::Whole
            | Phase::InWholeBody => 0,
        }
    }

    /// How a request ends that is cut short by `whom`: state, `ended_by`, `upstream_end`, the attempt's outcome. After
    /// the protocol's end nobody can cut it short.
    pub fn cut_by(self, whom: &'static str) -> [&'static str; 4] {
        match self {
            Phase::AfterTheEnd => ["COMPLETED", "upstream", "complete", "ok"],
            Phase::Connecting => ["CANCELLED", whom, "none", "aborted"],
            Phase::BeforeHeaders
            | Phase::BeforeFirstEvent
            | Phase::MidStream
            | Phase::Whole
            | Phase::InWholeBody => ["CANCELLED", whom, "aborted", "aborted"],
        }
    }

    /// Fails unless the record of such a request says so, and what it cost follows from it.
    #[track_caller]
    pub fn must_be_cut(self, whom: &'static str, record: &Value) {
        let says = |member: &str| record[member].as_str().unwrap_or_default().to_owned();
        let attempts = record["attempts"].as_array().map_or(0, Vec::len);
        assert_eq!(attempts, 1, "{record}");
        let outcome = record["attempts"][0]["outcome"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let told = [
            says("state"),
            says("ended_by"),
            says("upstream_end"),
            outcome,
        ];
        assert_eq!(told, self.cut_by(whom), "{record}");
        for member in ["admitted_at", "started_at", "released_at", "ended_at"] {
            assert!(record[member].is_string(), "no {member}: {record}");
        }
        let units = |member: &str| record[member].as_u64().unwrap_or(u64::MAX);
        let read = u64::try_from(self.read()).unwrap_or(u64::MAX);
        assert!(
            units("generated_units") >= units("delivered_units"),
            "{record}"
        );
        assert!(units("delivered_units") >= read, "{record}");
        // what ended before the upstream was called costs nothing
        let cost = match record["upstream_end"] == "none" {
            true => 0,
            false => units("input_units") + units("generated_units"),
        };
        assert_eq!(units("charged_units"), cost, "{record}");
    }
}

impl Endpoint {
    pub fn dialect(self) -> Dialect {
        match self {
            Endpoint::Streaming(dialect) => dialect,
            Endpoint::Embeddings => Dialect::Chat,
        }
    }

    pub fn api(self) -> &'static str {
        match self {
            Endpoint::Streaming(dialect) => dialect.api(),
            Endpoint::Embeddings => "embeddings",
        }
    }

    pub fn has(self, phase: Phase) -> bool {
        self != Endpoint::Embeddings || !phase.streams()
    }

    /// Whether a body so far is all that its client gets in this phase.
    pub fn is_there(self, phase: Phase, body: &[u8]) -> bool {
        let dialect = self.dialect();
        let read = dialect.texts(body).len() >= phase.read();
        let ended = || events::find(body, dialect.client_end()).is_some();
        let begun = || !body.is_empty();
        read && (phase != Phase::AfterTheEnd || ended()) && (phase != Phase::InWholeBody || begun())
    }

    /// Whether a client gets a status before its request ends.
    pub fn has_head(self, phase: Phase) -> bool {
        match phase {
            Phase::Connecting | Phase::BeforeHeaders | Phase::Whole => false,
            Phase::BeforeFirstEvent | Phase::MidStream | Phase::AfterTheEnd => true,
            // it is converted, so that it waits for its end
            Phase::InWholeBody => self != Endpoint::Streaming(Dialect::Native),
        }
    }

    pub fn ask(self, phase: Phase) -> Ask {
        let ask = match self {
            Endpoint::Streaming(dialect) if phase.streams() => dialect.ask(),
            Endpoint::Streaming(dialect) => dialect.ask().without("stream"),
            Endpoint::Embeddings => {
                Ask::post("/v1/embeddings").json(json!({"model": "m", "input": "hello there"}))
            }
        };
        let model = match (
            phase == Phase::Connecting,
            self.dialect() == Dialect::Messages,
        ) {
            (true, true) => "deaf-claude",
            (true, false) => "deaf",
            (false, true) => "claude",
            (false, false) => "m",
        };
        ask.set("model", model)
            .header("X-Phase", &format!("{phase:?}"))
            .header("X-Endpoint", &format!("{self:?}"))
    }
}

/// A gateway with one slot, before an engine that plays the phase a request asks for.
pub struct Ground {
    pub engine: Engine,
    pub gateway: Gateway,
    _deaf: Deaf,
}

impl Ground {
    /// One slot for everybody: one that is not free fails the next request.
    pub fn start() -> Ground {
        let engine = Engine::scripted(|call| {
            let named = |name: &str| call.seen.headers.get(name).unwrap_or_default().to_owned();
            let (phase, endpoint) = (named("x-phase"), named("x-endpoint"));
            let phase = PHASES.into_iter().find(|p| format!("{p:?}") == phase);
            let endpoint = ENDPOINTS.into_iter().find(|e| format!("{e:?}") == endpoint);
            let dialect = endpoint.expect("an endpoint of the table").dialect();
            phase.expect("a phase of the table").play(dialect, call)
        });
        let deaf = Deaf::start();
        let pool = |name: &str, protocol: &str, model: &str, addr: &str| {
            format!(
                "[[pool]]\nname = \"{name}\"\nprotocol = \"{protocol}\"\nmodels = [\"{model}\"]\n\
                 backends = [{{ addr = \"{addr}\" }}]\nmax_streams = 1\n"
            )
        };
        let gateway = Gateway::builder()
            .backend(engine.addr())
            .listen("h2c = true")
            .tenant("max_streams = 1\nbudget = { units = 100000000, period = \"total\" }")
            .pool("max_streams = 1")
            .extra(&pool("a", "anthropic", "claude", engine.addr()))
            .extra(&pool("d", "openai", "deaf", deaf.addr()))
            .extra(&pool("e", "anthropic", "deaf-claude", deaf.addr()))
            .start();
        Ground {
            engine,
            gateway,
            _deaf: deaf,
        }
    }

    /// Waits until a request is in its phase; the engine's call, where it gets one. `number` is the engine's next.
    #[track_caller]
    pub fn arrives(&self, number: usize, phase: Phase, id: &str) -> Option<Seen> {
        if phase != Phase::Connecting {
            return Some(self.engine.held(number));
        }
        wait::until(format!("{id} to connect"), || {
            let answer = self.gateway.answer(&Ask::get(format!("/generations/{id}")));
            match answer.status {
                200 if answer.json()["state"] == "RUNNING" => Ok(()),
                _ => Err(answer.text()),
            }
        });
        None
    }
}
