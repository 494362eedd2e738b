//! Refusals: what is said no to before anything ran. Code, status, message and wait stand together here, and are
//! written in the shape of the API that was asked.

use super::bodies;
use super::connection::Connection;
use super::context::Ctx;
use super::rates;
use crate::api::{Code, Fault, errors};
use crate::record::Api;
use bytes::Bytes;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use std::time::Duration;

/// A longer wait is not worth a client's retry.
const WAIT_WORTH: Duration = Duration::from_secs(60);
/// How much of a refused body is read, and for how long, so that the client gets to read the answer.
const DRAIN_BYTES: u64 = 64 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(5);
/// How long a client may take to read an answer of ours.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Why a request is not admitted.
#[derive(Debug)]
pub struct Refusal {
    pub code: Code,
    pub message: String,
    pub param: Option<String>,
    /// When another try may succeed.
    retry_after: Option<Duration>,
    /// A retry is useless or would cost twice.
    final_answer: bool,
    /// The rest of the body was not read: the connection cannot be used again.
    closes: bool,
    /// The methods that a path takes, where it was asked by another.
    allow: Option<&'static str>,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal {
            code,
            message: message.into(),
            param: None,
            retry_after: None,
            final_answer: false,
            closes: false,
            allow: None,
        }
    }

    pub fn about(mut self, param: impl Into<String>) -> Refusal {
        self.param = Some(param.into());
        self
    }

    pub fn after(mut self, wait: Duration) -> Refusal {
        self.retry_after = Some(wait);
        self
    }

    pub fn for_good(mut self) -> Refusal {
        self.final_answer = true;
        self
    }

    pub fn allowing(mut self, methods: &'static str) -> Refusal {
        self.allow = Some(methods);
        self
    }

    pub fn closing(mut self) -> Refusal {
        self.closes = true;
        self
    }

    /// The head of the answer, with the wait that is told.
    pub fn header(&self, length: usize) -> Result<ResponseHeader> {
        let mut header = json_header(self.code.status(), length)?;
        if let Some(wait) = self.retry_after {
            let ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            let seconds = ms.div_ceil(1000).max(1);
            header.insert_header("Retry-After", seconds.to_string())?;
            header.insert_header("retry-after-ms", ms.max(1).to_string())?;
        }
        if self.code.status() == 401 {
            header.insert_header("WWW-Authenticate", "Bearer")?;
        }
        if let Some(methods) = self.allow {
            header.insert_header("Allow", methods)?;
        }
        if self.final_answer || self.retry_after.is_some_and(|w| w > WAIT_WORTH) {
            header.insert_header("x-should-retry", "false")?;
        }
        Ok(header)
    }
}

/// Answers a refusal and counts it.
pub async fn refuse(session: &mut Session, ctx: &mut Ctx, refusal: Refusal) -> Result<()> {
    ctx.hub
        .services
        .metrics
        .rejected(ctx.tenant_name(), refusal.code.as_str());
    ctx.code = Some(refusal.code.as_str());
    let body = document(
        ctx,
        refusal.code,
        &refusal.message,
        refusal.param.as_deref(),
    );
    let header = refusal.header(body.len())?;
    let unread = refusal.closes || !session.downstream_session.is_body_done();
    if unread {
        session.set_keepalive(None);
    }
    answer(session, ctx, header, body).await?;
    if unread {
        bodies::drain(session, DRAIN_BYTES, DRAIN_TIME).await;
    }
    Ok(())
}

/// An error in the shape of the API that was asked.
pub fn document(ctx: &Ctx, code: Code, message: &str, param: Option<&str>) -> Bytes {
    let fault = Fault {
        code,
        message,
        param,
        request_id: ctx.request_id.as_str(),
    };
    errors::document(ctx.call.map_or(Api::Native, |c| c.api()), &fault)
}

/// The head of a JSON answer of ours.
pub fn json_header(status: u16, length: usize) -> Result<ResponseHeader> {
    let mut header = ResponseHeader::build(status, Some(8))?;
    header.insert_header("Content-Type", "application/json")?;
    header.insert_header("Content-Length", length.to_string())?;
    header.insert_header("Cache-Control", "no-store")?;
    Ok(header)
}

/// Writes an answer of ours whole.
pub async fn answer(
    session: &mut Session,
    ctx: &mut Ctx,
    mut header: ResponseHeader,
    body: Bytes,
) -> Result<()> {
    header.insert_header("X-Request-Id", ctx.request_id.as_str())?;
    rates::tell(ctx, &mut header)?;
    ctx.answered(header.status.as_u16());
    // a HEAD is answered with the head of what a GET would get (RFC 9110, section 9.3.2)
    let empty = body.is_empty() || session.req_header().method == http::Method::HEAD;
    let length = u64::try_from(body.len()).unwrap_or(0);
    let writing = async {
        session
            .write_response_header(Box::new(header), empty)
            .await?;
        match empty {
            true => Ok(()),
            false => session.write_response_body(Some(body), true).await,
        }
    };
    let written = tokio::time::timeout(ANSWER_TIME, writing).await;
    match written {
        Ok(Ok(())) => {
            ctx.wire().bytes_out += if empty { 0 } else { length };
            Ok(())
        }
        Ok(Err(e)) => Err(e),
        Err(_) => {
            if let Some(connection) = Connection::of(session) {
                connection.break_off();
            }
            Error::e_explain(ErrorType::WriteTimedout, "a client did not take an answer")
        }
    }
}
