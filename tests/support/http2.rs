//! A cleartext HTTP/2 client for tests that block: several streams on one connection, each read as it arrives.
//!
//! The connection lives on a thread of its own, so that what a test asks for is on the wire without its help.

use super::ask::Ask;
use super::wait::PATIENCE;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

pub struct Http2 {
    runtime: Arc<Runtime>,
    client: SendRequest<Bytes>,
    driver: JoinHandle<()>,
}

/// One request and its answer.
pub struct Http2Stream {
    runtime: Arc<Runtime>,
    sending: SendStream<Bytes>,
    answer: Option<ResponseFuture>,
    reading: Option<RecvStream>,
    pub status: u16,
    pub headers: HeaderMap,
    /// The body so far, and whether it is whole.
    pub body: Vec<u8>,
    pub complete: bool,
}

impl Http2 {
    #[track_caller]
    pub fn connect(addr: &str) -> Http2 {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime for the client");
        let (client, connection) = runtime.block_on(async {
            let socket = tokio::net::TcpStream::connect(addr)
                .await
                .unwrap_or_else(|e| panic!("connecting to {addr}: {e}"));
            socket.set_nodelay(true).expect("TCP_NODELAY");
            // a stream that is not read must not take the window of all
            h2::client::Builder::new()
                .initial_connection_window_size(1 << 20)
                .handshake(socket)
                .await
                .unwrap_or_else(|e| panic!("HTTP/2 with {addr}: {e}"))
        });
        let driver = runtime.spawn(async {
            // a connection that fails shows in its streams
            connection.await.ok();
        });
        Http2 {
            runtime: Arc::new(runtime),
            client,
            driver,
        }
    }

    /// Sends a whole request.
    #[track_caller]
    pub fn send(&self, ask: &Ask) -> Http2Stream {
        self.try_send(ask)
            .unwrap_or_else(|e| panic!("sending over HTTP/2: {e}"))
    }

    /// As `send`, where the other side may have closed.
    pub fn try_send(&self, ask: &Ask) -> Result<Http2Stream, String> {
        let (head, body) = ask.http2();
        let mut stream = self.try_open(head, body.is_empty())?;
        if !body.is_empty() {
            stream.try_upload(body, true)?;
        }
        Ok(stream)
    }

    /// Sends a request's head.
    #[track_caller]
    pub fn open(&self, head: http::Request<()>, whole: bool) -> Http2Stream {
        self.try_open(head, whole)
            .unwrap_or_else(|e| panic!("opening a stream: {e}"))
    }

    fn try_open(&self, head: http::Request<()>, whole: bool) -> Result<Http2Stream, String> {
        let sent = self.runtime.block_on(async {
            let mut client = self.client.clone().ready().await?;
            client.send_request(head, whole)
        });
        let (answer, sending) = sent.map_err(|e| e.to_string())?;
        Ok(Http2Stream {
            runtime: self.runtime.clone(),
            sending,
            answer: Some(answer),
            reading: None,
            status: 0,
            headers: HeaderMap::new(),
            body: Vec::new(),
            complete: false,
        })
    }

    /// Closes the connection, whatever still runs on it.
    pub fn close(self) {
        self.driver.abort();
        self.runtime.block_on(self.driver).ok();
    }
}

impl Http2Stream {
    /// Sends a part of the body, as fast as the other side takes it.
    #[track_caller]
    pub fn upload(&mut self, bytes: Vec<u8>, last: bool) {
        if let Err(e) = self.try_upload(bytes, last) {
            panic!("sending a body over HTTP/2: {e}");
        }
    }

    /// As `upload`, where the other side may stop taking it.
    pub fn try_upload(&mut self, bytes: Vec<u8>, last: bool) -> Result<(), String> {
        let sending = &mut self.sending;
        let mut rest = Bytes::from(bytes);
        let sent = self.runtime.block_on(async {
            tokio::time::timeout(PATIENCE, async {
                while !rest.is_empty() {
                    sending.reserve_capacity(rest.len());
                    let room = std::future::poll_fn(|cx| sending.poll_capacity(cx)).await;
                    let room = room.ok_or("the stream is closed")?;
                    let room = room.map_err(|e| e.to_string())?.min(rest.len());
                    let piece = rest.split_to(room);
                    let sent = sending.send_data(piece, last && rest.is_empty());
                    sent.map_err(|e| e.to_string())?;
                }
                Ok(())
            })
            .await
        });
        sent.unwrap_or_else(|_| Err("it was not taken in time".to_owned()))
    }

    /// Reads until the body so far is as wanted, or over.
    pub fn try_until(&mut self, wanted: impl Fn(&[u8]) -> bool) -> Result<(), String> {
        let runtime = self.runtime.clone();
        let read =
            runtime.block_on(async { tokio::time::timeout(PATIENCE, self.read(wanted)).await });
        match read {
            Ok(read) => read.map_err(|e| e.to_string()),
            Err(_) => Err("nothing more came in time".to_owned()),
        }
    }

    /// As `try_until`, where it must not fail.
    #[track_caller]
    pub fn until(&mut self, wanted: impl Fn(&[u8]) -> bool) {
        if let Err(e) = self.try_until(wanted) {
            let body = String::from_utf8_lossy(&self.body);
            panic!("{e}; status {}, the body so far: {body}", self.status);
        }
    }

    /// The whole body.
    #[track_caller]
    pub fn rest(&mut self) -> Vec<u8> {
        self.until(|_| false);
        self.body.clone()
    }

    async fn read(&mut self, wanted: impl Fn(&[u8]) -> bool) -> Result<(), h2::Error> {
        if let Some(answer) = self.answer.take() {
            let (head, body) = answer.await?.into_parts();
            self.status = head.status.as_u16();
            self.headers = head.headers;
            self.reading = Some(body);
        }
        let Some(reading) = &mut self.reading else {
            return Ok(());
        };
        while !wanted(&self.body) {
            let Some(piece) = reading.data().await.transpose()? else {
                self.complete = true;
                return Ok(());
            };
            reading.flow_control().release_capacity(piece.len())?;
            self.body.extend_from_slice(&piece);
        }
        Ok(())
    }

    /// Leaves this stream alone: RST_STREAM.
    pub fn reset(mut self) {
        self.sending.send_reset(Reason::CANCEL);
    }
}
