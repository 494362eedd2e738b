//! What a gateway does besides writing its own entries: joins and leaves, takes over from the dead, follows the living,
//! forgets the old.

use super::alive::{self, Suspects};
use super::fault::Fault;
use super::group::Group;
use super::link::{Session, column};
use super::mirror::Mirror;
use super::sums;
use super::write::{self, Writing};
use crate::clock::Timestamp;
use crate::ledger::judge::Judge;
use crate::ledger::store::Standing;
use crate::ledger::stored::COLUMNS;
use crate::ledger::sums::{Posting, month_of};
use crate::ledger::unknown;

/// Entries removed in one transaction.
const FORGET_MAX: i64 = 200;

/// A gateway in the ledger: by which rules it writes, and what the log calls the ledger.
pub(super) struct Member<'a> {
    pub judge: &'a Judge,
    pub place: &'a str,
}

/// Joins the ledger, takes what dead runs left open for crashed, and sums up, in one transaction. Also says up to which
/// posting the sums go.
pub(super) async fn join(
    session: &Session,
    member: &Member<'_>,
    now: Timestamp,
) -> Result<(Standing, i64), Fault> {
    let run = &*member.judge.run;
    alive::hold(session, run).await?;
    write::begin(session).await?;
    let mut dead = alive::dead_runs(session, run).await?;
    dead.extend(alive::strays(session).await?);
    take_over(session, member, &dead, now).await?;
    let followed = newest_posting(session).await?;
    alive::register(session, run, now, followed).await?;
    let standing = sums::standing(session, month_of(now)).await?;
    session.batch("COMMIT").await?;
    Ok((standing, followed))
}

/// Comes back after the connection was lost: learns what the accounts are now, and what others did. Where they took this
/// run for dead meanwhile they told it nothing, and what it missed is found by comparing: `is_behind` says so to the
/// next try where this one fails. Returns the news, and up to which posting they go.
pub(super) async fn come_back(
    session: &Session,
    member: &Member<'_>,
    (mirror, is_behind): (&mut Mirror, &mut bool),
    followed: i64,
    now: Timestamp,
) -> Result<(Vec<Posting>, i64), Fault> {
    let run = &*member.judge.run;
    alive::hold(session, run).await?;
    write::begin(session).await?;
    *is_behind |= !alive::is_registered(session, run).await?;
    let newest = newest_posting(session).await?;
    mirror.turn_to(month_of(now));
    let accounts = sums::standing(session, mirror.month).await?.accounts;
    let news = match *is_behind {
        true => missed(session, member, mirror, &accounts).await?,
        false => {
            mirror.see(&accounts);
            // A server that crashed may number its postings anew from an earlier one on.
            postings_of_others(session, run, followed.min(newest), newest).await?
        }
    };
    alive::register(session, run, now, newest).await?;
    session.batch("COMMIT").await?;
    Ok((news, newest))
}

/// What a run missed that was taken off the list.
async fn missed(
    session: &Session,
    member: &Member<'_>,
    mirror: &mut Mirror,
    accounts: &[Posting],
) -> Result<Vec<Posting>, Fault> {
    log::warn!(
        "ledger {}: another process took this one for dead",
        member.place
    );
    if let Some(doubt) = &mirror.doubt {
        let came_through = doubt.came_through(session, member.place).await?;
        mirror.resolve(came_through);
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM entry WHERE NOT open AND usage_source = 'unknown' AND owner = $1"
    );
    let crashed = session.client.query(&sql, &[&&*member.judge.run]).await?;
    let crashed = Group::of(&crashed, member.place);
    Ok(mirror.catch_up(accounts, &crashed.all()))
}

/// Writes next to nothing, as any write would be made.
pub(super) async fn probe(session: &Session, run: &str, followed: i64) -> Result<(), Fault> {
    write::begin(session).await?;
    alive::beat(session, run, followed).await?;
    session.batch("COMMIT").await
}

/// Takes a run off the list. What it leaves open is found crashed by the next one.
pub(super) async fn leave(session: &Session, run: &str) -> Result<(), Fault> {
    session
        .change("DELETE FROM owner WHERE run = $1", &[&run])
        .await?;
    Ok(())
}

/// Within a transaction: ends what dead runs left open, and takes the runs off the list.
async fn take_over(
    session: &Session,
    member: &Member<'_>,
    dead: &[String],
    now: Timestamp,
) -> Result<(), Fault> {
    for run in dead {
        crash_all(session, member, run, now).await?;
        leave(session, run).await?;
    }
    Ok(())
}

/// All others, this run too, hear of it as of the last thing that the dead one did.
async fn crash_all(
    session: &Session,
    member: &Member<'_>,
    run: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    let sql = format!("SELECT {COLUMNS} FROM entry WHERE open AND coalesce(owner, '') = $1");
    let rows = session.client.query(&sql, &[&run]).await?;
    let mut group = Group::of(&rows, member.place);
    group.replace_all(|old| unknown::crash(old, member.judge.policy, now));
    let crashed = Writing {
        entries: group.to_write(),
        change: &group.change,
        run,
    };
    if !crashed.entries.is_empty() {
        log::warn!(
            "ledger {}: a process ended with {} requests open; what they used is unknown until \
             `streamgate ledger reconcile`",
            member.place,
            crashed.entries.len()
        );
    }
    crashed.put(session).await
}

/// What others did to the accounts since the last time, and what became of those that died; up to which posting.
pub(super) async fn follow(
    session: &Session,
    member: &Member<'_>,
    suspects: &mut Suspects,
    followed: i64,
    now: Timestamp,
) -> Result<(Vec<Posting>, i64), Fault> {
    let run = &*member.judge.run;
    let dead = suspects.confirmed(alive::dead_runs(session, run).await?);
    if !dead.is_empty() {
        write::begin(session).await?;
        // Looked for again: one may have come back just now.
        let mut still = alive::dead_runs(session, run).await?;
        still.retain(|run| dead.contains(run));
        take_over(session, member, &still, now).await?;
        session.batch("COMMIT").await?;
    }
    let newest = newest_posting(session).await?.max(followed);
    let postings = postings_of_others(session, run, followed, newest).await?;
    Ok((postings, newest))
}

/// The newest posting there is. Those that all have read are gone.
async fn newest_posting(session: &Session) -> Result<i64, Fault> {
    let row = session
        .row("SELECT coalesce(max(key), 0) FROM posting", &[])
        .await?;
    column(&row, 0)
}

async fn postings_of_others(
    session: &Session,
    run: &str,
    after: i64,
    newest: i64,
) -> Result<Vec<Posting>, Fault> {
    let rows = session
        .rows(
            "SELECT tenant, hour, charged, held, reserved, open, unknown FROM posting \
             WHERE key > $1 AND key <= $2 AND run <> $3 ORDER BY key",
            &[&after, &newest, &run],
        )
        .await?;
    rows.iter().map(sums::posting).collect()
}

/// Notes that this run lives and how far it has read, and removes what all have read. A note that is lost with the
/// server is made again: it need not be on disk.
pub(super) async fn note(session: &Session, run: &str, followed: i64) -> Result<(), Fault> {
    session
        .batch("BEGIN; SET LOCAL synchronous_commit = off")
        .await?;
    alive::beat(session, run, followed).await?;
    session
        .change(
            "DELETE FROM posting WHERE key <= (SELECT min(followed) FROM owner)",
            &[],
        )
        .await?;
    session.batch("COMMIT").await
}

/// Removes some entries that ended before a moment, oldest first; those that run or await their bill stay. Whether
/// more may be left.
pub(super) async fn forget(session: &Session, before: Timestamp) -> Result<bool, Fault> {
    let old = session
        .row(
            "SELECT EXISTS (SELECT FROM entry WHERE NOT open AND usage_source <> 'unknown' \
             AND coalesce(ended_at, admitted_at) < $1)",
            &[&before.0],
        )
        .await?;
    if !column::<_, bool>(&old, 0)? {
        return Ok(false);
    }
    write::begin(session).await?;
    let gone = session
        .change(
            "DELETE FROM entry WHERE key = ANY(ARRAY(SELECT key FROM entry \
             WHERE NOT open AND usage_source <> 'unknown' AND coalesce(ended_at, admitted_at) < $1 \
             ORDER BY coalesce(ended_at, admitted_at) LIMIT $2))",
            &[&before.0, &FORGET_MAX],
        )
        .await?;
    session.batch("COMMIT").await?;
    Ok(i64::try_from(gone).is_ok_and(|gone| gone >= FORGET_MAX))
}
