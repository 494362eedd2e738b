//! Two runs that write alone and in groups, lose their connections, are taken for dead and come back: whatever the order,
//! the sums equal a recount of the entries, and each run knows them.

use super::*;
use crate::budget::Units;
use crate::ledger::queue::Abandon;
use crate::ledger::rules::Abandoned;
use crate::ledger::store::{BillLine, Books as _};
use crate::record::{RequestId, State};

struct Mingled {
    database: Database,
    runs: [PostgresStore; 2],
    /// What each run has open, as far as it knows, by opening.
    open: [Vec<(Record, i64)>; 2],
    openings: i64,
    dice: Dice,
}

impl Mingled {
    fn new(seed: u64) -> Mingled {
        let (database, first) = fresh();
        let second = join(&database);
        Mingled {
            runs: [first, second],
            database,
            open: Default::default(),
            openings: 0,
            dice: Dice(seed * 0x9e37_79b9),
        }
    }

    fn name(&mut self) -> RequestId {
        id(&format!("r{}", self.dice.roll(30)))
    }

    fn opening(&mut self) -> Write {
        let mut opening = opening(self.name().as_str());
        opening.record.admitted_at.0 += i64::try_from(self.dice.roll(9_000_000_000)).unwrap();
        opening.record.reserved_units = Units(50 + self.dice.roll(100));
        self.openings += 1;
        Write::Open(Box::new(opening), self.openings)
    }

    /// Something that befalls an entry which a run has open.
    fn turn(&mut self, who: usize) -> Option<Write> {
        let at = self.dice.pick(self.open[who].len());
        let (record, opening) = self.open[who].get(at)?.clone();
        let what = self.dice.roll(8);
        if what > 0 {
            self.open[who].swap_remove(at);
        }
        let charged = record.charged_units.0 + self.dice.roll(50);
        Some(match what {
            0 => Write::Checkpoint(Box::new(Record {
                state: State::Streaming,
                generated_units: Units(charged),
                ..record
            })),
            1 => Write::Abandon(Abandon {
                tenant: record.tenant,
                id: record.request_id,
                opening,
                why: Abandoned::Left,
            }),
            2..5 => settlement(failed(&record, charged), false),
            _ => settlement(complete(&record), true),
        })
    }

    fn writes(&mut self, who: usize) -> Vec<Write> {
        let count = [1, 1, 1, 2, 5][self.dice.pick(5)];
        let mut writes = Vec::new();
        for _ in 0..count {
            match self.dice.roll(2) {
                0 => writes.push(self.opening()),
                _ => writes.extend(self.turn(who)),
            }
        }
        writes
    }

    fn commit(&mut self, who: usize) {
        let writes = self.writes(who);
        let committed = self.runs[who].commit(&writes, clock::now()).unwrap();
        for (applied, write) in committed.applied.into_iter().zip(writes) {
            let (Applied::Opened(opened), Write::Open(opening, number)) = (applied, write) else {
                continue;
            };
            let charged_units = match opened {
                Opened::New => Units(0),
                Opened::Reopened(before) => before.charged_units,
                Opened::Conflict(_) => continue,
            };
            let record = Record {
                charged_units,
                ..opening.record
            };
            self.open[who].push((record, number));
        }
    }

    fn bill(&mut self) {
        let lines: Vec<BillLine> = (1..4)
            .map(|line| BillLine {
                line,
                tenant: None,
                id: self.name(),
                units: Units(self.dice.roll(200)),
            })
            .collect();
        let url = Secret::new(self.database.url());
        let mut books = PostgresBooks::to_reconcile(&url).unwrap();
        books.reconcile(&lines, false).unwrap();
    }

    /// The other one takes over what a run has open, though it lives.
    fn take_for_dead(&mut self, who: usize) {
        ask(&mut self.runs[who], "SELECT pg_advisory_unlock_all()::text");
        drop(join(&self.database));
    }

    fn step(&mut self) {
        let who = self.dice.pick(2);
        match self.dice.roll(30) {
            0 => self.bill(),
            1 => self.take_for_dead(who),
            2 => {
                cut(&self.database);
                self.runs[who].reopen().unwrap();
                self.runs[1 - who].reopen().unwrap();
            }
            3 => drop(self.runs[who].follow(clock::now()).unwrap()),
            _ => self.commit(who),
        }
    }

    fn check(&mut self, at: (u64, u64)) {
        for who in [0, 1, 0] {
            self.runs[who].follow(clock::now()).unwrap();
        }
        let accounts = "SELECT tenant, hour, charged, held, reserved, open, unknown FROM account \
             WHERE (charged, held, reserved, open, unknown) <> (0, 0, 0, 0, 0)";
        let sums =
            "SELECT sum(charged), sum(held), sum(reserved), sum(open), sum(unknown) FROM account";
        let recount = "SELECT sum(charged_units), sum(held_units), coalesce(sum(reserved_units) FILTER (WHERE open), 0), \
             count(*) FILTER (WHERE open), count(*) FILTER (WHERE NOT open AND usage_source = 'unknown') FROM entry";
        let rows = |sql: &str| self.database.rows(sql);
        assert_eq!(
            rows(sums),
            rows(recount),
            "seed and step {at:?}: {:?}",
            rows(accounts)
        );
        let usage = "SELECT coalesce(sum(requests), 0), coalesce(sum(failed), 0), coalesce(sum(generated_units), 0), \
             coalesce(sum(charged_units), 0) FROM usage";
        let recount = "SELECT count(*) FILTER (WHERE NOT open), count(*) FILTER (WHERE state = 'FAILED'), \
             coalesce(sum(generated_units) FILTER (WHERE NOT open), 0), sum(charged_units) FROM entry";
        assert_eq!(rows(usage), rows(recount), "seed and step {at:?}");
        let total = rows(sums)[0].join(" ");
        for run in &mut self.runs {
            let a = run.total().unwrap();
            let known = format!(
                "{} {} {} {} {}",
                a.charged, a.held, a.reserved, a.open, a.unknown
            );
            assert_eq!(known, total, "seed and step {at:?}");
        }
    }
}

#[test]
fn runs_that_write_alone_and_in_groups_and_are_taken_for_dead_keep_the_sums_right() {
    for seed in 1..=4 {
        let mut mingled = Mingled::new(seed);
        mingled.commit(0);
        for step in 0..200 {
            mingled.step();
            if step % 20 == 19 {
                mingled.check((seed, step));
            }
        }
    }
}
