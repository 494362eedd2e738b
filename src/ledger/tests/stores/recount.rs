//! Whatever happens, and however often the process dies: the sums equal a recount of the entries.

use super::*;
use crate::config::OnUnknown;

/// Two processes on one file, and what each of them has open.
struct Play<'a> {
    ground: &'a Ground,
    stores: Vec<Held>,
    views: Vec<Amounts>,
    running: Vec<Vec<Record>>,
    dice: Dice,
    openings: i64,
    clock: i64,
}

impl Play<'_> {
    fn new(ground: &Ground, seed: u64) -> Play<'_> {
        let mut play = Play {
            stores: Vec::new(),
            views: Vec::new(),
            running: vec![Vec::new(), Vec::new()],
            dice: Dice(seed),
            openings: 0,
            clock: ADMITTED.0,
            ground,
        };
        for _ in 0..2 {
            let (store, view) = play.joined();
            play.stores.push(store);
            play.views.push(view);
        }
        play
    }

    fn joined(&mut self) -> (Held, Amounts) {
        let policies = [
            OnUnknown::Hold,
            OnUnknown::ChargeReserved,
            OnUnknown::ChargeCounted,
        ];
        let on_unknown = policies[self.dice.pick(3)];
        let config = config::Ledger {
            on_unknown,
            ..self.ground.config()
        };
        let (store, standing) = self.ground.join_with(&config);
        (store, standing.total)
    }

    fn write(&mut self, who: usize, write: Write) -> Applied {
        let mut committed = self.stores[who].commit(&[write], clock::now()).unwrap();
        for posting in committed.postings {
            self.views[who] = self.views[who].plus(posting.amounts);
        }
        committed.applied.remove(0)
    }

    /// Settles a life of an id that was charged so much `earlier`.
    fn put(&mut self, who: usize, earlier: Units, record: Record, shown: bool) -> Applied {
        let end = End {
            charge: record.charged_units.minus(earlier),
            shown,
            ..ended(record)
        };
        self.write(who, Write::Settle(Arc::new(end)))
    }

    fn follow(&mut self, who: usize) {
        for posting in self.stores[who].follow(clock::now()).unwrap() {
            self.views[who] = self.views[who].plus(posting.amounts);
        }
    }

    fn step(&mut self) {
        self.clock += i64::try_from(self.dice.roll(1_200_000_000)).unwrap();
        let who = self.dice.pick(2);
        match self.dice.roll(20) {
            0..8 => self.open(who),
            8..14 => self.settle(who),
            14 => self.checkpoint(who),
            15 => self.settle_twice(who),
            16 => self.bill(),
            17 => self.follow(who),
            18 => self.serve_without_entry(who),
            _ => self.die(who),
        }
    }

    fn name(&mut self) -> String {
        format!("r{}", self.dice.roll(40))
    }

    fn open(&mut self, who: usize) {
        let name = self.name();
        let mut opening = opening(&name);
        opening.record.admitted_at = Timestamp(self.clock);
        opening.record.reserved_units = Units(50 + self.dice.roll(100));
        opening.record.model = format!("m{}", self.dice.roll(2));
        self.openings += 1;
        let number = self.openings;
        let Applied::Opened(opened) =
            self.write(who, Write::Open(Box::new(opening.clone()), number))
        else {
            panic!("an opening gives an answer");
        };
        match opened {
            Opened::New => self.running[who].push(opening.record),
            Opened::Reopened(before) => {
                let charged_units = before.charged_units;
                self.running[who].push(Record {
                    charged_units,
                    ..opening.record
                });
            }
            Opened::Conflict(_) => {}
        }
    }

    fn some_running(&mut self, who: usize) -> Option<Record> {
        let count = self.running[who].len();
        let at = self.dice.pick(count);
        (count > 0).then(|| self.running[who].swap_remove(at))
    }

    fn settle(&mut self, who: usize) {
        let Some(record) = self.some_running(who) else {
            return;
        };
        let earlier = record.charged_units;
        let (record, shown) = match self.dice.roll(4) {
            0 => (failed(&record, record.charged_units.0), false),
            1 => (failed(&record, record.charged_units.0 + 11), false),
            2 => (
                Record {
                    usage_source: UsageSource::Unknown,
                    ..failed(&record, record.charged_units.0 + 5)
                },
                true,
            ),
            _ => (complete(&record), true),
        };
        let applied = self.put(who, earlier, record, shown);
        assert!(matches!(applied, Applied::Done));
    }

    fn settle_twice(&mut self, who: usize) {
        let Some(record) = self.some_running(who) else {
            return;
        };
        let earlier = record.charged_units;
        let done = complete(&record);
        self.put(who, earlier, done.clone(), true);
        let more = Record {
            charged_units: Units(9999),
            ..done
        };
        let applied = self.put(1 - who, earlier, more, true);
        assert!(matches!(applied, Applied::Broken(_)));
    }

    fn checkpoint(&mut self, who: usize) {
        let Some(mut record) = self.some_running(who) else {
            return;
        };
        record.generated_units = Units(self.dice.roll(50));
        self.write(who, Write::Checkpoint(Box::new(record.clone())));
        self.running[who].push(record);
    }

    fn serve_without_entry(&mut self, who: usize) {
        let mut record = complete(&running(&self.name()));
        record.admitted_at = Timestamp(self.clock);
        self.put(who, Units::ZERO, record, true);
    }

    fn bill(&mut self) {
        let bill: Vec<BillLine> = (0..5)
            .map(|line| BillLine {
                line,
                tenant: None,
                id: id(&self.name()),
                units: Units(self.dice.roll(200)),
            })
            .collect();
        self.ground.to_reconcile().reconcile(&bill, false).unwrap();
    }

    fn die(&mut self, who: usize) {
        self.ground.kill(self.stores.remove(who));
        self.running[who].clear();
        let (store, view) = self.joined();
        self.stores.insert(who, store);
        self.views[who] = view;
    }

    /// What each process knows of the accounts, from its start, its own writes and what it heard, is what they are.
    fn check_views(&mut self, seed: u64) {
        for who in [0, 1, 0] {
            self.follow(who);
        }
        let total = self.ground.total();
        assert_eq!(self.views, [total, total], "seed {seed}");
    }

    fn check(&mut self, seed: u64) {
        self.check_views(seed);
        let rows = |sql: &str| self.ground.rows(sql);
        let accounts = rows(
            "SELECT coalesce(sum(charged), 0), coalesce(sum(held), 0), coalesce(sum(reserved), 0), \
             coalesce(sum(open), 0), coalesce(sum(unknown), 0) FROM account",
        );
        let entries = rows(
            "SELECT coalesce(sum(charged_units), 0), coalesce(sum(held_units), 0), \
             coalesce(sum(CASE WHEN open THEN reserved_units ELSE 0 END), 0), count(CASE WHEN open THEN 1 END), \
             count(CASE WHEN NOT open AND usage_source = 'unknown' THEN 1 END) FROM entry",
        );
        assert_eq!(
            accounts, entries,
            "seed {seed}: accounts and entries differ"
        );
        let usage = rows(
            "SELECT day, model, requests, failed, unknown, generated_units, charged_units FROM usage \
             WHERE requests <> 0 OR charged_units <> 0 ORDER BY 1, 2",
        );
        let recount = rows(
            "SELECT admitted_at / 86400000000, model, count(CASE WHEN NOT open THEN 1 END), \
             count(CASE WHEN state = 'FAILED' THEN 1 END), \
             count(CASE WHEN NOT open AND usage_source = 'unknown' THEN 1 END), \
             sum(CASE WHEN open THEN 0 ELSE generated_units END), sum(charged_units) FROM entry \
             GROUP BY 1, 2 HAVING count(CASE WHEN NOT open THEN 1 END) > 0 OR sum(charged_units) > 0 ORDER BY 1, 2",
        );
        assert_eq!(
            usage, recount,
            "seed {seed}: the report and the entries differ"
        );
        let astray = self.ground.number(
            "SELECT count(*) FROM account WHERE held < 0 OR reserved < 0 OR open < 0 OR unknown < 0",
        );
        assert_eq!(astray, 0, "seed {seed}: an hour has less than nothing");
    }
}

#[test]
fn sums_equal_a_recount_through_crashes_bills_and_reopened_ids() {
    for seed in 1..=6 {
        on_each(|ground| {
            let mut play = Play::new(ground, seed * 0x9e37_79b9);
            for step in 0..150 {
                play.step();
                if step % 10 == 0 {
                    play.check(seed);
                }
            }
            play.check(seed);
        });
    }
}
