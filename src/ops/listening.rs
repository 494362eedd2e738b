//! A listening service of ours around Pingora's: it brings its own bound sockets, and stops accepting when we say so,
//! not when Pingora's fixed grace period begins.

use super::process::LoopLag;
use super::sockets::Socket;
use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::listeners::ListenerConfig;
use pingora_core::protocols::l4::stream::L4BufferSettings;
use pingora_core::server::{ListenFds, ShutdownWatch};
use pingora_core::services::Service as PingoraService;
use pingora_core::services::listening::Service as PingoraListening;

/// Per connection: what is read ahead of the parser, and what gathers small writes.
const READ_BUFFER: usize = 4096;
const WRITE_BUFFER: usize = 1460;

/// One runtime's listeners, all for one application.
pub struct Listening<A> {
    name: String,
    threads: Option<usize>,
    services: Vec<PingoraListening<A>>,
    sockets: Vec<Socket>,
    /// Becomes true when no new connection may be accepted; nothing where the listeners stay open to the end.
    closed: Option<ShutdownWatch>,
    lag: Option<LoopLag>,
}

impl<A> Listening<A> {
    pub fn new(name: &str, threads: Option<usize>, closed: Option<ShutdownWatch>) -> Listening<A> {
        Listening {
            name: name.to_owned(),
            threads,
            services: Vec::new(),
            sockets: Vec::new(),
            closed,
            lag: None,
        }
    }

    /// Measures the lag of the loop that this service runs on.
    pub fn measure(mut self, lag: LoopLag) -> Listening<A> {
        self.lag = Some(lag);
        self
    }

    /// Serves an application on a socket.
    pub fn serve(&mut self, app: A, socket: Socket) {
        let mut service = PingoraListening::new(self.name.clone(), app);
        let buffers = L4BufferSettings::new(READ_BUFFER, WRITE_BUFFER);
        service.add_listener(ListenerConfig::tcp(socket.addr()).l4_buffer(buffers));
        self.services.push(service);
        self.sockets.push(socket);
    }

    fn hand_over(&mut self, fds: Option<&ListenFds>) {
        let Some(fds) = fds else {
            return;
        };
        let mut table = fds.lock();
        for socket in self.sockets.drain(..) {
            let (addr, fd) = socket.into_fd();
            table.add(addr, fd);
        }
    }
}

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> PingoraService for Listening<A> {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        listeners_per_fd: usize,
    ) {
        self.hand_over(fds.as_ref());
        let closed = self.closed.clone().unwrap_or(shutdown);
        let lag = self.lag.take();
        let accepting = self.services.iter_mut().map(|s| {
            PingoraService::start_service(s, fds.clone(), closed.clone(), listeners_per_fd)
        });
        let accepting = all_of(accepting);
        match lag {
            Some(lag) => {
                tokio::join!(accepting, lag.run());
            }
            None => accepting.await,
        }
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn threads(&self) -> Option<usize> {
        self.threads
    }
}

/// Waits for all of them, side by side.
async fn all_of<F: Future<Output = ()> + Send>(all: impl Iterator<Item = F>) {
    let mut set: Vec<_> = all.map(Box::pin).collect();
    std::future::poll_fn(|cx| {
        set.retain_mut(|f| f.as_mut().poll(cx).is_pending());
        if set.is_empty() {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}
