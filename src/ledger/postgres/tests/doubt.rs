//! A commit whose outcome is in doubt, because the connection is lost in the middle of it: it is found out, written once,
//! and not told to this run as another's doing.

use super::*;
use crate::budget::Units;
use crate::ledger::postgres::doubt::{Doubt, Sign};
use crate::ledger::store::{BillLine, Books as _};
use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The statement as it is sent, and the word of the answer.
const COMMIT: &[u8] = b"COMMIT\0";

/// Where the next commit is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    OnTheWayThere,
    OnTheWayBack,
}

/// How the commit is made that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    ByReading,
}

/// Every commit that may be lost.
const ALL: [(Lost, Way); 4] = [
    (Lost::OnTheWayThere, Way::Direct),
    (Lost::OnTheWayBack, Way::Direct),
    (Lost::OnTheWayThere, Way::ByReading),
    (Lost::OnTheWayBack, Way::ByReading),
];

/// A wire that ends at a commit.
struct Wire {
    addr: String,
    next: Arc<Mutex<Option<Fate>>>,
}

/// What befalls what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The next commit is lost.
    Lost(Lost),
    /// A word arrives as another one, once.
    Garbled(&'static [u8], &'static [u8]),
}

impl Wire {
    fn to(server: &str) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap().to_string();
        let (server, next) = (server.to_owned(), Arc::new(Mutex::new(None)));
        let armed = Arc::clone(&next);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                connect(&near, &TcpStream::connect(&server).unwrap(), &armed);
            }
        });
        Wire { addr, next }
    }

    fn lose(&self, next: Lost) {
        *self.next.lock().unwrap() = Some(Fate::Lost(next));
    }

    fn garble(&self, word: &'static [u8], other: &'static [u8]) {
        *self.next.lock().unwrap() = Some(Fate::Garbled(word, other));
    }
}

fn connect(near: &TcpStream, far: &TcpStream, next: &Arc<Mutex<Option<Fate>>>) {
    let ends = || (near.try_clone().unwrap(), far.try_clone().unwrap());
    let is_deaf = Arc::new(AtomicBool::new(false));
    let (next, deafen) = (Arc::clone(next), Arc::clone(&is_deaf));
    pass(ends(), move |bytes| {
        let at = |word: &[u8]| bytes.windows(word.len()).position(|w| w == word);
        let (commits, mut next) = (at(COMMIT).is_some(), next.lock().unwrap());
        if let Some(Fate::Garbled(word, other)) = *next
            && let Some(at) = at(word)
        {
            bytes[at..at + word.len()].copy_from_slice(other);
            *next = None;
        }
        let lost = next.take_if(|_| commits);
        deafen.fetch_or(
            lost == Some(Fate::Lost(Lost::OnTheWayBack)),
            Ordering::SeqCst,
        );
        lost != Some(Fate::Lost(Lost::OnTheWayThere))
    });
    let (near, far) = ends();
    let mut unheard = Vec::new();
    pass((far, near), move |bytes| {
        if !is_deaf.load(Ordering::SeqCst) {
            return true;
        }
        unheard.append(bytes);
        !unheard.windows(COMMIT.len()).any(|w| w == COMMIT)
    });
}

/// Passes on what `look` leaves, until it says no.
fn pass(
    (mut from, mut to): (TcpStream, TcpStream),
    mut look: impl FnMut(&mut Vec<u8>) -> bool + Send + 'static,
) {
    thread::spawn(move || {
        let mut piece = [0; 65536];
        loop {
            let read = from.read(&mut piece).unwrap_or(0);
            let mut bytes = piece[..read].to_vec();
            if read == 0 || !look(&mut bytes) || to.write_all(&bytes).is_err() {
                break;
            }
        }
        from.shutdown(Shutdown::Both).ok();
        to.shutdown(Shutdown::Both).ok();
    });
}

/// A run with an entry that is open, and the wire to its database.
fn wired(way: Way) -> (Database, Wire, PostgresStore) {
    let database = Database::new();
    let url = database.url();
    let server = url.split(['@', '/']).nth(3).unwrap();
    let wire = Wire::to(server);
    // What goes by is to be read.
    let url = url.replace(server, &wire.addr) + "?sslmode=disable";
    let mut store = start(&url).unwrap();
    open(&mut store, "r");
    if way == Way::ByReading {
        store.own.forget_all();
    }
    (database, wire, store)
}

fn charged(units: i64) -> Amounts {
    Amounts {
        charged: units,
        ..Amounts::NONE
    }
}

#[test]
fn a_commit_that_was_lost_is_made_once_whether_it_came_through_or_not() {
    for (lost, way) in ALL {
        let (database, wire, mut store) = wired(way);
        wire.lose(lost);
        let error = settle(&mut store, complete(&running("r"))).unwrap_err();
        assert_eq!(error.kind(), crate::ledger::error::Kind::Unreachable);
        store.reopen().unwrap();
        let came_through = lost == Lost::OnTheWayBack;
        assert_eq!(
            store.total().unwrap() == charged(40),
            came_through,
            "{lost:?} {way:?}"
        );
        settle(&mut store, complete(&running("r"))).unwrap();
        assert_eq!(store.follow(clock::now()), Ok(vec![]), "{lost:?} {way:?}");
        assert_eq!(store.total(), Ok(charged(40)), "{lost:?} {way:?}");
        let sums = database.rows("SELECT charged, open, reserved FROM account");
        assert_eq!(sums, [["40", "0", "0"]], "{lost:?} {way:?}");
    }
}

#[test]
fn a_run_that_others_took_for_dead_does_not_hear_of_its_own_lost_commit() {
    for (lost, way) in ALL {
        let (database, wire, mut store) = wired(way);
        wire.lose(lost);
        settle(&mut store, complete(&running("r"))).unwrap_err();
        until_gone(&database);
        let mut other = join(&database);
        settle(&mut other, complete(&running("theirs"))).unwrap();
        store.reopen().unwrap();
        let heard = store.follow(clock::now()).unwrap();
        assert_eq!(sum(&heard), charged(40), "{lost:?} {way:?}");
        settle(&mut store, complete(&running("r"))).unwrap();
        assert_eq!(store.follow(clock::now()), Ok(vec![]), "{lost:?} {way:?}");
        other.follow(clock::now()).unwrap();
        let totals = (store.total(), other.total());
        assert_eq!(
            totals,
            (Ok(charged(80)), Ok(charged(80))),
            "{lost:?} {way:?}"
        );
    }
}

#[test]
fn an_opening_that_was_lost_is_told_by_its_entry_even_where_that_was_billed_meanwhile() {
    for lost in [Lost::OnTheWayThere, Lost::OnTheWayBack] {
        let (database, wire, mut store) = wired(Way::Direct);
        wire.lose(lost);
        let again = || Write::Open(Box::new(opening("s")), 2);
        write(&mut store, again()).unwrap_err();
        until_gone(&database);
        let mut other = join(&database);
        let url = Secret::new(database.url());
        let bill = ["r", "s"].map(|name| BillLine {
            line: 1,
            tenant: None,
            id: id(name),
            units: Units(7),
        });
        let mut books = PostgresBooks::to_reconcile(&url).unwrap();
        books.reconcile(&bill, false).unwrap();
        store.reopen().unwrap();
        let heard = store.follow(clock::now()).unwrap();
        let entries = if lost == Lost::OnTheWayBack { 2 } else { 1 };
        let ended = Amounts {
            reserved: -100 * entries,
            open: -entries,
            ..charged(7 * entries)
        };
        assert_eq!(sum(&heard), ended, "{lost:?}");
        other.follow(clock::now()).unwrap();
        let totals = (store.total(), other.total());
        let all = (Ok(charged(7 * entries)), Ok(charged(7 * entries)));
        assert_eq!(totals, all, "{lost:?}");
        let applied = write(&mut store, again()).unwrap();
        let is_new = matches!(applied, Applied::Opened(Opened::New));
        assert_eq!(is_new, lost == Lost::OnTheWayThere, "{lost:?}: {applied:?}");
    }
}

#[test]
fn a_run_that_was_taken_for_dead_hears_nothing_of_an_opening_that_it_lost() {
    for lost in [Lost::OnTheWayThere, Lost::OnTheWayBack] {
        let (database, wire, mut store) = wired(Way::Direct);
        wire.lose(lost);
        write(&mut store, Write::Open(Box::new(opening("s")), 2)).unwrap_err();
        until_gone(&database);
        let mut other = join(&database);
        settle(&mut other, complete(&running("theirs"))).unwrap();
        store.reopen().unwrap();
        let heard = store.follow(clock::now()).unwrap();
        assert_eq!(sum(&heard), charged(40), "{lost:?}");
    }
}

#[test]
fn a_write_whose_transaction_did_not_begin_is_not_made() {
    let (database, wire, mut store) = wired(Way::Direct);
    wire.garble(b"BEGIN\0", b"BEGUN\0");
    let error = settle(&mut store, complete(&running("r"))).unwrap_err();
    assert_eq!(error.kind(), crate::ledger::error::Kind::Broken, "{error}");
    let still = database.rows("SELECT open FROM entry");
    assert_eq!(still, [["t"]]);
    let sums = database.rows("SELECT charged, open FROM account");
    assert_eq!(sums, [["0", "1"]]);
    assert!(matches!(
        settle(&mut store, complete(&running("r"))),
        Ok(Applied::Done)
    ));
}

#[test]
fn a_commit_that_a_crashed_server_has_forgotten_did_not_come_through() {
    let (database, mut store) = fresh();
    store.mirror.doubt = Some(Doubt {
        sign: Sign::Transaction(i64::MAX),
        postings: vec![],
    });
    cut(&database);
    database.rows("DELETE FROM owner");
    store.reopen().unwrap();
    assert_eq!(store.follow(clock::now()), Ok(vec![]));
}

#[test]
fn a_run_that_could_not_look_what_happened_meanwhile_looks_before_it_writes() {
    let (database, mut store) = fresh();
    cut(&database);
    database.rows("DELETE FROM owner");
    let busy = database.session();
    busy.rows("BEGIN; SELECT pg_advisory_xact_lock(1936157799)");
    let error = store.reopen().unwrap_err();
    assert!(error.is_locked() && !error.asks_for_reopening(), "{error}");
    let error = store.probe(clock::now()).unwrap_err();
    assert!(error.is_locked(), "{error}");
    busy.rows("COMMIT");
    store.probe(clock::now()).unwrap();
    let listed = database.rows("SELECT count(*) FROM owner");
    assert_eq!(listed, [["1"]]);
}
