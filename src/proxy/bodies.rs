//! Request bodies: read whole, each within its bound and all of them within one.

use super::connection::Connection;
use super::refuse::Refusal;
use crate::api::Code;
use bytes::{Bytes, BytesMut};
use pingora_core::ErrorType;
use pingora_proxy::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A body of unknown length starts with this much room.
const FIRST_ROOM: u64 = 16 * 1024;

/// The bytes that all bodies together may hold.
#[derive(Debug)]
pub struct BodyMemory {
    max: u64,
    used: AtomicU64,
}

/// A part of that memory, given back when dropped.
#[derive(Debug)]
pub struct Share {
    of: Arc<BodyMemory>,
    bytes: u64,
}

impl BodyMemory {
    pub fn new(max: u64) -> Arc<BodyMemory> {
        Arc::new(BodyMemory {
            max,
            used: AtomicU64::new(0),
        })
    }

    fn share(self: &Arc<BodyMemory>) -> Share {
        Share {
            of: self.clone(),
            bytes: 0,
        }
    }
}

impl Share {
    /// Takes more, or nothing where that would be too much.
    fn grow(&mut self, by: u64) -> bool {
        let max = self.of.max;
        let grown = self
            .of
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                used.checked_add(by).filter(|sum| *sum <= max)
            })
            .is_ok();
        if grown {
            self.bytes += by;
        }
        grown
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

/// A whole body and its share of the memory.
#[derive(Debug)]
pub struct Body {
    pub bytes: Bytes,
    pub share: Share,
}

/// What bounds the reading of a body.
pub struct Bounds {
    pub max: u64,
    /// The longest wait for the whole body.
    pub time: Duration,
}

/// Reads the whole body.
pub async fn read(
    session: &mut Session,
    memory: &Arc<BodyMemory>,
    bounds: &Bounds,
) -> Result<Body, Refusal> {
    let announced = content_length(session);
    if announced.is_some_and(|n| n > bounds.max) {
        return Err(too_large(bounds.max));
    }
    answer_expectation(session).await?;
    match tokio::time::timeout(bounds.time, read_all(session, memory, bounds, announced)).await {
        Ok(body) => body,
        Err(_) => Err(Refusal::new(
            Code::RequestTimeout,
            format!("the body did not come whole within {:?}", bounds.time),
        )),
    }
}

async fn read_all(
    session: &mut Session,
    memory: &Arc<BodyMemory>,
    bounds: &Bounds,
    announced: Option<u64>,
) -> Result<Body, Refusal> {
    let mut share = memory.share();
    let room = announced.unwrap_or(FIRST_ROOM).min(bounds.max);
    let mut whole = BytesMut::with_capacity(usize::try_from(room.min(FIRST_ROOM)).unwrap_or(0));
    loop {
        let chunk = session
            .downstream_session
            .read_request_body()
            .await
            .map_err(|e| unreadable(&e))?;
        let Some(chunk) = chunk else {
            break;
        };
        let len = u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        if share.bytes.saturating_add(len) > bounds.max {
            return Err(too_large(bounds.max));
        }
        if !share.grow(len) {
            return Err(memory_full());
        }
        if whole.is_empty() && announced == Some(len) {
            // it came in one piece: no copy
            return Ok(Body {
                bytes: chunk,
                share,
            });
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(Body {
        bytes: whole.freeze(),
        share,
    })
}

fn content_length(session: &Session) -> Option<u64> {
    let value = session.req_header().headers.get("content-length")?;
    value.to_str().ok()?.trim().parse().ok()
}

/// A client that asked waits for our word before it sends the body (RFC 9110, section 10.1.1).
async fn answer_expectation(session: &mut Session) -> Result<(), Refusal> {
    let header = session.req_header();
    let asked = header
        .headers
        .get("expect")
        .is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    // an HTTP/1.0 client knows no interim answers
    let expects = asked && header.version != http::Version::HTTP_10;
    if expects {
        let written = match Connection::of(session) {
            // Pingora would take it for the answer's head, and close behind it
            Some(connection) => connection.go_on().await,
            None => session.downstream_session.write_continue_response().await,
        };
        written.map_err(|e| unreadable(&e))?;
    }
    Ok(())
}

fn unreadable(error: &pingora_core::Error) -> Refusal {
    if matches!(error.etype(), ErrorType::ReadTimedout) {
        return Refusal::new(Code::RequestTimeout, "the body did not come in time");
    }
    Refusal::new(
        Code::InvalidRequest,
        "the body ended early or is not framed as its headers say",
    )
    .closing()
}

fn too_large(max: u64) -> Refusal {
    Refusal::new(
        Code::RequestTooLarge,
        format!("the body is larger than {max} bytes; shorten it, or ask for a larger max_body"),
    )
    .closing()
}

fn memory_full() -> Refusal {
    Refusal::new(
        Code::BodyMemoryFull,
        "too many large bodies are held at once; try again shortly",
    )
    .after(Duration::from_secs(1))
    .closing()
}

/// Reads and drops what the client still sends, for a while, so that it gets to read the answer (RFC 9112, section 9.6).
pub async fn drain(session: &mut Session, most: u64, time: Duration) {
    let reading = async {
        let mut read = 0_u64;
        while let Ok(Some(chunk)) = session.downstream_session.read_request_body().await {
            read = read.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
            if read > most {
                return;
            }
        }
    };
    if tokio::time::timeout(time, reading).await.is_err() {
        log::debug!("a client went on sending a body that was refused");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_add_up_to_more_than_there_is_and_come_back() {
        let memory = BodyMemory::new(100);
        let mut one = memory.share();
        let mut two = memory.share();
        assert!(one.grow(60));
        assert!(!two.grow(41));
        assert!(two.grow(40));
        drop(one);
        assert!(two.grow(60));
        drop(two);
        assert_eq!(memory.used.load(Ordering::Relaxed), 0);
    }
}
