//! Event streams by the letter of the specification (WHATWG HTML, section 9.2.6): slow, simple, over the whole bytes.
//! It shares nothing with the scanner it judges.

/// What a client's parser would dispatch, or only take note of: name and data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub name: Option<Vec<u8>>,
    pub data: Option<Vec<u8>>,
}

/// The events of all blocks that have ended; a block without name and data is none. One BOM may lead.
pub fn events(bytes: &[u8]) -> Vec<Event> {
    let blocks = blocks(bytes);
    let starts = blocks
        .iter()
        .enumerate()
        .map(|(n, block)| (if n == 0 { bom(block) } else { 0 }, block));
    starts
        .filter_map(|(start, block)| event(&block[start..]))
        .collect()
}

/// The blocks that have ended, each with its blank line. A BOM stays in the first.
pub fn blocks(bytes: &[u8]) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    let (mut start, mut at) = (0, bom(bytes));
    while let Some((line, after)) = line(bytes, at) {
        at = after;
        if line.is_empty() {
            blocks.push(&bytes[start..after]);
            start = after;
        }
    }
    blocks
}

/// Every line end as LF.
pub fn to_lf(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'\r' => out.push(b'\n'),
            b'\n' if at > 0 && bytes[at - 1] == b'\r' => {}
            _ => out.push(*byte),
        }
    }
    out
}

fn event(block: &[u8]) -> Option<Event> {
    let mut event = Event::default();
    let mut at = 0;
    while let Some((line, after)) = line(block, at) {
        at = after;
        let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"event" => event.name = Some(value.to_vec()),
            b"data" => {
                event.data = Some(match event.data.take() {
                    None => value.to_vec(),
                    Some(before) => [&before, b"\n".as_slice(), value].concat(),
                });
            }
            _ => {}
        }
    }
    (event != Event::default()).then_some(event)
}

/// The line at a place without its end, and where the next begins; nothing where no end has come.
fn line(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = &bytes[at..];
    let end = rest.iter().position(|b| matches!(b, b'\r' | b'\n'))?;
    let width = if rest[end..].starts_with(b"\r\n") {
        2
    } else {
        1
    };
    Some((&rest[..end], at + end + width))
}

fn bom(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    }
}
