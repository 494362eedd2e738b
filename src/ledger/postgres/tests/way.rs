//! The way to a server: encryption, passwords, servers that are not there, hang, or hold something else.

use super::*;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

/// The server's certificate, which is its own authority.
fn certificate() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/support/tls/server.pem")
}

/// Whether the connection of a store is encrypted.
fn is_encrypted(store: &mut PostgresStore) -> bool {
    let ssl = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    ask(store, ssl) == "true"
}

#[test]
fn a_connection_is_encrypted_as_the_url_says() {
    let database = Database::new();
    for (query, encrypted) in [
        ("", true),
        ("?sslmode=disable", false),
        ("?sslmode=require", true),
    ] {
        let mut store = start(&format!("{}{query}", database.url())).unwrap();
        assert_eq!(is_encrypted(&mut store), encrypted, "{query:?}");
    }
}

#[test]
fn a_certificate_is_looked_at_as_the_url_says() {
    let database = Database::new();
    let numbered = database.url();
    let named = numbered.replace("127.0.0.1", "localhost");
    let root = format!("sslrootcert={}", certificate().display());
    for (url, query, trusted) in [
        (&named, format!("sslmode=verify-full&{root}"), true),
        (&numbered, format!("sslmode=verify-full&{root}"), false),
        (&numbered, format!("sslmode=verify-ca&{root}"), true),
        (&numbered, format!("sslmode=require&{root}"), true),
        (&named, "sslmode=verify-full".to_owned(), false),
        (&named, "sslmode=verify-ca".to_owned(), false),
    ] {
        match start(&format!("{url}?{query}")) {
            Ok(mut store) => assert!(trusted && is_encrypted(&mut store), "{url} {query}"),
            Err(e) => assert!(
                !trusted && e.to_string().contains("cert"),
                "{url} {query}: {e}"
            ),
        }
    }
    let nowhere = format!("{named}?sslmode=verify-full&sslrootcert=/nowhere/ca.pem");
    let error = start(&nowhere).err().unwrap().to_string();
    assert!(error.contains("sslrootcert /nowhere/ca.pem"), "{error}");
}

#[test]
fn who_is_refused_is_told_why_and_no_password_is_shown() {
    let database = Database::new();
    let guarded = |password: &str| {
        let user = format!("guarded:{password}@");
        database.url().replace("streamgate@", &user)
    };
    let error = start(&guarded("hunter2")).err().unwrap().to_string();
    assert!(
        error.contains("password authentication failed") && error.contains("check the user"),
        "{error}"
    );
    assert!(!error.contains("hunter2"), "{error}");
    let error = start(&guarded("secret")).err().unwrap().to_string();
    assert!(error.contains("permission denied"), "{error}");
    database.rows(&format!(
        "GRANT CREATE ON DATABASE {} TO guarded",
        database.name()
    ));
    start(&guarded("secret")).unwrap();
}

#[test]
fn a_server_or_database_that_is_not_there_is_one_clear_line() {
    let database = Database::new();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    for (url, why) in [
        (
            format!("postgres://u:hunter2@127.0.0.1:{port}/l"),
            "cannot connect: Connection refused",
        ),
        (database.url() + "_gone", "does not exist"),
    ] {
        let error = start(&url).err().unwrap().to_string();
        assert!(
            error.contains(why) && error.contains("127.0.0.1"),
            "{error}"
        );
        assert!(
            !error.contains('\n') && !error.contains("hunter2"),
            "{error}"
        );
    }
}

#[test]
fn a_server_that_accepts_and_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://u@{}/l", listener.local_addr().unwrap());
    let settings = settings::Settings {
        connect_limit: Duration::from_millis(100),
        ..settings::reading()
    };
    let address = Address::parse(&url).unwrap();
    let error = Link::open(address, settings).err().unwrap();
    assert!(
        error.asks_for_reopening() && error.to_string().contains("did not answer within 100ms"),
        "{error}"
    );
}

#[test]
fn a_server_that_stops_answering_is_given_up_and_comes_back() {
    let (_database, mut store) = fresh();
    let limit = Duration::from_millis(100);
    let usual = settings::running(Durability::Process);
    let hasty = settings::Settings {
        answer_limit: limit,
        ..usual
    };
    store.link.retune(hasty).unwrap();
    let slept = store
        .link
        .run(async |session| session.batch("SELECT pg_sleep(30)").await);
    assert!(slept.unwrap_err().to_string().contains("did not answer"));
    let error = store.find(&acme(), &id("r")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("connection to its server is lost")
    );
    store.reopen().unwrap();
    assert_eq!(store.find(&acme(), &id("r")), Ok(None));
}

#[test]
fn a_database_that_holds_no_ledger_of_ours_is_refused_and_left_as_it_is() {
    let database = Database::new();
    database.rows("CREATE SCHEMA streamgate; CREATE TABLE streamgate.t (a bigint)");
    let error = start(&database.url()).err().unwrap().to_string();
    assert!(error.contains("belongs to another program"), "{error}");
    let tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'streamgate'";
    assert_eq!(database.rows(tables), [["1"]]);

    let (newer, store) = fresh();
    drop(store);
    newer.rows("UPDATE version SET version = 99");
    let error = start(&newer.url()).err().unwrap().to_string();
    assert!(
        error.contains("its schema is 99, this build knows up to 1"),
        "{error}"
    );
    let url = Secret::new(newer.url());
    let error = PostgresBooks::to_read(&url).err().unwrap().to_string();
    assert!(error.contains("its schema is 99"), "{error}");
}

#[test]
fn a_schema_that_was_made_beforehand_is_taken() {
    let database = Database::new();
    database.rows("CREATE SCHEMA streamgate AUTHORIZATION guarded");
    let url = database.url().replace("streamgate@", "guarded:secret@");
    let mut store = start(&url).unwrap();
    open(&mut store, "r");
}

#[test]
fn processes_that_start_at_once_on_an_empty_database_all_succeed() {
    for _ in 0..5 {
        let database = Database::new();
        std::thread::scope(|scope| {
            let starts: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| start(&database.url()).map(drop)))
                .collect();
            for start in starts {
                assert_eq!(start.join().unwrap(), Ok(()));
            }
        });
    }
}
