//! Event patterns, compiled once per answer so that an event costs a few copies. Pure.

/// A pattern whose fixed values are filled in. What changes from event to event is filled in by `render`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Bytes(Vec<u8>),
    Text,
    Made,
    Total,
    Sequence,
}

/// What changes from event to event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step {
    /// Tokens of the prompt.
    pub prompt: u64,
    /// Tokens made so far, the one of this event included.
    pub made: u32,
    /// Events before this one.
    pub sequence: u64,
    /// Bytes added to the text.
    pub padding: usize,
}

impl Template {
    /// Compiles a pattern. `$NAME` stands for a value of that name; `$TEXT`, `$MADE`, `$TOTAL` and `$SEQUENCE` for what
    /// a step says; a line feed for the stream's line end. Values are taken as they are and not looked into.
    pub fn compile(pattern: &str, values: &[(&str, &str)], line_end: &str) -> Template {
        let mut parts = Vec::new();
        let mut bytes = Vec::new();
        let mut rest = pattern;
        while let Some(at) = rest.find(['$', '\n']) {
            let (before, marked) = rest.split_at(at);
            bytes.extend_from_slice(before.as_bytes());
            if let Some(after) = marked.strip_prefix('\n') {
                bytes.extend_from_slice(line_end.as_bytes());
                rest = after;
                continue;
            }
            let name = name_of(marked);
            rest = marked.get(1 + name.len()..).unwrap_or_default();
            match dynamic(name) {
                Some(part) => {
                    parts.push(Part::Bytes(std::mem::take(&mut bytes)));
                    parts.push(part);
                }
                None => bytes.extend_from_slice(value_of(name, values).as_bytes()),
            }
        }
        bytes.extend_from_slice(rest.as_bytes());
        parts.push(Part::Bytes(bytes));
        Template(parts)
    }

    /// Appends the event of a step.
    pub fn render(&self, step: &Step, out: &mut Vec<u8>) {
        for part in &self.0 {
            match part {
                Part::Bytes(bytes) => out.extend_from_slice(bytes),
                Part::Text => {
                    out.extend_from_slice(token(step.made.saturating_sub(1)).as_bytes());
                    out.resize(out.len() + step.padding, b'x');
                }
                Part::Made => number(u64::from(step.made), out),
                Part::Total => number(step.prompt.saturating_add(u64::from(step.made)), out),
                Part::Sequence => number(step.sequence, out),
            }
        }
    }
}

/// The text of the token with this index: words, the same in every answer.
pub fn token(index: u32) -> String {
    format!("t{index} ")
}

/// The text of a whole answer.
pub fn text(tokens: u32) -> String {
    (0..tokens).map(token).collect()
}

/// A text as a JSON string.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The capitals after a dollar sign.
fn name_of(marked: &str) -> &str {
    let after = marked.get(1..).unwrap_or_default();
    let len = after.bytes().take_while(u8::is_ascii_uppercase).count();
    after.get(..len).unwrap_or_default()
}

fn dynamic(name: &str) -> Option<Part> {
    match name {
        "TEXT" => Some(Part::Text),
        "MADE" => Some(Part::Made),
        "TOTAL" => Some(Part::Total),
        "SEQUENCE" => Some(Part::Sequence),
        _ => None,
    }
}

fn value_of<'a>(name: &str, values: &[(&str, &'a str)]) -> &'a str {
    let found = values.iter().find(|(known, _)| *known == name);
    debug_assert!(found.is_some(), "no value for ${name}");
    found.map_or("", |(_, value)| value)
}

fn number(n: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(n.to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(pattern: &str, values: &[(&str, &str)], line_end: &str, step: &Step) -> String {
        let mut out = Vec::new();
        Template::compile(pattern, values, line_end).render(step, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn values_and_the_steps_figures_are_filled_in() {
        let step = Step {
            prompt: 5,
            made: 3,
            sequence: 7,
            padding: 2,
        };
        let pattern = "data: $ID $TEXT|$MADE $TOTAL $SEQUENCE\n\n";
        let out = rendered(pattern, &[("ID", "a")], "\r\n", &step);
        assert_eq!(out, "data: a t2 xx|3 8 7\r\n\r\n");
    }

    #[test]
    fn a_value_that_looks_like_a_pattern_stays_as_it_is() {
        let out = rendered("$ID", &[("ID", "$TEXT $ID \n $")], "\r", &Step::default());
        assert_eq!(out, "$TEXT $ID \n $");
    }

    #[test]
    fn the_text_of_an_answer_is_its_tokens_in_a_row() {
        assert_eq!(text(3), "t0 t1 t2 ");
    }
}
