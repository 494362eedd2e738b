//! What stands between: streamgate or nginx, one worker each, before one engine.

use crate::nginx::Nginx;
use crate::support::ask::{Ask, chat};
use crate::support::client::Stream;
use crate::support::gateway::Gateway;
use crate::support::machine;

pub enum Relay {
    Streamgate(Box<Gateway>),
    Nginx(Nginx),
}

impl Relay {
    pub fn streamgate(engine: &str) -> Relay {
        // those who read nothing are there for as long as they are measured
        let patient = "stream = { write_timeout = \"10m\" }";
        let gateway = Gateway::builder().backend(engine).pool(patient).start();
        Relay::Streamgate(Box::new(gateway))
    }

    pub fn nginx(engine: &str) -> Relay {
        Relay::Nginx(Nginx::before(engine))
    }

    fn addr(&self) -> &str {
        match self {
            Relay::Streamgate(gateway) => gateway.addr(),
            Relay::Nginx(nginx) => nginx.addr(),
        }
    }

    pub fn name(&self) -> &'static str {
        match self {
            Relay::Streamgate(_) => "streamgate",
            Relay::Nginx(_) => "nginx",
        }
    }

    pub fn send(&self, ask: &Ask) -> Stream {
        Stream::send(self.addr(), ask)
    }

    /// Resident memory of all its processes, in KiB.
    pub fn resident_kib(&self) -> f64 {
        let pids = match self {
            Relay::Streamgate(gateway) => vec![gateway.process.pid()],
            Relay::Nginx(nginx) => nginx.pids(),
        };
        pids.into_iter().map(machine::resident).sum::<u64>() as f64 / 1024.0
    }
}

/// A streamed chat that tells the engine what to play.
pub fn asks(user: &str) -> Ask {
    chat().set("user", user).set("max_tokens", 1000)
}
