//! Answers of the admin listener: lines of text for probes, JSON for the API.

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::json;

pub type Answer = Response<Vec<u8>>;

pub fn text(status: StatusCode, body: &str) -> Answer {
    with(status, "text/plain; charset=utf-8", body.into())
}

pub fn metrics(body: Vec<u8>) -> Answer {
    with(
        StatusCode::OK,
        "text/plain; version=0.0.4; charset=utf-8",
        body,
    )
}

pub fn json(status: StatusCode, document: &impl Serialize) -> Answer {
    match serde_json::to_vec(document) {
        Ok(body) => with(status, "application/json", body),
        Err(e) => {
            log::error!("an admin answer cannot be written: {e}");
            text(StatusCode::INTERNAL_SERVER_ERROR, "see the error log\n")
        }
    }
}

/// An error in the shape of the public API's.
pub fn error(status: StatusCode, code: &str, message: &str) -> Answer {
    let document = json!({ "error": { "message": message, "code": code } });
    json(status, &document)
}

/// The path is there, by another method.
pub fn wrong_method(allow: &'static str) -> Answer {
    let message = format!("this path takes {allow}");
    let mut answer = error(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        &message,
    );
    let allow = HeaderValue::from_static(allow);
    answer.headers_mut().insert(ALLOW, allow);
    answer
}

/// The token is missing or wrong, with how one is shown (RFC 9110, section 15.5.2).
pub fn wrong_token() -> Answer {
    let mut answer = error(
        StatusCode::UNAUTHORIZED,
        "invalid_token",
        "the admin token is missing or wrong; send `Authorization: Bearer TOKEN`",
    );
    let bearer = HeaderValue::from_static("Bearer");
    answer.headers_mut().insert(WWW_AUTHENTICATE, bearer);
    answer
}

fn with(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Answer {
    let length = body.len();
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CONTENT_LENGTH, length.into());
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
