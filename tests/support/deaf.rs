//! A backend that never accepts: connecting to it takes as long as one waits.

use socket2::{Domain, SockAddr, Socket, Type};
use std::net::SocketAddr;
use std::time::Duration;

/// More than any kernel lets wait at a listener without a backlog.
const CALLERS: usize = 16;

/// How long a connection may take before the listener counts as full.
const FULL: Duration = Duration::from_millis(200);

/// Lives as long as it is kept.
pub struct Deaf {
    addr: String,
    _listener: Socket,
    _callers: Vec<Socket>,
}

impl Deaf {
    #[track_caller]
    pub fn start() -> Deaf {
        let listener = tcp();
        let any: SocketAddr = ([127, 0, 0, 1], 0).into();
        listener.bind(&any.into()).expect("a port for the listener");
        listener.listen(0).expect("a listener without a backlog");
        let addr = listener.local_addr().expect("the listener's address");
        let addr = addr.as_socket().expect("an internet address");
        Deaf {
            addr: addr.to_string(),
            _listener: listener,
            _callers: fill(&addr.into()),
        }
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }
}

/// Connects until the kernel takes no more.
#[track_caller]
fn fill(addr: &SockAddr) -> Vec<Socket> {
    let mut callers = Vec::new();
    for _ in 0..CALLERS {
        let caller = tcp();
        let waits = caller.connect_timeout(addr, FULL).is_err();
        callers.push(caller);
        if waits {
            return callers;
        }
    }
    panic!("this machine's listener is not full after {CALLERS} connections");
}

fn tcp() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket")
}
