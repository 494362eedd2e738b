//! The identity of a request: the id its client names it by, and what an id that was sent before allows.

use super::context::Ctx;
use super::refuse::Refusal;
use crate::api::Code;
use crate::ledger::{Fingerprint, Known};
use crate::record::{Record, RequestId};
use pingora_proxy::Session;

/// The id that the client gives its request, in the header.
pub fn named(session: &Session) -> Result<Option<RequestId>, Refusal> {
    let mut values = session
        .req_header()
        .headers
        .get_all("idempotency-key")
        .iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.any(|other| other != value) {
        return Err(Refusal::new(
            Code::InvalidRequestId,
            "two different Idempotency-Key headers were sent; send one",
        )
        .about("Idempotency-Key"));
    }
    let id = value.to_str().ok().and_then(RequestId::parse);
    id.map(Some).ok_or_else(|| {
        Refusal::new(
            Code::InvalidRequestId,
            "Idempotency-Key is not 1 to 128 characters of A-Za-z0-9._:-",
        )
        .about("Idempotency-Key")
    })
}

/// The id in force: of the header, or of the member `request_id`. Whether the client named it.
pub fn adopt(
    ctx: &mut Ctx,
    member: Option<&RequestId>,
    header: Option<RequestId>,
) -> Result<bool, Refusal> {
    match (member, header) {
        (Some(member), Some(header)) if *member != header => Err(Refusal::new(
            Code::InvalidRequestId,
            "request_id and Idempotency-Key differ; send one of them",
        )
        .about("request_id")),
        (Some(member), _) => {
            ctx.request_id = member.clone();
            Ok(true)
        }
        (None, header) => Ok(header.is_some()),
    }
}

/// What an id that was sent before allows: nothing but what ended with nothing shown, and the same payload.
pub fn check(known: &Known, fingerprint: Fingerprint) -> Result<(), Refusal> {
    if !known.is_of(&fingerprint) {
        return Err(mismatch());
    }
    if !known.record.state.is_terminal() {
        return Err(running());
    }
    if known.shown {
        return Err(shown(&known.record));
    }
    Ok(())
}

pub fn running() -> Refusal {
    Refusal::new(
        Code::RequestRunning,
        "a request of this id is running; read it at GET /generations/{id}, or wait for its end",
    )
    .for_good()
}

fn shown(record: &Record) -> Refusal {
    Refusal::new(
        Code::RequestAlreadyShown,
        format!(
            "the request of this id ended {} after its output was shown, and is not run again; its record is at /generations/{}",
            record.state, record.request_id
        ),
    )
    .for_good()
}

pub fn mismatch() -> Refusal {
    Refusal::new(
        Code::RequestIdMismatch,
        "this id was used for another payload; give this request an id of its own",
    )
    .for_good()
}
