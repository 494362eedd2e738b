//! Two engines behind one pool that share a script, so that a test can tell which try of a request it answers whatever
//! backend was picked first.

use super::config::Builder;
use super::engine::{Call, Engine, Played, Seen};
use super::gateway::Gateway;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

pub struct Pair {
    engines: [Engine; 2],
}

impl Pair {
    /// The script is told which call of both engines it answers, from 0.
    pub fn scripted(script: impl Fn(usize, &mut Call) -> Played + Send + Sync + 'static) -> Pair {
        let script = Arc::new(script);
        let calls = Arc::new(AtomicUsize::new(0));
        let engine = || {
            let (script, calls) = (script.clone(), calls.clone());
            Engine::scripted(move |call| script(calls.fetch_add(1, Ordering::SeqCst), call))
        };
        Pair {
            engines: [engine(), engine()],
        }
    }

    pub fn builder(&self) -> Builder {
        let [one, two] = &self.engines;
        Gateway::builder().backend(one.addr()).backend(two.addr())
    }

    /// A gateway whose one pool has both engines and these lines.
    #[track_caller]
    pub fn gateway(&self, lines: &str) -> Gateway {
        self.builder().pool(lines).start()
    }

    /// The calls of both, in no order.
    pub fn calls(&self) -> Vec<Seen> {
        self.engines.iter().flat_map(Engine::calls).collect()
    }
}
