//! What pools say of each other: their names, the models they share, the pools they fall back to.

use super::reader::{Reader, Table, Value};
use super::unique::Unique;
use super::values::text;
use super::{Model, Pool};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What the pools of a file claim, to be checked when all of them have been read.
pub(super) struct Claims<'r> {
    reader: &'r Reader<'r>,
    names: Unique<'r>,
    models: RefCell<Vec<Claim<'r>>>,
    fallbacks: RefCell<Vec<Claim<'r>>>,
    /// Pools that name no model, and where they stand.
    bare: RefCell<Vec<(String, usize)>>,
}

/// A model or another pool, named by a pool.
struct Claim<'r> {
    pool: String,
    name: String,
    value: Value<'r>,
}

impl<'r> Claims<'r> {
    pub fn new(reader: &'r Reader<'r>) -> Claims<'r> {
        Claims {
            reader,
            names: Unique::new(reader, "each pool has its own name"),
            models: RefCell::default(),
            fallbacks: RefCell::default(),
            bare: RefCell::default(),
        }
    }

    /// A pool's own name.
    pub fn pool(&self, v: &Value, name: &str) {
        self.names.claim(v, name);
    }

    /// The pool's models, each a name or a pair of names.
    pub fn models(&self, t: &Table<'r>, pool: &str) -> Vec<Model> {
        let models = t.value("models", |v| {
            v.list(|v| {
                let model = model(v)?;
                self.models
                    .borrow_mut()
                    .push(Claim::new(pool, &model.public, v));
                Some(model)
            })
        });
        if t.lacks("models") {
            self.bare.borrow_mut().push((pool.to_owned(), t.at()));
        }
        models.unwrap_or_default()
    }

    /// The names of the pools it falls back to.
    pub fn fallback(&self, t: &Table<'r>, pool: &str) -> Vec<String> {
        t.list("fallback", |v| {
            let name = text(v)?;
            self.fallbacks.borrow_mut().push(Claim::new(pool, &name, v));
            Some(name)
        })
    }

    /// Checks all claims against the pools.
    pub fn check(&self, pools: &[Pool]) {
        self.check_fallbacks(pools);
        if !self.reader.partial {
            self.check_models(pools);
        }
        for (pool, at) in self.bare.borrow().iter() {
            if !pools.iter().any(|p| falls_back(pools, &p.name, pool)) {
                let wanted =
                    "at least one model (only a pool that another one falls back to needs none)";
                let message = format!("pool.models is missing: give {wanted}");
                self.reader.missing(*at, message);
            }
        }
    }

    fn check_fallbacks(&self, pools: &[Pool]) {
        let mut seen: Vec<(&str, &str)> = Vec::new();
        let claims = self.fallbacks.borrow();
        for claim in claims.iter() {
            let pair = (claim.pool.as_str(), claim.name.as_str());
            if claim.name == claim.pool {
                claim
                    .value
                    .refuse_because("a pool cannot fall back to itself");
            } else if seen.contains(&pair) {
                claim.value.refuse_because("it stands twice in the list");
            } else if !self.reader.partial && !pools.iter().any(|p| p.name == claim.name) {
                claim.value.refuse_because("no pool has this name");
            }
            seen.push(pair);
        }
    }

    fn check_models(&self, pools: &[Pool]) {
        let claims = self.models.borrow();
        let mut first: BTreeMap<&str, &Claim> = BTreeMap::new();
        for claim in claims.iter() {
            let owner = *first.entry(claim.name.as_str()).or_insert(claim);
            if let Some(why) = self.conflict(pools, owner, claim) {
                claim.value.refuse_because(&why);
            }
        }
    }

    /// A model's requests go to the first pool that lists it. The pools that one falls back to may list it too, to map
    /// it to their own name.
    fn conflict(&self, pools: &[Pool], owner: &Claim, claim: &Claim) -> Option<String> {
        let (first, second) = (&owner.pool, &claim.pool);
        if owner.value.at == claim.value.at {
            return None;
        }
        if first == second {
            return Some("it stands twice in the list".to_owned());
        }
        if falls_back(pools, first, second) {
            return None;
        }
        let line = self.reader.lines.line(owner.value.at);
        let clash =
            format!("pool {first:?} (line {line}) takes this model's requests, not {second:?}");
        if falls_back(pools, second, first) {
            return Some(format!("{clash}: put {second:?} above {first:?}"));
        }
        Some(format!(
            "{clash}: give one of them another public name, or list {second:?} in the fallback of {first:?}"
        ))
    }
}

impl<'r> Claim<'r> {
    fn new(pool: &str, name: &str, value: &Value<'r>) -> Claim<'r> {
        Claim {
            pool: pool.to_owned(),
            name: name.to_owned(),
            value: value.clone(),
        }
    }
}

fn falls_back(pools: &[Pool], from: &str, to: &str) -> bool {
    let mut from = pools.iter().filter(|p| p.name == from);
    from.any(|p| p.fallback.iter().any(|f| f == to))
}

fn model(v: &Value) -> Option<Model> {
    if v.raw.is_table() {
        return v.table(|t| {
            let public = t.required("public", "the name that clients use", text);
            let upstream = t.required("upstream", "the name that the backends know", text);
            Some(Model {
                public: public?,
                upstream: upstream?,
            })
        })?;
    }
    let wanted = "a model's name, or { public = \"NAME\", upstream = \"NAME\" }";
    let name = v
        .text()
        .filter(|name| !name.is_empty() && !name.chars().any(char::is_control));
    v.wants(name, wanted).map(|name| Model {
        public: name.to_owned(),
        upstream: name.to_owned(),
    })
}
