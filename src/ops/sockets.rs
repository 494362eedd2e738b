//! Listening sockets, bound by us before Pingora starts: a port that is taken is one clear line at once, and the
//! sockets can carry options that accepted connections inherit.

use socket2::{Domain, Protocol, SockAddr, Socket as RawSocket, Type};
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{IntoRawFd, RawFd};

const BACKLOG: i32 = 65535;

/// A bound, listening socket and the address text it was configured by.
#[derive(Debug)]
pub struct Socket {
    addr: String,
    socket: RawSocket,
}

impl Socket {
    /// Binds and listens. `send_buffer` in bytes is what the kernel may hold towards each client.
    pub fn bind(key: &str, addr: &str, send_buffer: Option<u64>) -> Result<Socket, String> {
        let failed =
            |e: std::io::Error| format!("{key} {addr} cannot be bound: {e}; {}", advice(e.kind()));
        let target = resolve(addr).map_err(failed)?;
        let socket = open(target, send_buffer).map_err(failed)?;
        Ok(Socket {
            addr: addr.to_owned(),
            socket,
        })
    }

    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// Hands the descriptor over; the taker closes it.
    pub fn into_fd(self) -> (String, RawFd) {
        (self.addr, self.socket.into_raw_fd())
    }
}

fn advice(kind: ErrorKind) -> &'static str {
    const KNOWN: &[(ErrorKind, &str)] = &[
        (ErrorKind::AddrInUse, "another process listens there"),
        (
            ErrorKind::PermissionDenied,
            "ports below 1024 need root or CAP_NET_BIND_SERVICE",
        ),
        (
            ErrorKind::AddrNotAvailable,
            "the address is none of this machine's",
        ),
    ];
    let known = KNOWN.iter().find(|(of, _)| *of == kind);
    known.map_or("the form is HOST:PORT", |(_, advice)| advice)
}

fn resolve(addr: &str) -> std::io::Result<SocketAddr> {
    addr.to_socket_addrs()?
        .next()
        .ok_or_else(|| std::io::Error::other("the name has no address"))
}

fn open(addr: SocketAddr, send_buffer: Option<u64>) -> std::io::Result<RawSocket> {
    let socket = RawSocket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    if let Some(size) = send_buffer.and_then(|s| usize::try_from(s).ok()) {
        // the kernel doubles what it is given, for its own books
        socket.set_send_buffer_size(size / 2)?;
    }
    socket.bind(&SockAddr::from(addr))?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}
