//! A group of writes, worked out in memory: what the entries it names become, write by write, and what that changes in
//! the sums.

use super::row;
use crate::clock::Timestamp;
use crate::ledger::entry::Entry;
use crate::ledger::error::LedgerError;
use crate::ledger::judge::Judge;
use crate::ledger::rules::Verdict;
use crate::ledger::store::{Applied, Write};
use crate::ledger::stored::Line;
use crate::ledger::sums::{Change, Life};
use crate::record::RequestId;
use crate::tenant::TenantName;
use std::collections::HashMap;
use tokio_postgres::Row;

type Key = (TenantName, RequestId);

/// What is known of the entries of some ids, and what is to be written.
#[derive(Default)]
pub(super) struct Group {
    entries: HashMap<Key, Slot>,
    /// Those that change, in the order in which they first do.
    changed: Vec<Key>,
    pub change: Change,
}

/// What an id's entry is. One that cannot be read is left as it is.
struct Slot {
    entry: Result<Entry, LedgerError>,
    is_changed: bool,
}

impl Group {
    /// Starts from the rows of all ids that will be named.
    pub fn of(rows: &[Row], place: &str) -> Group {
        let mut group = Group::default();
        group.learn(rows, place);
        group
    }

    /// Adds rows to what is known. What is known already stays.
    pub fn learn(&mut self, rows: &[Row], place: &str) {
        for row in rows {
            let Some(key) = key(row) else { continue };
            self.entries.entry(key).or_insert_with(|| {
                let entry = row::read(row).map(Line::entry_at_least);
                Slot {
                    entry: entry.map_err(|fault| fault.at(place)),
                    is_changed: false,
                }
            });
        }
    }

    /// Does what a write asks for.
    pub fn apply(&mut self, write: &Write, judge: &Judge, now: Timestamp) -> Applied {
        let (tenant, id) = write.names();
        let key = (tenant.clone(), id.clone());
        let old = match self.entries.get(&key).map(|slot| &slot.entry) {
            Some(Err(error)) => return Applied::Failed(error.clone()),
            Some(Ok(entry)) => Some(entry),
            None => None,
        };
        let (verdict, opened) = judge.judge(old, write, now);
        match verdict {
            Verdict::Keep => {}
            Verdict::Put(new, life) => self.put(key, *new, life),
            Verdict::Broken(why) => return Applied::Broken(why),
        }
        opened.map_or(Applied::Done, Applied::Opened)
    }

    /// The entries of an id, of all tenants or one.
    pub fn named(
        &self,
        id: &RequestId,
        tenant: Option<&TenantName>,
    ) -> Result<Vec<Entry>, LedgerError> {
        let wanted = |key: &Key| key.1 == *id && tenant.is_none_or(|t| key.0 == *t);
        let found = self.entries.iter().filter(|(key, _)| wanted(key));
        found.map(|(_, slot)| slot.entry.clone()).collect()
    }

    /// Every entry that can be read.
    pub fn all(&self) -> Vec<Entry> {
        let entry = |slot: &Slot| slot.entry.as_ref().ok().cloned();
        self.entries.values().filter_map(entry).collect()
    }

    /// Puts an entry in place of the one of its id.
    pub fn replace(&mut self, new: Entry) {
        let key = (new.record.tenant.clone(), new.record.request_id.clone());
        self.put(key, new, Life::Same);
    }

    /// Makes something else of every entry that can be read.
    pub fn replace_all(&mut self, new: impl Fn(&Entry) -> Entry) {
        let mut all = Vec::new();
        for slot in self.entries.values() {
            match &slot.entry {
                Ok(entry) => all.push(new(entry)),
                Err(error) => log::error!("{error}; it stays as it is"),
            }
        }
        all.into_iter().for_each(|entry| self.replace(entry));
    }

    fn put(&mut self, key: Key, new: Entry, life: Life) {
        let before = self.entries.get(&key);
        let old = before.and_then(|slot| slot.entry.as_ref().ok());
        self.change.replace(old, &new, life);
        if !before.is_some_and(|slot| slot.is_changed) {
            self.changed.push(key.clone());
        }
        let slot = Slot {
            entry: Ok(new),
            is_changed: true,
        };
        self.entries.insert(key, slot);
    }

    /// The entries that have changed.
    pub fn to_write(&self) -> Vec<&Entry> {
        let entry = |key| self.entries.get(key)?.entry.as_ref().ok();
        self.changed.iter().filter_map(entry).collect()
    }
}

/// Whose row it is. A row without a name of ours is nobody's.
fn key(row: &Row) -> Option<Key> {
    let tenant: &str = row.try_get("tenant").ok()?;
    let id: &str = row.try_get("request_id").ok()?;
    Some((TenantName::new(tenant), RequestId::parse(id)?))
}
