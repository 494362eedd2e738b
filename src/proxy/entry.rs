//! Where connections come in: Pingora's own loop over a connection's requests, with the waits that Pingora does not
//! bound. Its read time-out starts anew with every byte; here a head has to come whole within its time, and an idle
//! connection is closed after its own.

use super::Gateway;
use super::connection::Connection;
use crate::api::{Code, Fault, errors};
use crate::config::ServerTimeouts;
use crate::record::{Api, RequestId};
use async_trait::async_trait;
use pingora_core::apps::{HttpPersistentSettings, HttpServerApp, ServerApp};
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::{ALPN, Stream};
use pingora_core::server::ShutdownWatch;
use pingora_proxy::HttpProxy;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

/// How HTTP/2 without TLS begins (RFC 9113, section 3.4). No HTTP/1 request starts with its first word.
const H2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const H2_WORD: &[u8; 4] = b"PRI ";
/// How long telling a client that it was too slow may take.
const LAST_WORD: Duration = Duration::from_secs(1);

/// One group of listeners' application.
pub struct Entry {
    proxy: Arc<HttpProxy<Gateway>>,
    h2c: bool,
    timeouts: ServerTimeouts,
}

impl Entry {
    pub fn new(proxy: HttpProxy<Gateway>, h2c: bool, timeouts: ServerTimeouts) -> Entry {
        Entry {
            proxy: Arc::new(proxy),
            h2c,
            timeouts,
        }
    }

    /// Whether the client speaks HTTP/2. A client that says nothing for the time of a head is not waited for.
    async fn is_h2(&self, stream: &mut Stream) -> Option<bool> {
        if matches!(stream.selected_alpn_proto(), Some(ALPN::H2)) {
            return Some(true);
        }
        if !self.h2c || stream.get_ssl_digest().is_some() {
            return Some(false);
        }
        let peeking = async {
            let mut word = [0; H2_WORD.len()];
            if !stream.try_peek(&mut word).await? || word != *H2_WORD {
                return Ok(false);
            }
            let mut preface = [0; H2_PREFACE.len()];
            io::Result::Ok(stream.try_peek(&mut preface).await? && preface == *H2_PREFACE)
        };
        match tokio::time::timeout(self.timeouts.header, peeking).await {
            Ok(Ok(h2)) => Some(h2),
            Ok(Err(_)) | Err(_) => None,
        }
    }

    /// Serves one request after the other until the connection is done with.
    async fn http1(&self, stream: Stream, shutdown: &ShutdownWatch) {
        let connection = Connection::new(stream);
        let mut next: Option<(Stream, Option<HttpPersistentSettings>)> =
            Some((connection.stream(), None));
        let mut idle = self.timeouts.header;
        while let Some((stream, settings)) = next {
            let mut session = ServerSession::new_http1(stream);
            match settings {
                Some(settings) => settings.apply_to_session(&mut session),
                // its waits are bounded here
                None => session.set_keepalive(Some(0)),
            }
            connection.await_head();
            let served = tokio::select! {
                biased;
                served = self.proxy.process_new_http(session, shutdown) => served,
                begun = self.overdue(&connection, idle) => {
                    if begun {
                        tell_late(&connection).await;
                    }
                    return;
                }
            };
            if !connection.is_read_whole() {
                // Pingora takes the request for read where we do not: what follows may be a part of it
                return;
            }
            next = served.map(|reused| reused.consume());
            idle = self.timeouts.keepalive;
        }
    }

    /// Waits until a request's head has taken too long: `idle` until its first byte, then the time of a head. Whether it
    /// had begun. Never comes once the head was read.
    async fn overdue(&self, connection: &Connection, idle: Duration) -> bool {
        let begun = tokio::time::timeout(idle, connection.first_read())
            .await
            .is_ok();
        if begun && !connection.has_head() {
            tokio::time::sleep(self.timeouts.header).await;
        }
        if connection.has_head() {
            std::future::pending::<()>().await;
        }
        begun
    }
}

/// Tells a client whose head did not come whole in time.
async fn tell_late(connection: &Arc<Connection>) {
    let id = RequestId::generate();
    let body = errors::document(
        Api::Native,
        &Fault {
            code: Code::RequestTimeout,
            message: "the request's head did not come whole in time",
            param: None,
            request_id: id.as_str(),
        },
    );
    let head = format!(
        "HTTP/1.1 408 Request Timeout\r\nContent-Type: application/json\r\nContent-Length: {}\r\nX-Request-Id: {id}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = connection.stream();
    let answer = [head.as_bytes(), &body].concat();
    let telling = async {
        stream.write_all(&answer).await?;
        AsyncWriteExt::shutdown(&mut stream).await?;
        io::Result::Ok(())
    };
    if !matches!(tokio::time::timeout(LAST_WORD, telling).await, Ok(Ok(()))) {
        log::debug!("a client that sent its head too slowly was not told");
    }
}

#[async_trait]
impl ServerApp for Entry {
    async fn process_new(
        self: &Arc<Self>,
        mut stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        match self.is_h2(&mut stream).await {
            Some(true) => {
                return ServerApp::process_new(&self.proxy, stream, shutdown).await;
            }
            Some(false) => self.http1(stream, shutdown).await,
            None => log::debug!("a client said nothing in the time of a head"),
        }
        None
    }

    async fn cleanup(&self) {
        ServerApp::cleanup(&*self.proxy).await;
    }
}
