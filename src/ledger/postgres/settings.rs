//! What a connection is told before it is used, and how long it is waited for.

use crate::config::Durability;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub sql: String,
    pub connect_limit: Duration,
    pub answer_limit: Duration,
}

/// A server that lost its client notices, and frees the locks it held.
const KEEPALIVES: &str = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; \
     SET tcp_keepalives_count = 4; SET tcp_user_timeout = '30s';";

/// All that a gateway reads is found by its key. A plan that was made while a table was small must not stay when it
/// has grown, and none need be made twice.
const BY_KEY: &str = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; \
     SET jit = off; SET plan_cache_mode = force_generic_plan;";

fn common(lock_wait: &str, idle_in_transaction: &str) -> String {
    format!(
        "SET search_path = streamgate; SET client_min_messages = error; \
         SET default_transaction_isolation = 'read committed'; {KEEPALIVES} \
         SET lock_timeout = '{lock_wait}'; \
         SET idle_in_transaction_session_timeout = '{idle_in_transaction}';"
    )
}

fn patient(sql: String) -> Settings {
    Settings {
        sql,
        connect_limit: Duration::from_secs(10),
        answer_limit: Duration::from_secs(60),
    }
}

/// Of a gateway that starts: there is time.
pub(super) fn starting(durability: Durability) -> Settings {
    let common = common("5s", "60s");
    patient(format!("{common} {BY_KEY} {}", durable(durability)))
}

/// Of a gateway whose requests wait: neither another process's lock nor an answer is waited for for long, and a gateway
/// that stops in the middle of a transaction does not hold up the others.
pub(super) fn running(durability: Durability) -> Settings {
    let common = common("250ms", "2s");
    Settings {
        sql: format!(
            "{common} {BY_KEY} {} SET statement_timeout = '5s';",
            durable(durability)
        ),
        connect_limit: Duration::from_secs(2),
        answer_limit: Duration::from_secs(6),
    }
}

/// Of a command that reads.
pub(super) fn reading() -> Settings {
    let common = common("5s", "60s");
    patient(format!("{common} SET default_transaction_read_only = on;"))
}

/// Of a command that changes entries.
pub(super) fn editing() -> Settings {
    let common = common("5s", "60s");
    patient(format!("{common} {BY_KEY} SET synchronous_commit = on;"))
}

/// Whether a commit waits for the server's log to be on disk.
fn durable(durability: Durability) -> &'static str {
    match durability {
        Durability::Process => "SET synchronous_commit = off;",
        Durability::Power => "SET synchronous_commit = on;",
    }
}
