//! Every error code of the gateway: its word, its HTTP status, and what each protocol calls its kind.

use crate::record::Api;

/// Declares the codes, each with its status and its word, which is also the metric label.
macro_rules! codes {
    ($($variant:ident = $status:literal $word:literal),+ $(,)?) => {
        /// Why a request was refused or failed (contract section 3).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),+ }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// The word clients and metrics see.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $word),+ }
            }

            /// The HTTP status, where none was sent before.
            pub const fn status(self) -> u16 {
                match self { $(Code::$variant => $status),+ }
            }
        }
    };
}

codes!(
    InvalidJson = 400 "invalid_json",
    InvalidRequest = 400 "invalid_request",
    UnconvertibleField = 400 "unconvertible_field",
    InvalidRequestId = 400 "invalid_request_id",
    InvalidApiKey = 401 "invalid_api_key",
    ModelNotAllowed = 403 "model_not_allowed",
    ModelNotFound = 404 "model_not_found",
    UnknownRequest = 404 "unknown_request",
    NotFound = 404 "not_found",
    MethodNotAllowed = 405 "method_not_allowed",
    RequestTimeout = 408 "request_timeout",
    RequestRunning = 409 "request_running",
    RequestAlreadyShown = 409 "request_already_shown",
    RequestTooLarge = 413 "request_too_large",
    UnsupportedEncoding = 415 "unsupported_encoding",
    RequestIdMismatch = 422 "request_id_mismatch",
    RateLimited = 429 "rate_limited",
    BudgetExhausted = 429 "budget_exhausted",
    TenantSlotsFull = 429 "tenant_slots_full",
    PoolSlotsFull = 429 "pool_slots_full",
    QueueFull = 429 "queue_full",
    QueueTimeout = 429 "queue_timeout",
    Shedding = 429 "shedding",
    HeadersTooLarge = 431 "headers_too_large",
    Cancelled = 499 "cancelled",
    UpstreamUnreachable = 502 "upstream_unreachable",
    UpstreamBroken = 502 "upstream_broken",
    NoBackend = 503 "no_backend",
    Draining = 503 "draining",
    LedgerUnavailable = 503 "ledger_unavailable",
    BodyMemoryFull = 503 "body_memory_full",
    ClusterUnavailable = 503 "cluster_unavailable",
    UpstreamTimeout = 504 "upstream_timeout",
);

impl Code {
    /// The `type` of an error document: the names of the API's own errors, by which its SDKs choose their exceptions.
    pub const fn kind(self, api: Api) -> &'static str {
        match api {
            Api::Messages => self.anthropic_kind(),
            Api::Chat | Api::Completions | Api::Embeddings | Api::Responses | Api::Native => {
                self.openai_kind()
            }
        }
    }

    const fn openai_kind(self) -> &'static str {
        match (self, self.status()) {
            (Code::BudgetExhausted, _) => "insufficient_quota",
            (_, 401) => "authentication_error",
            (_, 403) => "permission_error",
            (_, 429) => "rate_limit_error",
            (_, 500..) => "api_error",
            _ => "invalid_request_error",
        }
    }

    const fn anthropic_kind(self) -> &'static str {
        match self.status() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            504 => "timeout_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        }
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_a_word_of_its_own_and_an_error_status() {
        let words: std::collections::HashSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!((400..600).contains(&code.status()), "{code}");
        }
    }

    #[test]
    fn kinds_are_those_the_sdks_know() {
        for (code, openai, anthropic) in [
            (
                Code::InvalidJson,
                "invalid_request_error",
                "invalid_request_error",
            ),
            (
                Code::InvalidApiKey,
                "authentication_error",
                "authentication_error",
            ),
            (
                Code::ModelNotAllowed,
                "permission_error",
                "permission_error",
            ),
            (
                Code::ModelNotFound,
                "invalid_request_error",
                "not_found_error",
            ),
            (
                Code::RequestTooLarge,
                "invalid_request_error",
                "request_too_large",
            ),
            (
                Code::BudgetExhausted,
                "insufficient_quota",
                "rate_limit_error",
            ),
            (Code::QueueFull, "rate_limit_error", "rate_limit_error"),
            (Code::UpstreamBroken, "api_error", "api_error"),
            (Code::Draining, "api_error", "overloaded_error"),
            (Code::UpstreamTimeout, "api_error", "timeout_error"),
        ] {
            assert_eq!(code.kind(Api::Chat), openai, "{code}");
            assert_eq!(code.kind(Api::Messages), anthropic, "{code}");
        }
    }
}
