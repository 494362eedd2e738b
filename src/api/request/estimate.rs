//! How much input a request holds, before the upstream has counted it.
//!
//! The rule, for every API:
//! - Text costs its bytes in UTF-8, escapes decoded, divided by the pool's `bytes_per_unit` and rounded up once for the
//!   whole request. Text is every string of the messages, prompt, input, instructions and system prompt, but labels:
//!   roles, types, ids, formats.
//! - Tools, and the arguments of tool calls that are JSON, are text as they are spelled.
//! - A prompt of tokens costs a unit per token.
//! - An image costs [`IMAGE_UNITS`], whatever its size.
//! - Audio, video and files cost a unit per [`DATA_BYTES_PER_UNIT`] bytes of their data as sent (base64), and
//!   [`REMOTE_UNITS`] where only an address or an id is sent.

use crate::api::json::{Kind, Str, Visitor};
use crate::budget::Units;

pub const IMAGE_UNITS: u64 = 1000;
pub const REMOTE_UNITS: u64 = 1000;
pub const DATA_BYTES_PER_UNIT: u64 = 1024;

/// The input of a request, in terms that every pool can price.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputSize {
    pub text_bytes: u64,
    /// What is not text, in units.
    pub units: u64,
}

impl InputSize {
    /// The estimate with a pool's `bytes_per_unit`.
    pub fn estimate(self, bytes_per_unit: u64) -> Units {
        let text = self.text_bytes.div_ceil(bytes_per_unit.max(1));
        Units(text).plus(Units(self.units))
    }
}

/// What a string under a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Text,
    Label,
    /// Names the kind of the part it stands in.
    Type,
    /// Where the content is to be fetched from.
    Address,
    Data,
    /// JSON that counts as spelled.
    Arguments,
}

fn class_of(key: &[u8]) -> Class {
    match key {
        b"type" => Class::Type,
        b"role" | b"id" | b"call_id" | b"tool_call_id" | b"tool_use_id" | b"item_id"
        | b"detail" | b"status" | b"media_type" | b"mime_type" | b"format" | b"filename"
        | b"ttl" | b"signature" | b"encrypted_content" | b"object" => Class::Label,
        b"url" | b"image_url" | b"audio_url" | b"video_url" | b"file_url" | b"file_id" => {
            Class::Address
        }
        b"data" | b"file_data" => Class::Data,
        b"input" | b"arguments" => Class::Arguments,
        _ => Class::Text,
    }
}

/// The part of a message that a string stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Other,
    Text,
    Image,
    File,
}

fn part_of(kind: &[u8], within: Part) -> Part {
    match kind {
        b"text" | b"input_text" | b"output_text" => Part::Text,
        b"image" | b"image_url" | b"input_image" => Part::Image,
        b"file" if within == Part::Image => Part::Image,
        b"file" | b"input_file" | b"document" | b"input_audio" | b"audio" | b"audio_url"
        | b"video" | b"video_url" | b"input_video" => Part::File,
        _ => within,
    }
}

#[derive(Clone, Copy, Debug)]
struct Level {
    class: Class,
    part: Part,
}

/// Adds up the members it is shown, one after the other.
#[derive(Debug)]
pub(super) struct Estimator {
    pub size: InputSize,
    /// Strings and arrays that stand in the outermost array: prompts of their own where the call takes several.
    pub items: u64,
    /// Numbers are tokens: the prompt of a completion, the input of an embedding.
    numbers: bool,
    here: Level,
    outer: Vec<Level>,
    /// Depth and offset of arguments that are being passed over.
    arguments: Option<(usize, usize)>,
}

impl Estimator {
    pub fn new(numbers: bool) -> Estimator {
        Estimator {
            size: InputSize::default(),
            items: 0,
            numbers,
            here: Level {
                class: Class::Text,
                part: Part::Other,
            },
            outer: Vec::new(),
            arguments: None,
        }
    }

    /// JSON that counts as it is spelled.
    pub fn spelled(&mut self, bytes: usize) {
        self.text(bytes);
    }

    fn text(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.size.text_bytes = self.size.text_bytes.saturating_add(bytes);
    }

    fn units(&mut self, units: u64) {
        self.size.units = self.size.units.saturating_add(units);
    }

    fn data(&mut self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        match self.here.part {
            Part::Image => {}
            Part::Text => self.text(usize::try_from(bytes).unwrap_or(usize::MAX)),
            Part::File | Part::Other => self.units(bytes.div_ceil(DATA_BYTES_PER_UNIT)),
        }
    }

    fn of_kind(&mut self, kind: &[u8]) {
        let before = self.here.part;
        self.here.part = part_of(kind, before);
        if self.here.part == Part::Image && before != Part::Image {
            self.units(IMAGE_UNITS);
        }
    }
}

impl Visitor for Estimator {
    fn key(&mut self, key: Str<'_>, _at: usize) {
        if self.arguments.is_none() {
            self.here.class = key.named(class_of);
        }
    }

    fn string(&mut self, value: Str<'_>, _at: usize) {
        if self.arguments.is_some() {
            return;
        }
        self.items += u64::from(self.outer.len() == 1);
        match (self.here.class, self.here.part) {
            (Class::Text | Class::Arguments, _) => self.text(value.len),
            (Class::Type, _) => value.named(|kind| self.of_kind(kind)),
            (Class::Address, Part::File) => self.units(REMOTE_UNITS),
            (Class::Address | Class::Label, _) => {}
            (Class::Data, _) => self.data(value.len),
        }
    }

    fn bare(&mut self, raw: &[u8], _at: usize) {
        if self.numbers && matches!(raw, [b'0'..=b'9' | b'-', ..]) {
            self.units(1);
        }
    }

    fn open(&mut self, kind: Kind, at: usize) {
        self.items += u64::from(self.outer.len() == 1 && kind == Kind::Array);
        self.outer.push(self.here);
        if self.here.class == Class::Arguments && self.arguments.is_none() {
            self.arguments = Some((self.outer.len(), at));
        }
        if kind == Kind::Object && self.arguments.is_none() {
            self.here.class = Class::Text;
        }
    }

    fn close(&mut self, at: usize) {
        if let Some((depth, start)) = self.arguments
            && depth == self.outer.len()
        {
            self.arguments = None;
            self.text(at + 1 - start);
        }
        if let Some(outer) = self.outer.pop() {
            self.here = outer;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::json::{Grammar, Scanner};

    fn check(json: &str, text_bytes: u64, units: u64) {
        let mut estimator = Estimator::new(false);
        let mut scanner = Scanner::new(Grammar::Strict);
        scanner.feed(json.as_bytes(), &mut estimator);
        assert!(scanner.finish(&mut estimator), "{json}");
        assert_eq!(estimator.size, InputSize { text_bytes, units }, "{json}");
    }

    #[test]
    fn text_is_counted_and_labels_are_not() {
        check(r#"[{"role":"user","content":"hello there"}]"#, 11, 0);
        check(
            r#"[{"role":"user","content":"\u5317\ud83d\ude00\n"}]"#,
            8,
            0,
        );
        check(
            r#"[{"content":[{"type":"text","text":"ab"},{"text":"cd","type":"text"}],"name":"x"}]"#,
            5,
            0,
        );
        check(
            r#"[{"role":"tool","tool_call_id":"call_1234","content":"ok"}]"#,
            2,
            0,
        );
        check(r#""plain""#, 5, 0);
        check(r#"[{"x":[1.0,true,null,{"role":"r"}]}]"#, 0, 0);
    }

    #[test]
    fn arguments_count_as_they_are_spelled() {
        check(
            r#"[{"tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]}]"#,
            8,
            0,
        );
        check(
            r#"[{"type":"tool_use","id":"t","name":"f","input":{"role":[1, 2]}},"z"]"#,
            17,
            0,
        );
    }

    #[test]
    fn images_cost_a_fixed_amount_and_other_data_by_its_size() {
        let data = "A".repeat(4096);
        check(
            r#"[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"high"}}]}]"#,
            0,
            IMAGE_UNITS,
        );
        check(
            r#"[{"type":"input_image","image_url":"https://x"},{"type":"input_image","file_id":"f"}]"#,
            0,
            2 * IMAGE_UNITS,
        );
        check(
            &format!(
                r#"[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]"#
            ),
            0,
            IMAGE_UNITS,
        );
        check(
            &format!(
                r#"[{{"type":"input_audio","input_audio":{{"data":"{data}","format":"wav"}}}}]"#
            ),
            0,
            4,
        );
        check(
            &format!(
                r#"[{{"type":"document","title":"t","source":{{"type":"base64","media_type":"application/pdf","data":"{data}"}}}}]"#
            ),
            1,
            4,
        );
        check(
            r#"[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"some words"}}]"#,
            10,
            0,
        );
        check(
            r#"[{"type":"document","source":{"type":"url","url":"https://x"}}]"#,
            0,
            REMOTE_UNITS,
        );
        check(
            r#"[{"type":"file","file":{"file_id":"f-1"}}]"#,
            0,
            REMOTE_UNITS,
        );
    }

    #[test]
    fn an_image_known_by_its_id_is_an_image() {
        let image = r#"[{"type":"image","source":{"type":"file","file_id":"f"}}]"#;
        check(image, 0, IMAGE_UNITS);
    }

    #[test]
    fn text_behind_an_image_is_text_again() {
        check(
            r#"[{"content":[{"type":"image_url","image_url":{"url":"u"}},{"type":"text","text":"four"}]},{"content":"more"}]"#,
            8,
            IMAGE_UNITS,
        );
    }

    #[test]
    fn the_estimate_rounds_up_once() {
        let size = InputSize {
            text_bytes: 11,
            units: 5,
        };
        assert_eq!(size.estimate(4), Units(8));
        assert_eq!(size.estimate(0), Units(16));
        assert_eq!(InputSize::default().estimate(4), Units(0));
    }
}
