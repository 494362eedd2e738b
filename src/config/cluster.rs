//! `[shed]` and `[cluster]`: what the gateway does under too much load, and with other gateways.

use super::address::{is_url, web};
use super::reader::{Table, Value};
use super::values::{fraction, name, some_time, word};
use super::{Cluster, OnClusterFailure, Secret, Shed};
use std::time::Duration;

pub(super) fn read_shed(t: &Table) -> Shed {
    Shed {
        queue_wait: t
            .value("queue_wait", some_time)
            .unwrap_or(Duration::from_millis(500)),
        loop_lag: t
            .value("loop_lag", some_time)
            .unwrap_or(Duration::from_millis(100)),
        fd_headroom: t.value("fd_headroom", fraction(0.0..=1.0)).unwrap_or(0.1),
    }
}

pub(super) fn read(t: &Table) -> Cluster {
    let redis = t.required("redis", REDIS, redis);
    let node = t.required("node", "this gateway's name among the others", name);
    let wanted = "a URL as \"https://gw-1.example.com\"";
    Cluster {
        redis: Secret::new(redis.unwrap_or_default()),
        node: node.unwrap_or_default(),
        advertise: t.value("advertise", |v| web(v, wanted)),
        on_failure: t
            .value("on_failure", word)
            .unwrap_or(OnClusterFailure::Local),
    }
}

const REDIS: &str = "a URL as \"redis://127.0.0.1:6379\"";

/// The URL may hold a password, so a bad one is not shown.
fn redis(v: &Value) -> Option<String> {
    let url = v.text().filter(|t| is_url(t, &["redis", "rediss"]));
    if url.is_none() {
        v.refuse_hidden(&format!("give {REDIS}"));
    }
    url.map(str::to_owned)
}
