//! From method and path to what is asked (contract section 3).

use crate::api::Call;
use crate::record::RequestId;
use http::Method;
use percent_encoding::percent_decode_str;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A request to a model.
    Call(Call),
    Models,
    Record(RequestId),
    Cancel(RequestId),
    /// The path is known, not with this method; the methods it takes.
    WrongMethod(&'static str),
    Nothing,
}

/// Finds what is asked. The path is taken as it came: one with tricks in it matches nothing.
pub fn find(method: &Method, path: &str) -> Asked {
    if let Some(call) = Call::of_path(path) {
        return only(method, &Method::POST, "POST", Asked::Call(call));
    }
    if path == "/v1/models" {
        return only(method, &Method::GET, "GET, HEAD", Asked::Models);
    }
    let Some(rest) = path.strip_prefix("/generations/") else {
        return Asked::Nothing;
    };
    let (id, action) = match rest.split_once('/') {
        Some((id, action)) => (id, Some(action)),
        None => (rest, None),
    };
    match (named(id), action) {
        (Some(id), None) => only(method, &Method::GET, "GET, HEAD", Asked::Record(id)),
        (Some(id), Some("cancel")) => only(method, &Method::POST, "POST", Asked::Cancel(id)),
        (None | Some(_), _) => Asked::Nothing,
    }
}

/// An id as it stands in a path, where some clients write a colon as `%3A`.
fn named(id: &str) -> Option<RequestId> {
    let decoded = percent_decode_str(id).decode_utf8().ok()?;
    RequestId::parse(&decoded)
}

fn only(method: &Method, wanted: &Method, allow: &'static str, asked: Asked) -> Asked {
    // a HEAD asks for the head of what a GET would get
    let same = method == wanted || (method == Method::HEAD && wanted == Method::GET);
    if same {
        asked
    } else {
        Asked::WrongMethod(allow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_find_what_they_name_and_tricks_find_nothing() {
        let id = RequestId::parse("a.b").unwrap();
        let get = |p| find(&Method::GET, p);
        let post = |p| find(&Method::POST, p);
        assert_eq!(post("/v1/chat/completions"), Asked::Call(Call::Chat));
        assert_eq!(get("/v1/chat/completions"), Asked::WrongMethod("POST"));
        assert_eq!(get("/v1/models"), Asked::Models);
        assert_eq!(get("/generations/a.b"), Asked::Record(id.clone()));
        assert_eq!(post("/generations/a.b/cancel"), Asked::Cancel(id));
        let id = RequestId::parse("a:b").unwrap();
        assert_eq!(get("/generations/a%3Ab"), Asked::Record(id));
        for path in [
            "/v1/../v1/models",
            "/v1//models",
            "/v1/models/",
            "/generations/a%2fb",
            "/generations/a/b/cancel",
            "/v1/%6dodels",
        ] {
            assert_eq!(get(path), Asked::Nothing, "{path}");
        }
    }
}
