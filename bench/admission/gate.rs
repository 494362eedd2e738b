//! The parts of admission, for some number of tenants, and requests that go through them.

use crate::median::median;
use bytes::Bytes;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use streamgate::api::{Call, Edits, Request};
use streamgate::budget::Units;
use streamgate::clock;
use streamgate::config::{self, CapMember, KeyHash};
use streamgate::exchange::{Claim, Granted, PoolQueue, Registry};
use streamgate::ledger::Fingerprint;
use streamgate::metrics::Metrics;
use streamgate::record::RequestId;
use streamgate::slots::Slots;
use streamgate::tenant::{Directory, Holdings, Reserved, TenantName, Wanted};

/// Groups of requests of one measurement, and the requests of one.
pub const GROUPS: usize = 21;
pub const GROUP: usize = 5000;
/// Requests that are in the gateway at once.
const RUNNING: usize = 64;

/// A tenant with every kind of limit, none of which is reached here.
const CONFIG: &str = r#"
[[listen]]
addr = "127.0.0.1:1"
[[tenant]]
name = "t"
anonymous = true
max_streams = 1000
max_queued = 16
requests_per_minute = 1000000000
units_per_minute = 1000000000000
budget = { units = 1000000000000, period = "day" }
[[pool]]
name = "p"
models = ["m"]
backends = [{ addr = "127.0.0.1:2" }]
max_streams = 1000
queue = { max_wait = "2s", max_len = 256 }
"#;

/// What a request holds once it is admitted.
pub struct Admitted {
    _granted: Granted,
    _claim: Claim,
    reserved: Reserved,
}

pub struct Gate {
    tenants: Directory,
    queue: Arc<PoolQueue>,
    registry: Arc<Registry>,
    keys: Vec<String>,
    random: u64,
    body: Bytes,
    running: Vec<Option<Admitted>>,
    at: usize,
}

impl Gate {
    pub fn new(tenants: usize) -> Gate {
        let config = config::parse(CONFIG, Path::new("/x/t.toml")).expect("the config is right");
        let keys: Vec<String> = (0..tenants).map(key).collect();
        let rules: Vec<config::Tenant> = keys
            .iter()
            .enumerate()
            .map(|(n, key)| config::Tenant {
                name: TenantName::new(&format!("tenant-{n}")),
                keys: vec![KeyHash(Sha256::digest(key).into())],
                anonymous: false,
                ..config.tenants[0].clone()
            })
            .collect();
        let rules_of_pool = &config.pools[0];
        let metrics = Metrics::new().expect("metrics register once");
        Gate {
            tenants: Directory::new(&rules, &Holdings::default()),
            queue: PoolQueue::new(
                &rules_of_pool.name,
                Slots::new(rules_of_pool.max_streams),
                rules_of_pool.queue.clone(),
                &metrics,
            ),
            registry: Arc::default(),
            keys,
            random: 1,
            body: body(),
            running: (0..RUNNING).map(|_| None).collect(),
            at: 0,
        }
    }

    /// Microseconds per request, the median of [`GROUPS`] groups: one that the machine was taken away from in
    /// the middle does not count.
    pub fn measure(gates: &mut [Gate], admit: Admit) -> Vec<f64> {
        let mut groups = vec![Vec::with_capacity(GROUPS); gates.len()];
        // taking turns, they all have the same neighbours
        for _ in 0..GROUPS {
            for (gate, micros) in gates.iter_mut().zip(&mut groups) {
                micros.push(gate.group(admit));
            }
        }
        groups.into_iter().map(median).collect()
    }

    fn group(&mut self, admit: Admit) -> f64 {
        // as off the wire: where the key of a request lies has nothing to do with its tenant
        let keys: Vec<String> = (0..GROUP).map(|_| self.any_key().to_owned()).collect();
        let start = Instant::now();
        for key in &keys {
            let admitted = admit(self, key.as_bytes());
            if let Some(before) = self.running[self.at % RUNNING].replace(admitted) {
                before.reserved.settle(Units(120));
            }
            self.at += 1;
        }
        start.elapsed().as_secs_f64() * 1e6 / GROUP as f64
    }

    /// Each is as likely as any other (xorshift64).
    fn any_key(&mut self) -> &str {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let n = usize::try_from(self.random).expect("64 bits") % self.keys.len();
        &self.keys[n]
    }

    /// Everything: the request is read, understood and made out, then taken in.
    pub fn whole(&self, key: &[u8]) -> Admitted {
        let request = Request::parse(Call::Chat, &self.body).expect("the body is right");
        let wanted = Wanted {
            input: request.input_estimate(4),
            output: request.output_reserve(None, Units(1024)),
            choices: request.choices,
        };
        let admitted = self.admit(key, &self.body, &wanted);
        let edits = Edits {
            model: "llama-3.1-8b",
            cap: Some(admitted.reserved.cap()),
            cap_member: CapMember::MaxTokens,
            include_usage: true,
        };
        black_box(request.upstream_body(&self.body, &edits));
        admitted
    }

    /// The steps that know the tenant, alone.
    pub fn alone(&self, key: &[u8]) -> Admitted {
        let wanted = Wanted {
            input: Units(1000),
            output: Units(400),
            choices: 1,
        };
        self.admit(key, b"{}", &wanted)
    }

    /// The steps of admission, in its order.
    fn admit(&self, key: &[u8], body: &[u8], wanted: &Wanted) -> Admitted {
        let tenant = self.tenants.find(Some(key));
        let tenant = tenant.expect("the key is known");
        let now = clock::instant();
        tenant.request_rate().try_take(1, now).expect("a high rate");
        let id = RequestId::generate();
        let fingerprint = Fingerprint::of(tenant.name(), "POST", "/v1/chat/completions", body);
        let claim = self.registry.claim(tenant.name(), &id, fingerprint);
        let reserved = tenant.reserve(wanted, clock::now(), now);
        let reserved = reserved.expect("a large budget");
        let mut place = self.queue.enter(tenant, reserved.units()).expect("slots");
        Admitted {
            _granted: place.take_now().expect("a free slot"),
            _claim: claim.expect("a new id"),
            reserved,
        }
    }
}

pub type Admit = fn(&Gate, &[u8]) -> Admitted;

/// A chat of four messages, about two thousand tokens in all.
fn body() -> Bytes {
    let text = "The quick brown fox jumps over the lazy dog; what it meant by that, nobody asked. ";
    let message = |role, n| json!({"role": role, "content": text.repeat(n)});
    let messages = [
        message("system", 20),
        message("user", 20),
        message("assistant", 40),
        message("user", 20),
    ];
    let body = json!({"model": "m", "messages": messages, "max_tokens": 400, "stream": true});
    Bytes::from(body.to_string())
}

fn key(n: usize) -> String {
    format!("sk-{n:043x}")
}
