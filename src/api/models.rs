//! The list of models a tenant may use.

use super::errors::bytes_of;
use bytes::Bytes;
use serde::Serialize;

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Model<'a>>,
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'static str,
    /// Unix seconds.
    created: i64,
    owned_by: &'static str,
}

/// The body of `GET /v1/models`. `created` is in Unix seconds: since when the gateway offers them.
pub fn document<'a>(names: impl Iterator<Item = &'a str>, created: i64) -> Bytes {
    let data = names
        .map(|id| Model {
            id,
            object: "model",
            created,
            owned_by: "streamgate",
        })
        .collect();
    Bytes::from(bytes_of(&List {
        object: "list",
        data,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_shape_of_the_openai_api() {
        assert_eq!(
            document(["a", "b\"c"].into_iter(), 7),
            r#"{"object":"list","data":[{"id":"a","object":"model","created":7,"owned_by":"streamgate"},{"id":"b\"c","object":"model","created":7,"owned_by":"streamgate"}]}"#
        );
        assert_eq!(
            document(std::iter::empty(), 0),
            r#"{"object":"list","data":[]}"#
        );
    }
}
