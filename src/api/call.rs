//! The calls that carry a request body: their paths, their protocol, what they hold.

use crate::config::Protocol;
use crate::record::Api;
use bytes::Bytes;

/// A call of contract section 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Chat,
    Completions,
    Embeddings,
    Responses,
    Messages,
    CountTokens,
    Native,
}

impl Call {
    pub const ALL: &'static [Call] = &[
        Call::Chat,
        Call::Completions,
        Call::Embeddings,
        Call::Responses,
        Call::Messages,
        Call::CountTokens,
        Call::Native,
    ];

    /// Where clients call it.
    pub const fn path(self) -> &'static str {
        match self {
            Call::Chat => "/v1/chat/completions",
            Call::Completions => "/v1/completions",
            Call::Embeddings => "/v1/embeddings",
            Call::Responses => "/v1/responses",
            Call::Messages => "/v1/messages",
            Call::CountTokens => "/v1/messages/count_tokens",
            Call::Native => "/generations",
        }
    }

    /// Where it is called upstream.
    pub const fn upstream_path(self) -> &'static str {
        match self {
            Call::Native => Call::Chat.path(),
            Call::Chat
            | Call::Completions
            | Call::Embeddings
            | Call::Responses
            | Call::Messages
            | Call::CountTokens => self.path(),
        }
    }

    /// The call at a path, if it is one.
    pub fn of_path(path: &str) -> Option<Call> {
        Call::ALL.iter().copied().find(|call| call.path() == path)
    }

    /// The API's name on the record.
    pub const fn api(self) -> Api {
        match self {
            Call::Chat => Api::Chat,
            Call::Completions => Api::Completions,
            Call::Embeddings => Api::Embeddings,
            Call::Responses => Api::Responses,
            Call::Messages | Call::CountTokens => Api::Messages,
            Call::Native => Api::Native,
        }
    }

    /// What a backend must speak to take the call without a conversion.
    pub const fn protocol(self) -> Protocol {
        match self {
            Call::Messages | Call::CountTokens => Protocol::Anthropic,
            Call::Chat | Call::Completions | Call::Embeddings | Call::Responses | Call::Native => {
                Protocol::OpenAi
            }
        }
    }

    /// Whether the model writes anything.
    pub const fn generates(self) -> bool {
        match self {
            Call::Embeddings | Call::CountTokens => false,
            Call::Chat | Call::Completions | Call::Responses | Call::Messages | Call::Native => {
                true
            }
        }
    }
}

/// What a silent stream's client is sent. A comment is followed by one line end: with a blank line behind it some SDKs
/// dispatch an empty event and fail. Anthropic has an event of its own for this.
pub fn heartbeat(api: Api) -> Bytes {
    Bytes::from_static(match api {
        Api::Messages => b"event: ping\ndata: {\"type\": \"ping\"}\n\n",
        Api::Chat | Api::Completions | Api::Embeddings | Api::Responses | Api::Native => {
            b": keepalive\n"
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_call() {
        for call in Call::ALL {
            assert_eq!(Call::of_path(call.path()), Some(*call));
        }
        assert_eq!(Call::of_path("/v1/messages/"), None);
        assert_eq!(Call::Native.upstream_path(), "/v1/chat/completions");
    }

    #[test]
    fn only_the_ping_event_ends_in_a_blank_line() {
        for api in Api::ALL {
            let blank = heartbeat(*api).ends_with(b"\n\n");
            assert_eq!(blank, *api == Api::Messages, "{api}");
        }
    }
}
