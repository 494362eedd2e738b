//! `[server]`: threads, folders, and limits that hold for every listener.

use super::address::network;
use super::reader::Table;
use super::values::{count, duration, path, size, some_time};
use super::{MaxHeaders, Network, Server, ServerTimeouts};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

pub(super) fn read(t: &Table) -> Server {
    let folder = |path: &str| t.reader.resolve(path);
    Server {
        threads: t.value("threads", count(0..=1024)).unwrap_or(0),
        pid_file: t
            .value("pid_file", path)
            .unwrap_or_else(|| folder("/run/streamgate/streamgate.pid")),
        upgrade_sock: t
            .value("upgrade_sock", path)
            .unwrap_or_else(|| folder("/run/streamgate/upgrade.sock")),
        data_dir: t
            .value("data_dir", path)
            .unwrap_or_else(|| folder("/var/lib/streamgate")),
        drain_timeout: t
            .value("drain_timeout", duration)
            .unwrap_or(Duration::from_secs(300)),
        max_body: t.value("max_body", size(1..=64 * GIB)).unwrap_or(32 * MIB),
        max_body_memory: t
            .value("max_body_memory", size(1..=u64::MAX))
            .unwrap_or(GIB),
        trusted_proxies: t
            .value("trusted_proxies", |v| v.list(network))
            .unwrap_or_else(|| vec![PRIVATE]),
        max_connections: t.value("max_connections", count(0..=u64::MAX)).unwrap_or(0),
        max_headers: t.section("max_headers", max_headers),
        socket_buffer: t
            .value("socket_buffer", size(4 * KIB..=GIB))
            .unwrap_or(256 * KIB),
        timeouts: t.section("timeouts", timeouts),
    }
}

const PRIVATE: Network = Network {
    address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)),
    prefix: 8,
};

/// The upper ends are what the HTTP parser itself takes.
fn max_headers(t: &Table) -> MaxHeaders {
    MaxHeaders {
        count: t.value("count", count(1..=256)).unwrap_or(100),
        size: t.value("size", size(KIB..=MIB)).unwrap_or(64 * KIB),
    }
}

fn timeouts(t: &Table) -> ServerTimeouts {
    ServerTimeouts {
        header: t
            .value("header", some_time)
            .unwrap_or(Duration::from_secs(10)),
        body: t
            .value("body", some_time)
            .unwrap_or(Duration::from_secs(30)),
        keepalive: t
            .value("keepalive", duration)
            .unwrap_or(Duration::from_secs(75)),
    }
}
