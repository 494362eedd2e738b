//! The words of a request's life (contract section 5), and which of them end it. Pure.

use serde::{Deserialize, Serialize};

/// Declares an enum whose variants are written as one fixed word each: in JSON, in the ledger, as a metric label.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word as it is written everywhere.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// The variant of a word, if there is one.
            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words!(
    /// Where a request is in its life.
    State {
        /// Admitted, its budget reserved; waits for a slot of the pool.
        Queued = "QUEUED",
        /// Holds a slot; nothing has been shown.
        Running = "RUNNING",
        /// Output has been shown to the client: never run again.
        Streaming = "STREAMING",
        Completed = "COMPLETED",
        Cancelled = "CANCELLED",
        Failed = "FAILED",
    }
);

impl State {
    /// Whether the state ends a life.
    pub const fn is_terminal(self) -> bool {
        matches!(self, State::Completed | State::Cancelled | State::Failed)
    }
}

words!(
    /// Who or what ended a request.
    EndedBy {
        Upstream = "upstream",
        ClientClosed = "client_closed",
        CancelApi = "cancel_api",
        SlowReader = "slow_reader",
        Drain = "drain",
        Timeout = "timeout",
        Gateway = "gateway",
        Crash = "crash",
    }
);

words!(
    /// How the upstream's part ended.
    UpstreamEnd {
        Complete = "complete",
        Aborted = "aborted",
        Error = "error",
        /// The upstream was never called.
        None = "none",
    }
);

words!(
    /// Whose figures the record's units are.
    UsageSource {
        /// The upstream's own.
        Upstream = "upstream",
        /// Events the gateway read.
        Counted = "counted",
        /// Nobody knows yet; to be reconciled.
        Unknown = "unknown",
        /// Settled after the fact, from the vendor's bill or by an operator.
        Reconciled = "reconciled",
    }
);

words!(
    /// How one try of an upstream went.
    Outcome {
        Ok = "ok",
        ConnectFailed = "connect_failed",
        Refused = "refused",
        Reset = "reset",
        Timeout = "timeout",
        Aborted = "aborted",
        Error = "error",
    }
);

words!(
    /// The API a request came by.
    Api {
        Chat = "chat",
        Completions = "completions",
        Embeddings = "embeddings",
        Responses = "responses",
        Messages = "messages",
        Native = "native",
    }
);
