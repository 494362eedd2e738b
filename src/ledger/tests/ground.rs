//! What the tests of stores stand on: each of them runs once on a SQLite file and once on a PostgreSQL database.

use super::database::{Database, Sql};
use super::{Scratch, config, until_so};
use crate::clock;
use crate::config::{self, LedgerStore, Secret};
use crate::ledger::owner;
use crate::ledger::postgres::{PostgresBooks, PostgresStore};
use crate::ledger::sqlite::{SqliteBooks, SqliteStore};
use crate::ledger::store::{Books, Standing, Store};
use crate::ledger::sums::{Amounts, Posting, Usage};
use rusqlite::Connection;
use rusqlite::types::Value;

/// A store as the ledger's thread holds it.
pub type Held = Box<dyn Store>;

/// An empty ledger.
pub enum Ground {
    Sqlite(Scratch),
    Postgres(Database),
}

/// Runs a test on every kind of ledger.
pub fn on_each(test: impl Fn(&Ground)) {
    println!("on SQLite");
    test(&Ground::Sqlite(Scratch::new()));
    println!("on PostgreSQL");
    test(&Ground::Postgres(Database::new()));
}

/// Runs a test that waits on every kind of ledger.
pub async fn on_each_awaited(test: impl AsyncFn(&Ground)) {
    println!("on SQLite");
    test(&Ground::Sqlite(Scratch::new())).await;
    println!("on PostgreSQL");
    test(&Ground::Postgres(Database::new())).await;
}

/// What a process hears of the others, once there is something to hear.
pub fn hears(store: &mut Held) -> Vec<Posting> {
    let mut heard = Vec::new();
    until_so("something to be heard", || {
        heard = store.follow(clock::now()).unwrap();
        !heard.is_empty()
    });
    heard
}

impl Ground {
    pub fn config(&self) -> config::Ledger {
        let store = match self {
            Ground::Sqlite(scratch) => LedgerStore::Sqlite(scratch.database()),
            Ground::Postgres(database) => LedgerStore::Postgres(Secret::new(database.url())),
        };
        config::Ledger {
            store,
            ..config("unused".as_ref())
        }
    }

    /// A piece of what the log calls the ledger.
    pub fn place(&self) -> &'static str {
        match self {
            Ground::Sqlite(_) => "ledger.db",
            Ground::Postgres(_) => "postgres://",
        }
    }

    /// A process that has opened the ledger.
    pub fn start(&self, config: &config::Ledger) -> Held {
        let run = owner::fresh_run();
        match &config.store {
            LedgerStore::Sqlite(file) => Box::new(SqliteStore::start(file, config, run).unwrap()),
            LedgerStore::Postgres(url) => Box::new(PostgresStore::start(url, config, run).unwrap()),
        }
    }

    /// A process that has joined the ledger.
    pub fn join_with(&self, config: &config::Ledger) -> (Held, Standing) {
        let mut store = self.start(config);
        let standing = store.recover(clock::now()).unwrap();
        (store, standing)
    }

    pub fn join(&self) -> (Held, Standing) {
        self.join_with(&self.config())
    }

    /// The first process of an empty ledger.
    pub fn fresh(&self) -> Held {
        let (store, standing) = self.join();
        assert_eq!(standing.accounts, []);
        store
    }

    /// `kill -9`: the system closes what the process held. Done when the others can know.
    pub fn kill(&self, store: Held) {
        let before = self.connections();
        drop(store);
        until_so("the connection of the dead to be gone", || {
            before == 0 || self.connections() < before
        });
    }

    fn connections(&self) -> usize {
        match self {
            Ground::Sqlite(_) => 0,
            Ground::Postgres(database) => database.connections(),
        }
    }

    /// Whether nobody has made a ledger here.
    pub fn is_empty(&self) -> bool {
        match self {
            Ground::Sqlite(scratch) => !scratch.database().exists(),
            Ground::Postgres(_) => {
                self.number("SELECT count(*) FROM pg_namespace WHERE nspname = 'streamgate'") == 0
            }
        }
    }

    /// Another process's lock on the whole ledger, held until it is dropped.
    pub fn lock(&self) -> Lock {
        match self {
            Ground::Sqlite(scratch) => {
                let db = Connection::open(scratch.database()).unwrap();
                db.execute_batch("BEGIN IMMEDIATE").unwrap();
                Lock::Sqlite(db)
            }
            Ground::Postgres(database) => {
                let session = database.session();
                session.rows("BEGIN; SELECT pg_advisory_xact_lock(1936157799)");
                Lock::Postgres(session)
            }
        }
    }

    /// From now on the database takes no entry of this id.
    pub fn forbid(&self, id: &str) {
        match self {
            Ground::Sqlite(scratch) => {
                let trigger = format!(
                    "CREATE TRIGGER no BEFORE INSERT ON entry WHEN new.request_id = '{id}' \
                     BEGIN SELECT raise(ABORT, 'no such ids here'); END"
                );
                let db = Connection::open(scratch.database()).unwrap();
                db.execute_batch(&trigger).unwrap();
            }
            Ground::Postgres(database) => database.forbid(id, "P0001"),
        }
    }

    /// Makes every process that runs look dead.
    pub fn lose_locks(&self) {
        match self {
            Ground::Sqlite(scratch) => {
                std::fs::remove_dir_all(owner::folder(&scratch.database())).unwrap();
            }
            Ground::Postgres(database) => {
                database.cut();
                until_so("the connections to be cut", || self.connections() == 0);
            }
        }
    }

    /// As the ledger's thread does after a failure.
    pub fn come_back(&self, store: &mut Held) {
        if store.probe(clock::now()).is_err() {
            store.reopen().unwrap();
            store.probe(clock::now()).unwrap();
        }
    }

    pub fn to_read(&self) -> Box<dyn Books> {
        match &self.config().store {
            LedgerStore::Sqlite(file) => Box::new(SqliteBooks::to_read(file).unwrap()),
            LedgerStore::Postgres(url) => Box::new(PostgresBooks::to_read(url).unwrap()),
        }
    }

    pub fn to_reconcile(&self) -> Box<dyn Books> {
        match &self.config().store {
            LedgerStore::Sqlite(file) => Box::new(SqliteBooks::to_reconcile(file).unwrap()),
            LedgerStore::Postgres(url) => Box::new(PostgresBooks::to_reconcile(url).unwrap()),
        }
    }

    /// What a statement answers, each column as text.
    pub fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        match self {
            Ground::Sqlite(scratch) => {
                let db = Connection::open(scratch.database()).unwrap();
                let mut statement = db.prepare(sql).unwrap();
                let count = statement.column_count();
                let rows = statement.query_map((), |row| (0..count).map(|i| row.get(i)).collect());
                let rows = rows.unwrap().map(Result::unwrap);
                rows.map(|row: Vec<Value>| row.iter().map(text).collect())
                    .collect()
            }
            Ground::Postgres(database) => database.rows(sql),
        }
    }

    /// The one number that a statement answers.
    pub fn number(&self, sql: &str) -> i64 {
        self.rows(sql)[0][0].parse().unwrap()
    }

    /// What all accounts come to.
    pub fn total(&self) -> Amounts {
        let sum = |column| self.number(&format!("SELECT coalesce(sum({column}), 0) FROM account"));
        Amounts {
            charged: sum("charged"),
            held: sum("held"),
            reserved: sum("reserved"),
            open: sum("open"),
            unknown: sum("unknown"),
        }
    }

    /// What all rows of the report come to.
    pub fn usage(&self) -> Usage {
        let rows = self.to_read().usage(None).unwrap();
        rows.into_iter()
            .fold(Usage::default(), |sum, (_, usage)| sum.plus(usage))
    }
}

#[expect(dead_code, reason = "what they hold ends with them")]
pub enum Lock {
    Sqlite(Connection),
    Postgres(Sql),
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(n) => n.to_string(),
        Value::Real(n) => n.to_string(),
        Value::Text(text) => text.clone(),
        Value::Blob(bytes) => format!("{bytes:?}"),
    }
}
