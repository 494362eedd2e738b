//! The fields of an event that is too large to be held: read line by line as its bytes pass.

use super::event::Event;

/// A field's name or an event's name longer than this is none we know.
const WORD_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Within a field's name; its bytes so far are in `word`.
    Field,
    /// Behind the colon of `data` or `event`, where one space is no part of the value.
    Colon(Kind),
    Value(Kind),
    /// In a line that says nothing to us.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Name,
}

/// Reads the block of one event in pieces and hands on its data without keeping it.
#[derive(Debug)]
pub(super) struct Fields {
    place: Place,
    word: Vec<u8>,
    name: Option<Vec<u8>>,
    /// A data line has been seen: the next begins with the LF that joins them.
    has_data: bool,
    after_cr: bool,
}

impl Fields {
    pub(super) fn new() -> Fields {
        Fields {
            place: Place::Field,
            word: Vec::new(),
            name: None,
            has_data: false,
            after_cr: false,
        }
    }

    /// Reads on; `data` is called with each piece of the event's data.
    pub(super) fn feed(&mut self, bytes: &[u8], data: &mut impl FnMut(&[u8])) {
        let mut rest = bytes;
        if std::mem::take(&mut self.after_cr) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while !rest.is_empty() {
            let end = memchr::memchr2(b'\n', b'\r', rest);
            let (line, ending) = rest.split_at(end.unwrap_or(rest.len()));
            self.within(line, data);
            if !ending.is_empty() {
                self.line_ends(data);
            }
            self.after_cr = ending == b"\r";
            rest = match ending {
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => &[],
            };
        }
    }

    /// What the event is, but for its data.
    pub(super) fn event(&self) -> Event<'_> {
        Event {
            name: self.name.as_deref(),
            data: self.has_data.then_some(&[]),
        }
    }

    fn within(&mut self, mut line: &[u8], data: &mut impl FnMut(&[u8])) {
        if self.place == Place::Field {
            let colon = memchr::memchr(b':', line);
            let (name, rest) = line.split_at(colon.unwrap_or(line.len()));
            self.keep(name);
            let Some(after) = rest.strip_prefix(b":") else {
                return;
            };
            self.place = self.value_begins(data);
            line = after;
        }
        if let Place::Colon(kind) = self.place
            && !line.is_empty()
        {
            self.place = Place::Value(kind);
            line = line.strip_prefix(b" ").unwrap_or(line);
        }
        match self.place {
            Place::Value(Kind::Data) if !line.is_empty() => data(line),
            Place::Value(Kind::Name) => self.keep(line),
            Place::Value(Kind::Data) | Place::Field | Place::Colon(_) | Place::Other => {}
        }
    }

    fn value_begins(&mut self, data: &mut impl FnMut(&[u8])) -> Place {
        let place = match self.word.as_slice() {
            b"data" => {
                if self.has_data {
                    data(b"\n");
                }
                self.has_data = true;
                Place::Colon(Kind::Data)
            }
            b"event" => Place::Colon(Kind::Name),
            _ => Place::Other,
        };
        self.word.clear();
        place
    }

    fn line_ends(&mut self, data: &mut impl FnMut(&[u8])) {
        if self.place == Place::Field {
            // A field without a colon has an empty value.
            self.place = self.value_begins(data);
        }
        if matches!(
            self.place,
            Place::Colon(Kind::Name) | Place::Value(Kind::Name)
        ) {
            self.name = Some(std::mem::take(&mut self.word));
        }
        self.word.clear();
        self.place = Place::Field;
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = (WORD_MAX + 1).saturating_sub(self.word.len());
        self.word.extend(bytes.iter().take(room));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_read_the_same_as_the_whole_block_wherever_it_is_cut() {
        let blocks = [
            "data: a\r\ndata:  b\rdata\nevent: message_stop\n\n",
            "event:x\r\n: data: no\ndata:y: z\nfoo: data: q\r\n\r\n",
            "event\nid: data\ndata:\n\n",
            ": only a comment\n\n",
            "dat: x\ndataa: x\ndata : x\nevent: e: f\n\n",
        ];
        for block in blocks {
            let mut room = Vec::new();
            let whole = Event::parse(block.as_bytes(), &mut room);
            for cut in 0..=block.len() {
                for second in cut..=block.len() {
                    let mut fields = Fields::new();
                    let mut got = Vec::new();
                    for piece in [&block[..cut], &block[cut..second], &block[second..]] {
                        fields.feed(piece.as_bytes(), &mut |data| got.extend_from_slice(data));
                    }
                    let what = format!("{block:?} cut at {cut}, {second}");
                    assert_eq!(fields.event().name, whole.name, "{what}");
                    assert_eq!(
                        fields.event().data.map(|_| got.as_slice()),
                        whole.data,
                        "{what}"
                    );
                }
            }
        }
    }
}
