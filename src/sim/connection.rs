//! One client's connection: its requests in turn, each watched for the client's leaving, and how it ends.

use super::engine::Engine;
use super::generate::End;
use super::http::{self, Request, Trouble};
use super::options::Notice;
use super::route;
use bytes::BytesMut;
use socket2::SockRef;
use std::io;
use std::net::Shutdown;
use std::time::Duration;
use tokio::net::TcpStream;

/// Bytes of further requests taken in while one is answered. Beyond them a leaving client is noticed only by writing.
const AHEAD_MAX: usize = 64 << 10;
/// Time for what was written to reach the peer, before a reset throws away what has not.
const BEFORE_RESET: Duration = Duration::from_millis(20);
/// Time for the peer to read to the end, before a close with bytes unread becomes a reset.
const LINGER: Duration = Duration::from_secs(1);

/// Serves a connection until it ends.
pub async fn serve(stream: TcpStream, engine: &Engine) {
    let mut buffer = BytesMut::new();
    loop {
        let request = match http::read(&stream, &mut buffer).await {
            Ok(request) => request,
            Err(Trouble::Closed) => return,
            Err(Trouble::Bad(status, message)) => {
                return refuse(stream, status, &message).await;
            }
        };
        match answer(&stream, &mut buffer, engine, &request).await {
            Ok(End::Complete) if request.head.keep_alive => {}
            Ok(End::Complete | End::Fin) => return close(stream).await,
            Ok(End::Reset) => return reset(stream).await,
            Err(_) => return,
        }
    }
}

/// Answers a request; an error where the client left.
async fn answer(
    stream: &TcpStream,
    buffer: &mut BytesMut,
    engine: &Engine,
    request: &Request,
) -> io::Result<End> {
    let answer = route::answer(stream, engine, request);
    match engine.notice() {
        Notice::OnWrite => answer.await,
        Notice::AtOnce => tokio::select! {
            biased;
            end = answer => end,
            () = gone(stream, buffer) => Err(io::ErrorKind::ConnectionAborted.into()),
        },
    }
}

/// Ends when the client has closed its side or reset the connection. What it sends meanwhile is kept for later.
async fn gone(stream: &TcpStream, buffer: &mut BytesMut) {
    while buffer.len() < AHEAD_MAX {
        if !matches!(http::fill(stream, buffer).await, Ok(1..)) {
            return;
        }
    }
    std::future::pending().await
}

/// Answers what is no request, and closes.
async fn refuse(stream: TcpStream, status: u16, message: &str) {
    if route::refuse(&stream, status, message).await.is_ok() {
        close(stream).await;
    }
}

/// Sends a FIN, then reads on for a moment: bytes left unread would turn the close into a reset.
async fn close(stream: TcpStream) {
    if SockRef::from(&stream).shutdown(Shutdown::Write).is_err() {
        return;
    }
    let drained = async {
        let mut buffer = BytesMut::new();
        while matches!(http::fill(&stream, &mut buffer).await, Ok(1..)) {
            buffer.clear();
        }
    };
    tokio::select! {
        () = drained => {}
        () = tokio::time::sleep(LINGER) => {}
    }
}

/// Sends a RST, after what was written.
async fn reset(stream: TcpStream) {
    tokio::time::sleep(BEFORE_RESET).await;
    if let Err(e) = SockRef::from(&stream).set_linger(Some(Duration::ZERO)) {
        log::warn!("a connection could not be reset: {e}");
    }
}
