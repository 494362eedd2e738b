//! A bill as JSONL: an object a line.

use super::{Cells, Written, place};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::fmt;

pub(super) fn lines(text: &str) -> Written {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(at, line)| (at + 1, cells(line))).collect()
}

fn cells(line: &str) -> Result<Cells, String> {
    let members: Members<'_> = serde_json::from_str(line).map_err(|e| {
        let why = e.to_string().replace(" at line 1 column ", " at column ");
        format!("not one whole JSON object, which JSONL has in each line: {why}")
    })?;
    Ok(Cells {
        id: members.value("request_id")?,
        units: members.value("units")?,
        tenant: members.value("tenant")?,
    })
}

/// The members of an object as they stand, also where a name stands twice.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl Members<'_> {
    /// A text, or a number as it is written.
    fn value(&self, wanted: &str) -> Result<String, String> {
        let names = self.0.iter().map(|(name, _)| name.as_str());
        let found = place(names, wanted).map_err(|why| format!("the member {wanted} {why}"))?;
        let Some((_, value)) = found.and_then(|at| self.0.get(at)) else {
            return Ok(String::new());
        };
        let text = value.get();
        match text.as_bytes().first() {
            Some(b'n') => Ok(String::new()),
            Some(b'-' | b'0'..=b'9') => Ok(text.to_owned()),
            Some(b'"') => serde_json::from_str(text).map_err(|e| format!("{wanted}: {e}")),
            _ => Err(format!("{wanted} is {text}, neither a text nor a number")),
        }
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = object.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
