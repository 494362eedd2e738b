//! Large ledgers, made by SQL: entries of ninety days, fifty tenants and four models, one in a hundred cancelled or
//! failed, some that await their bill, and the first hundred open, of a process that is dead. The sums are those of the
//! entries.

use crate::bounds::Bounds;
use crate::sample;
use crate::support::database::Database;
use std::path::Path;

/// Entries written by one statement.
const STEP: u64 = 250_000;
/// Entries that the dead process left open.
const OPEN: u64 = 100;

/// How the two databases spell what differs.
struct Words {
    /// The numbers from `$FROM` to `$TO`, as `n.i`.
    numbers: &'static str,
    id: &'static str,
    yes: &'static str,
    no: &'static str,
    blob: &'static str,
}

const SQLITE: Words = Words {
    numbers: "(WITH RECURSIVE c(i) AS (SELECT $FROM UNION ALL SELECT i + 1 FROM c WHERE i < $TO) SELECT i FROM c) AS n",
    id: "printf('%08x-%04x-7000-8000-%012x', 1700000 + n.i / 65536, n.i % 65536, n.i)",
    yes: "1",
    no: "0",
    blob: "zeroblob(32)",
};

const POSTGRES: Words = Words {
    numbers: "(SELECT generate_series($FROM::bigint, $TO::bigint) AS i) AS n",
    id: "lpad(to_hex(1700000 + n.i / 65536), 8, '0') || '-' || lpad(to_hex(n.i % 65536), 4, '0') || '-7000-8000-' \
         || lpad(to_hex(n.i), 12, '0')",
    yes: "true",
    no: "false",
    blob: "decode(repeat('00', 32), 'hex')",
};

/// Fills a ledger that has its tables, as far as the bounds allow. How many entries it has then.
pub fn sqlite(file: &Path, entries: u64, bounds: &Bounds<'_>) -> u64 {
    let db = rusqlite::Connection::open(file).unwrap();
    db.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144")
        .unwrap();
    let done = fill(&SQLITE, entries, bounds, |sql| {
        db.execute_batch(sql)
            .unwrap_or_else(|e| panic!("{e}: {sql}"));
    });
    db.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    done
}

pub fn postgres(database: &Database, entries: u64, bounds: &Bounds<'_>) -> u64 {
    database.rows("SET synchronous_commit = off");
    let done = fill(&POSTGRES, entries, bounds, |sql| drop(database.rows(sql)));
    database.rows("ANALYZE");
    done
}

fn fill(words: &Words, entries: u64, bounds: &Bounds<'_>, execute: impl Fn(&str)) -> u64 {
    let mut done = 0;
    while done < entries && bounds.allow_more(done) {
        let to = (done + STEP).min(entries);
        execute(&insert(words, done + 1, to));
        done = to;
    }
    SUMS.iter().for_each(|sql| execute(sql));
    done
}

const SUMS: [&str; 2] = [
    "INSERT INTO account SELECT tenant, admitted_at / 3600000000, sum(charged_units), sum(held_units), \
     sum(CASE WHEN open THEN reserved_units ELSE 0 END), sum(CASE WHEN open THEN 1 ELSE 0 END), \
     sum(CASE WHEN NOT open AND usage_source = 'unknown' THEN 1 ELSE 0 END) FROM entry GROUP BY 1, 2",
    "INSERT INTO usage SELECT admitted_at / 86400000000, tenant, model, count(*), \
     sum(CASE WHEN state = 'COMPLETED' THEN 1 ELSE 0 END), sum(CASE WHEN state = 'CANCELLED' THEN 1 ELSE 0 END), \
     sum(CASE WHEN state = 'FAILED' THEN 1 ELSE 0 END), \
     sum(CASE WHEN usage_source = 'unknown' THEN 1 ELSE 0 END), sum(input_units), sum(generated_units), \
     sum(delivered_units), sum(charged_units) FROM entry WHERE NOT open GROUP BY 1, 2, 3",
];

/// Entries by their numbers.
fn insert(words: &Words, from: u64, to: u64) -> String {
    let Words {
        id, yes, no, blob, ..
    } = words;
    let numbers = words
        .numbers
        .replace("$FROM", &from.to_string())
        .replace("$TO", &to.to_string());
    let record = sample::ended(sample::opening()).record;
    let record = serde_json::to_string(&record)
        .unwrap()
        .replace(record.request_id.as_str(), "@ID")
        .replace("acme", "@TENANT");
    let tenant = "'t' || (n.i % 50)";
    let state = "CASE WHEN n.i % 200 = 7 THEN 'CANCELLED' WHEN n.i % 200 = 9 THEN 'FAILED' ELSE 'COMPLETED' END";
    let admitted = "1700000000000000 + n.i * (7776000000000 / 10000000)";
    format!(
        "INSERT INTO entry (tenant, request_id, fingerprint, shown, owner, opening, open, state, ended_by, \
         usage_source, api, model, pool, admitted_at, ended_at, reserved_units, input_units, generated_units, \
         delivered_units, charged_units, earlier_units, held_units, record) \
         SELECT {tenant}, {id}, {blob}, {yes}, CASE WHEN n.i <= {OPEN} THEN 'dead' END, 1, \
         CASE WHEN n.i <= {OPEN} THEN {yes} ELSE {no} END, \
         CASE WHEN n.i <= {OPEN} THEN 'STREAMING' ELSE {state} END, \
         CASE WHEN n.i <= {OPEN} THEN NULL ELSE 'upstream' END, \
         CASE WHEN n.i % 20000 = 11 THEN 'unknown' ELSE 'upstream' END, 'chat', 'model-' || (n.i % 4), 'llama', \
         {admitted}, CASE WHEN n.i <= {OPEN} THEN NULL ELSE {admitted} + 3000000 END, 1128, 128, 300, 300, \
         CASE WHEN n.i <= {OPEN} THEN 0 ELSE 428 END, 0, 0, \
         replace(replace('{record}', '@ID', {id}), '@TENANT', {tenant}) FROM {numbers}"
    )
}
