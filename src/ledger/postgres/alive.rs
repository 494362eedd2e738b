//! Which runs live, over all machines: a run holds an advisory lock as long as its connection stands, and the server
//! gives it back when the process ends, however it ends, or its machine goes silent.
//!
//! A lock is also gone where the server itself went down, or a connection was cut that will be made again. So one that
//! runs watches for a moment before it takes another one for dead, and longer where the lock was not taken of the very
//! server that runs now. Every run notes the time of the server's clock in the list of owners now and then.

use super::fault::Fault;
use super::link::{Session, column};
use crate::clock::{self, Timestamp};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Between two notes of a run that it lives.
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// How long one that runs sees another one without its lock until it takes it for dead.
const SUSPICION: Duration = Duration::from_secs(3);
/// How long a run without a lock may be silent where the server is not the one that it had it of.
const GRACE: Duration = Duration::from_secs(15);

/// Runs that look dead, and since when.
#[derive(Debug, Default)]
pub(super) struct Suspects(HashMap<String, Instant>);

impl Suspects {
    /// Those of the runs that look dead now that have done so for long enough.
    pub fn confirmed(&mut self, looks_dead: Vec<String>) -> Vec<String> {
        let now = clock::instant();
        self.0.retain(|run, _| looks_dead.contains(run));
        let has_time = |run: &String| {
            let since = *self.0.entry(run.clone()).or_insert(now);
            now.saturating_duration_since(since) >= SUSPICION
        };
        looks_dead.into_iter().filter(has_time).collect()
    }
}

/// Takes this run's lock, as often as it likes.
pub(super) async fn hold(session: &Session, run: &str) -> Result<(), Fault> {
    session
        .rows("SELECT pg_advisory_lock_shared($1)", &[&lock_of(run)])
        .await?;
    Ok(())
}

/// Writes this run into the list of those that write here, with how far it has read what others did.
pub(super) async fn register(
    session: &Session,
    run: &str,
    now: Timestamp,
    followed: i64,
) -> Result<(), Fault> {
    let pid = i64::from(std::process::id());
    session
        .change(
            "INSERT INTO owner (run, pid, since, seen, followed, server) VALUES ($1, $2, $3, \
             (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, $4, \
             (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint) \
             ON CONFLICT (run) DO UPDATE SET seen = excluded.seen, followed = excluded.followed, \
             server = excluded.server",
            &[&run, &pid, &now.0, &followed],
        )
        .await?;
    Ok(())
}

/// Notes that this run lives and how far it has read. Nothing where it is not on the list.
pub(super) async fn beat(session: &Session, run: &str, followed: i64) -> Result<(), Fault> {
    session
        .change(
            "UPDATE owner SET seen = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, followed = $2 \
             WHERE run = $1",
            &[&run, &followed],
        )
        .await?;
    Ok(())
}

pub(super) async fn is_registered(session: &Session, run: &str) -> Result<bool, Fault> {
    let row = session
        .row("SELECT EXISTS (SELECT FROM owner WHERE run = $1)", &[&run])
        .await?;
    column(&row, 0)
}

/// The others of the list that are dead.
pub(super) async fn dead_runs(session: &Session, own: &str) -> Result<Vec<String>, Fault> {
    let grace = i64::try_from(GRACE.as_micros()).unwrap_or(i64::MAX);
    let suspects = session
        .rows(
            "SELECT run FROM owner WHERE run <> $1 \
             AND (server = (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint \
             OR seen < (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - $2)",
            &[&own, &grace],
        )
        .await?;
    without_lock(session, suspects.iter().map(|row| column(row, 0))).await
}

/// The owners of open entries that no list names and that hold no lock; the empty one where an entry has no owner.
pub(super) async fn strays(session: &Session) -> Result<Vec<String>, Fault> {
    let unlisted = session
        .client
        .query(
            "SELECT DISTINCT coalesce(owner, '') FROM entry WHERE open \
             AND NOT EXISTS (SELECT FROM owner WHERE owner.run = entry.owner)",
            &[],
        )
        .await?;
    without_lock(session, unlisted.iter().map(|row| column(row, 0))).await
}

async fn without_lock(
    session: &Session,
    runs: impl Iterator<Item = Result<String, Fault>>,
) -> Result<Vec<String>, Fault> {
    let mut runs = runs.collect::<Result<Vec<_>, _>>()?;
    if runs.is_empty() {
        return Ok(runs);
    }
    let held = session
        .rows(
            "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' \
             AND objsubid = 1 AND granted \
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            &[],
        )
        .await?;
    let held = held.iter().map(|row| column(row, 0));
    let held = held.collect::<Result<HashSet<i64>, _>>()?;
    runs.retain(|run| run.is_empty() || !held.contains(&lock_of(run)));
    Ok(runs)
}

/// The number of a run's lock: the random half of its name. What is no name of ours has one that nobody takes.
fn lock_of(run: &str) -> i64 {
    let id = uuid::Uuid::try_parse(run).unwrap_or_default();
    id.as_u64_pair().1.cast_signed()
}
