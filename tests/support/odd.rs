//! Streams made from a seed, odd in every way the format and the APIs allow, and what must come of each.

use super::dialect::Dialect;
use super::random::Random;
use serde_json::{Value, json};

/// Events over this length pass as they come.
const LARGE: usize = 64 * 1024;

pub struct Odd {
    pub dialect: Dialect,
    /// The client asks for usage.
    pub asks_usage: bool,
    /// What the upstream sends, and what of it the client gets.
    pub sent: Vec<u8>,
    pub shown: Vec<u8>,
    /// Units made: the upstream's own figure, or the events with output.
    pub generated: u64,
    pub source: &'static str,
}

const APIS: [Dialect; 4] = [
    Dialect::Chat,
    Dialect::Completions,
    Dialect::Responses,
    Dialect::Messages,
];

impl Odd {
    pub fn of(seed: u64) -> Odd {
        let mut random = Random::new(seed);
        let dialect = random.pick(&APIS);
        let asks_usage = random.one_in(2);
        let mut writer = Writer::new(&mut random);
        let mut content = 0;
        let length = 1 + writer.random.below(25);
        for _ in 0..length {
            let (event, counts) = writer.event(dialect);
            writer.write(&event, true);
            content += u64::from(counts);
        }
        let usage = writer
            .random
            .one_in(2)
            .then(|| 1 + writer.random.below(5000) as u64);
        if let Some(output) = usage {
            let hidden = !asks_usage && is_choices(dialect);
            writer.write(&usage_of(dialect, output), !hidden);
        }
        writer.end(dialect);
        Odd {
            dialect,
            asks_usage,
            generated: usage.unwrap_or(content),
            source: if usage.is_some() {
                "upstream"
            } else {
                "counted"
            },
            sent: std::mem::take(&mut writer.sent),
            shown: std::mem::take(&mut writer.shown),
        }
    }
}

/// What stands in one event: its name and its data.
struct Event {
    name: Option<String>,
    data: String,
}

/// Writes events as lines, in the seed's own style.
struct Writer<'a> {
    random: &'a mut Random,
    sent: Vec<u8>,
    shown: Vec<u8>,
    /// The line end of the whole stream; none: another one each time.
    style: Option<&'static str>,
}

impl Writer<'_> {
    fn new(random: &mut Random) -> Writer<'_> {
        let style = random.pick(&[Some("\n"), Some("\n"), Some("\r\n"), Some("\r"), None]);
        let start = if random.one_in(5) { "\u{feff}" } else { "" };
        Writer {
            random,
            sent: start.into(),
            shown: start.into(),
            style,
        }
    }

    fn event(&mut self, dialect: Dialect) -> (Event, bool) {
        let content = self.random.one_in(2) || self.random.one_in(2);
        let text = self.text();
        let data = if content {
            output(dialect, self.random, &text)
        } else {
            quiet(dialect, self.random)
        };
        let spelled = self.spell(&data);
        let name = match dialect {
            Dialect::Responses | Dialect::Messages => data["type"].as_str().map(str::to_owned),
            _ => self.random.one_in(8).then(|| "message".to_owned()),
        };
        (
            Event {
                name,
                data: spelled,
            },
            content,
        )
    }

    /// Text of any kind, now and then more of it than is held back.
    fn text(&mut self) -> String {
        const CHARS: [char; 16] = [
            'a', 'b', ' ', '"', '\\', '/', '\n', '\r', '\t', 'é', '北', '😀', '\u{2028}', '{', ']',
            ':',
        ];
        if self.random.one_in(40) {
            return "long ".repeat(LARGE / 5 + self.random.below(20_000));
        }
        let length = 1 + self.random.below(60);
        (0..length).map(|_| self.random.pick(&CHARS)).collect()
    }

    /// The document as an engine might spell it: dense or airy, letters escaped or not.
    fn spell(&mut self, data: &Value) -> String {
        let dense = data.to_string();
        let escaped = if self.random.one_in(3) {
            dense
                .chars()
                .map(|c| {
                    if c.is_ascii() {
                        c.to_string()
                    } else {
                        escape(c)
                    }
                })
                .collect()
        } else {
            dense
        };
        if self.random.one_in(4) {
            escaped.replace("\":", "\" : ")
        } else {
            escaped
        }
    }

    /// The event with what else may stand in its block.
    fn write(&mut self, event: &Event, shown: bool) {
        let mut block = Vec::new();
        if self.random.one_in(6) {
            let other = self.random.pick(&[
                ": note",
                ":",
                "id: 7",
                "retry: 3000",
                "foo: bar",
                "foo",
                ": é",
            ]);
            self.line(&mut block, other);
        }
        if let Some(name) = &event.name {
            let line = format!("event: {name}");
            self.line(&mut block, &line);
        }
        for part in self.parts(&event.data) {
            let space = self.random.pick(&[" ", " ", ""]);
            let line = format!("data:{space}{part}");
            self.line(&mut block, &line);
        }
        self.line(&mut block, "");
        self.put(&block, shown);
        if self.random.one_in(10) {
            let mut block = Vec::new();
            let line = self.random.pick(&[": between", ""]);
            self.line(&mut block, line);
            self.line(&mut block, "");
            self.put(&block, true);
        }
    }

    fn put(&mut self, block: &[u8], shown: bool) {
        self.sent.extend_from_slice(block);
        if shown {
            self.shown.extend_from_slice(block);
        }
    }

    /// The data on one line, or on two where JSON may be broken.
    fn parts<'d>(&mut self, data: &'d str) -> Vec<&'d str> {
        match data.find(',') {
            Some(at) if self.random.one_in(10) && data[..at].ends_with('"') => {
                vec![&data[..=at], &data[at + 1..]]
            }
            _ => vec![data],
        }
    }

    fn line(&mut self, block: &mut Vec<u8>, text: &str) {
        let end = self
            .style
            .unwrap_or_else(|| self.random.pick(&["\n", "\r\n", "\r"]));
        let before = block.last().or(self.sent.last());
        // a LF behind a CR would not be a line end of its own
        let end = if text.is_empty() && end == "\n" && before == Some(&b'\r') {
            "\r"
        } else {
            end
        };
        block.extend_from_slice(text.as_bytes());
        block.extend_from_slice(end.as_bytes());
    }

    /// The protocol's end, sometimes without its blank line, sometimes not the last bytes.
    fn end(&mut self, dialect: Dialect) {
        let data = match dialect {
            Dialect::Responses => {
                json!({"type": "response.completed", "response": {"id": "r1"}}).to_string()
            }
            Dialect::Messages => json!({"type": "message_stop"}).to_string(),
            _ => "[DONE]".to_owned(),
        };
        let mut block = Vec::new();
        self.line(&mut block, &format!("data: {data}"));
        match self.random.below(6) {
            0 => {}
            1 => {
                self.line(&mut block, "");
                self.line(&mut block, ": bye");
                self.line(&mut block, "");
            }
            _ => self.line(&mut block, ""),
        }
        self.put(&block, true);
    }
}

fn escape(c: char) -> String {
    let mut units = [0; 2];
    c.encode_utf16(&mut units)
        .iter()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect()
}

fn is_choices(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Chat | Dialect::Completions)
}

/// A document with output.
fn output(dialect: Dialect, random: &mut Random, text: &str) -> Value {
    let index = random.below(3);
    match dialect {
        Dialect::Completions => {
            json!({"id": "c1", "choices": [{"index": index, "text": text, "logprobs": null}]})
        }
        Dialect::Responses => {
            let kind = random.pick(&[
                "response.output_text.delta",
                "response.function_call_arguments.delta",
                "response.reasoning_summary_text.delta",
                "response.refusal.delta",
            ]);
            json!({"type": kind, "output_index": index, "delta": text})
        }
        Dialect::Messages => {
            let (kind, member) = random.pick(&[
                ("text_delta", "text"),
                ("thinking_delta", "thinking"),
                ("input_json_delta", "partial_json"),
            ]);
            json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, member: text}})
        }
        _ => {
            let delta = match random.below(4) {
                0 => json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}),
                1 => json!({"reasoning_content": text}),
                2 => json!({"refusal": text, "content": null}),
                _ => json!({"content": text, "x_unknown": [1.0, null]}),
            };
            json!({"id": "c1", "choices": [{"index": index, "delta": delta, "finish_reason": null}], "usage": null})
        }
    }
}

/// A document without output.
fn quiet(dialect: Dialect, random: &mut Random) -> Value {
    let documents = match dialect {
        Dialect::Completions => vec![
            json!({"choices": [{"index": 0, "text": ""}]}),
            json!({"choices": []}),
        ],
        Dialect::Responses => vec![
            json!({"type": "response.created", "response": {"id": "r1", "usage": null}}),
            json!({"type": "response.output_item.added", "item": {"type": "message", "content": []}}),
            json!({"type": "response.output_text.done", "text": "all of it again"}),
        ],
        Dialect::Messages => vec![
            json!({"type": "ping"}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_stop", "index": 0}),
        ],
        _ => vec![
            json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
            json!({"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]}),
            json!({"choices": [{"index": 0, "delta": null}]}),
            json!({"choices": []}),
        ],
    };
    documents[random.below(documents.len())].clone()
}

/// The upstream's own figures, where each API has them.
fn usage_of(dialect: Dialect, output: u64) -> Event {
    let data = match dialect {
        Dialect::Responses => {
            json!({"type": "response.completed", "response": {"usage": {"input_tokens": 9, "output_tokens": output}}})
        }
        Dialect::Messages => {
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": output}})
        }
        _ => {
            json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": output, "total_tokens": 9 + output}})
        }
    };
    let name = match dialect {
        Dialect::Responses | Dialect::Messages => data["type"].as_str().map(str::to_owned),
        _ => None,
    };
    Event {
        name,
        data: data.to_string(),
    }
}
