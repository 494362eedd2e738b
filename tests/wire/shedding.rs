//! Load shedding: batch requests are turned away while others keep the line long, core ones never, and what runs goes on.

use crate::support::ask::{Ask, chat};
use crate::support::cost;
use crate::support::engine::Engine;
use crate::support::events;
use crate::support::gateway::Gateway;
use crate::support::script::{Door, tokens};
use crate::support::wait::{self, ms, seconds};
use crate::support::{KEY, OTHER_KEY};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many core requests are always under way: one runs for 100 ms, so that each waits for most of a second.
const CREW: usize = 10;

/// One request may run beside the one that is held; `acme` is batch and `other` core.
struct Ground {
    gateway: Gateway,
    _engine: Engine,
    door: Door,
}

impl Ground {
    fn start(shed: &str) -> Ground {
        let (door, run) = (Door::default(), tokens(1, ms(0)));
        let held = door.clone();
        let engine = Engine::scripted(move |call| {
            if call.seen.headers.get("x-holds").is_some() {
                call.head()?;
                call.delta("before ")?;
                held.pass()?;
                call.delta("after ")?;
                return call.done();
            }
            call.pause(ms(100))?;
            run(call)
        });
        let gateway = Gateway::builder()
            .backend(engine.addr())
            .pool("max_streams = 2\nqueue = { max_wait = \"60s\", max_len = 256 }")
            .tenant("priority = \"batch\"")
            .other("priority = \"core\"")
            .extra(shed)
            .start();
        Ground {
            gateway,
            _engine: engine,
            door,
        }
    }

    /// Keeps the line long with core requests for as long as `meanwhile` takes; gives how many were served, all of them.
    fn under_load(&self, meanwhile: impl FnOnce(&AtomicUsize)) -> usize {
        let (over, served) = (AtomicBool::new(false), AtomicUsize::new(0));
        /// Lets the crew go home also where the test fails.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        std::thread::scope(|scope| {
            for _ in 0..CREW {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        let answer = self.gateway.answer(&chat().key(OTHER_KEY));
                        assert_eq!(answer.status, 200, "core: {}", answer.text());
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let _over = Over(&over);
            meanwhile(&served);
        });
        served.into_inner()
    }

    /// What the pool says of itself.
    fn shedding(&self) -> String {
        let doc = self.gateway.admin(&Ask::get("/api/pools").no_key()).json();
        doc["pools"][0]["shedding"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Waits until batch requests are turned away.
    fn sheds(&self) {
        wait::until("batch requests to be turned away", || {
            match self.shedding() {
                none if none == "none" => Err(none),
                _ => Ok(()),
            }
        });
    }
}

#[test]
fn batch_is_turned_away_core_is_served_what_runs_goes_on_and_it_ends_again() {
    let ground = Ground::start("[shed]\nqueue_wait = \"100ms\"");
    let gateway = &ground.gateway;
    let mut running = gateway.send(&chat().id("runs").header("X-Holds", "1"));
    running.says("before ");
    assert_eq!(ground.shedding(), "none");
    ground.under_load(|served| {
        ground.sheds();
        let refused = gateway.answer(&chat());
        refused.must_refuse(429, "shedding");
        let before = served.load(Ordering::Relaxed);
        wait::until_true("core requests to be served meanwhile", || {
            served.load(Ordering::Relaxed) >= before + 10
        });
        gateway.answer(&chat()).must_refuse(429, "shedding");
    });
    let counted = [("code", "shedding"), ("tenant", "acme")];
    assert_eq!(gateway.metric("streamgate_rejected_total", &counted), 2.0);
    let core = [("code", "shedding"), ("tenant", "other")];
    assert_eq!(gateway.metric("streamgate_rejected_total", &core), 0.0);
    ground.door.open();
    running.says("after ");
    assert!(events::is_done(&running.rest()), "{running:?}");
    wait::within(seconds(20), "batch requests to be let in again", || {
        let answer = gateway.answer(&chat());
        match answer.status {
            200 => Ok(()),
            _ => Err(answer.text()),
        }
    });
    gateway.settled();
    let log = gateway.process.output();
    assert!(log.contains("load shedding"), "{log}");
}

#[test]
fn without_marks_nobody_is_turned_away() {
    let ground = Ground::start("");
    let served = ground.under_load(|served| {
        wait::until_true("a few rounds", || served.load(Ordering::Relaxed) >= CREW);
        let answer = ground.gateway.answer(&chat());
        assert_eq!(answer.status, 200, "{}", answer.text());
    });
    assert!(served >= CREW);
    assert_eq!(ground.shedding(), "none");
}

#[test]
fn marks_come_and_go_by_a_reload() {
    let ground = Ground::start("[shed]\nqueue_wait = \"100ms\"");
    let reload = |from: &str, to: &str| {
        ground.gateway.written.replace(from, to);
        let reloaded = ground.gateway.admin(&Ask::post("/api/reload").no_key());
        assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    };
    ground.under_load(|_| {
        ground.sheds();
        reload("[shed]\nqueue_wait = \"100ms\"", "");
        let answer = ground.gateway.answer(&chat());
        assert_eq!(answer.status, 200, "{}", answer.text());
    });
}

#[test]
fn a_tenant_that_waits_for_its_own_slots_sheds_nobody() {
    let engine = Engine::scripted({
        let run = tokens(1, ms(0));
        move |call| {
            call.pause(ms(100))?;
            run(call)
        }
    });
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .pool("max_streams = 64\nqueue = { max_wait = \"60s\", max_len = 256 }")
        .tenant("priority = \"batch\"\nmax_streams = 1")
        .other("priority = \"batch\"")
        .extra("[shed]\nqueue_wait = \"100ms\"")
        .start();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..12)
            .map(|_| scope.spawn(|| gateway.answer(&chat().key(KEY))))
            .collect();
        // each takes a tenth of a second, so that they are spread over the wait
        for _ in 0..6 {
            let other = gateway.answer(&chat().key(OTHER_KEY));
            assert_eq!(other.status, 200, "{}", other.text());
        }
        for client in clients {
            let answer = client.join().unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
        }
    });
    gateway.settled();
}

#[test]
fn few_free_descriptors_turn_batch_away_too() {
    let engine = cost::engine(3, 1);
    // whatever is free is less than all of them
    let gateway = Gateway::builder()
        .backend(engine.addr())
        .tenant("priority = \"batch\"")
        .other("priority = \"core\"")
        .extra("[shed]\nfd_headroom = 1.0")
        .start();
    wait::until("batch requests to be turned away", || {
        let answer = gateway.answer(&chat());
        match answer.status {
            429 => {
                answer.must_refuse(429, "shedding");
                Ok(())
            }
            _ => Err(answer.text()),
        }
    });
    let core = gateway.answer(&chat().key(OTHER_KEY));
    assert_eq!(core.status, 200, "{}", core.text());
}
