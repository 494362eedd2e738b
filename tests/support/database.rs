//! A PostgreSQL database of a test's own, on the tests' server.
#![allow(dead_code, reason = "no test uses everything")]

use std::process::Command;
use std::sync::{LazyLock, Mutex};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

/// Names the server, as `tests/postgres.sh start` prints it. Without it the script is asked.
const VARIABLE: &str = "STREAMGATE_TEST_POSTGRES";

static SERVER: LazyLock<String> = LazyLock::new(|| {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests read the environment themselves"
    )]
    let named = std::env::var(VARIABLE).ok();
    named.unwrap_or_else(started)
});

fn started() -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/postgres.sh");
    let ran = Command::new("bash").args([script, "start"]).output();
    let ran = ran.unwrap_or_else(|e| panic!("bash {script} start: {e}"));
    let url = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    assert!(
        ran.status.success() && !url.is_empty(),
        "these tests need PostgreSQL and `bash {script} start` could not bring it; name a server in {VARIABLE}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    url
}

/// Does something on a thread without a runtime, so that it may block in a test that has one.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// A database, dropped at the end.
pub struct Database {
    name: String,
    session: Box<Mutex<Sql>>,
}

impl Database {
    pub fn new() -> Database {
        let name = format!("t_{}", uuid::Uuid::now_v7().simple());
        Sql::on(&SERVER).rows(&format!("CREATE DATABASE {name}"));
        let session = Sql::on(&url_of(&name));
        session.rows("SET search_path = streamgate");
        Database {
            name,
            session: Box::new(Mutex::new(session)),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn url(&self) -> String {
        url_of(&self.name)
    }

    /// What a statement answers, each column as text.
    pub fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        self.session.lock().unwrap().rows(sql)
    }

    pub fn session(&self) -> Sql {
        Sql::on(&self.url())
    }

    /// Ends the connections of ledgers, as a network that fails does.
    pub fn cut(&self) {
        self.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = 'streamgate'",
        );
    }

    /// How many connections ledgers have.
    pub fn connections(&self) -> usize {
        self.rows(
            "SELECT pid FROM pg_stat_activity \
             WHERE datname = current_database() AND application_name = 'streamgate'",
        )
        .len()
    }

    /// From now on the database answers an entry of this id with an error.
    pub fn forbid(&self, id: &str, sqlstate: &str) {
        self.rows(&format!(
            "CREATE OR REPLACE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF new.request_id = '{id}' THEN \
             RAISE EXCEPTION 'no such ids here' USING ERRCODE = '{sqlstate}'; END IF; RETURN new; END $$; \
             CREATE OR REPLACE TRIGGER no BEFORE INSERT OR UPDATE ON entry FOR EACH ROW EXECUTE FUNCTION no()"
        ));
    }

    /// Whether ledgers may connect.
    pub fn admit(&self, admitted: bool) {
        Sql::on(&SERVER).rows(&format!(
            "ALTER DATABASE {} ALLOW_CONNECTIONS {admitted}",
            self.name
        ));
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        Sql::on(&SERVER).rows(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// The server's URL with another database.
fn url_of(name: &str) -> String {
    let (server, _) = SERVER.rsplit_once('/').expect("a URL with a database");
    format!("{server}/{name}")
}

/// A session of a test's own.
pub struct Sql {
    runtime: Option<Runtime>,
    client: Client,
}

impl Sql {
    fn on(url: &str) -> Sql {
        apart(|| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let connected = runtime.block_on(tokio_postgres::connect(url, NoTls));
            let (client, connection) = connected.unwrap_or_else(|e| {
                panic!("the tests' server does not answer; `bash tests/postgres.sh start` starts one: {e}")
            });
            runtime.spawn(connection);
            Sql {
                runtime: Some(runtime),
                client,
            }
        })
    }

    pub fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let runtime = self.runtime.as_ref().unwrap();
        let answer = apart(|| runtime.block_on(self.client.simple_query(sql)));
        let answer = answer.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
        let row = |message| {
            let SimpleQueryMessage::Row(row) = message else {
                return None;
            };
            let column = |i| row.get(i).unwrap_or_default().to_owned();
            Some((0..row.len()).map(column).collect())
        };
        answer.into_iter().filter_map(row).collect()
    }
}

impl Drop for Sql {
    fn drop(&mut self) {
        let runtime = self.runtime.take();
        apart(|| drop(runtime));
    }
}
