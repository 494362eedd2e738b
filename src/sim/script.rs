//! What an answer says, laid out before it is timed: the events of a stream, or the document. Pure.

use super::faults::Faults;
use super::job::{Api, Job};
use super::template::{Step, Template, quoted};
use super::{anthropic, openai, responses};

/// What an answer that breaks off with an error says.
pub const BROKEN: &str = "the simulated engine broke off, as X-Sim asked";

/// The facts of one answer.
pub struct Facts<'a> {
    pub job: &'a Job,
    pub family: Family,
    pub faults: &'a Faults,
    pub model: &'a str,
    /// What its ids are made of.
    pub id: &'a str,
    /// Seconds since the Unix epoch.
    pub created: i64,
}

/// Whose error shape an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    OpenAi,
    Anthropic,
}

impl Family {
    pub fn of_path(path: &str) -> Family {
        match path.starts_with("/v1/messages") {
            true => Family::Anthropic,
            false => Family::OpenAi,
        }
    }

    /// The body of an error status.
    pub fn error(self, status: u16, message: &str, request_id: &str) -> String {
        match self {
            Family::OpenAi => openai::error(status, message),
            Family::Anthropic => anthropic::error(status, message, request_id),
        }
    }
}

/// The events of a stream.
pub struct Script {
    /// Before the first token.
    pub preamble: Vec<Template>,
    /// For each token.
    pub token: Template,
    /// After the last token, the protocol's end included.
    pub ending: Vec<Template>,
    /// Where the stream breaks off with an error.
    pub error: Template,
}

impl Facts<'_> {
    pub fn script(&self) -> Script {
        match self.job.api {
            Api::Chat => openai::chat_script(self),
            Api::Responses => responses::script(self),
            Api::Messages => anthropic::script(self),
            // The last two are never streamed.
            Api::Completions | Api::Embeddings | Api::CountTokens => {
                openai::completion_script(self)
            }
        }
    }

    /// The document of an answer that is not streamed.
    pub fn document(&self) -> Vec<u8> {
        match self.job.api {
            Api::Chat => openai::chat_document(self),
            Api::Completions => openai::completion_document(self),
            Api::Embeddings => openai::embeddings_document(self),
            Api::Responses => responses::document(self),
            Api::Messages => anthropic::document(self),
            Api::CountTokens => anthropic::count_document(self),
        }
    }

    /// Compiles a pattern with this answer's id, model, time and prompt, and further values.
    pub fn template(&self, pattern: &str, more: &[(&str, &str)]) -> Template {
        let (model, created) = (quoted(self.model), self.created.to_string());
        let prompt = self.job.prompt_tokens.to_string();
        let mut values = vec![
            ("ID", self.id),
            ("MODEL", &model),
            ("CREATED", &created),
            ("PROMPT", &prompt),
        ];
        values.extend_from_slice(more);
        Template::compile(pattern, &values, self.faults.line_end.as_str())
    }

    /// The step at which all tokens have been made.
    pub fn last_step(&self) -> Step {
        Step {
            prompt: self.job.prompt_tokens,
            made: self.job.output_tokens,
            ..Step::default()
        }
    }

    /// Fills in a pattern as it reads once all tokens have been made.
    pub fn filled(&self, pattern: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        self.template(pattern, more)
            .render(&self.last_step(), &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const ASK: &str = r#"{"messages":[{"content":"two words"}],"prompt":"two words","input":"two words","max_tokens":3,"max_output_tokens":3,"stream_options":{"include_usage":true,"continuous_usage_stats":true}"#;

    fn job(api: Api, stream: bool) -> Job {
        let body = format!(r#"{ASK},"stream":{stream}}}"#);
        Job::read(api, body.as_bytes()).expect("a job")
    }

    fn with_facts<T>(job: &Job, faults: &str, work: impl FnOnce(&Facts<'_>) -> T) -> T {
        let faults = Faults::parse(faults).expect("known faults");
        work(&Facts {
            job,
            family: Family::OpenAi,
            faults: &faults,
            model: "odd \"$TEXT\"\n",
            id: "0a",
            created: 7,
        })
    }

    /// The whole stream as (event name, data), each event checked to end in one blank line.
    fn events(facts: &Facts<'_>) -> Vec<(String, String)> {
        let script = facts.script();
        let mut step = Step {
            prompt: facts.job.prompt_tokens,
            ..Step::default()
        };
        let mut out = Vec::new();
        let mut write = |template: &Template, step: &mut Step| {
            let mut bytes = Vec::new();
            template.render(step, &mut bytes);
            step.sequence += 1;
            let text = String::from_utf8(bytes).expect("text");
            let body = text.strip_suffix("\n\n").expect("a blank line at the end");
            let (name, data) = match body.strip_prefix("event: ") {
                Some(named) => named.split_once('\n').expect("a data line"),
                None => ("", body),
            };
            let data = data.strip_prefix("data: ").expect("data");
            out.push((name.to_owned(), data.to_owned()));
        };
        script.preamble.iter().for_each(|t| write(t, &mut step));
        for _ in 0..facts.job.output_tokens {
            step.made += 1;
            write(&script.token, &mut step);
        }
        script.ending.iter().for_each(|t| write(t, &mut step));
        write(&script.error, &mut step);
        out
    }

    fn parsed(data: &str) -> Value {
        serde_json::from_str(data).unwrap_or_else(|e| panic!("{e}: {data}"))
    }

    #[test]
    fn every_event_and_document_is_json_and_names_the_model() {
        for api in [Api::Chat, Api::Completions, Api::Responses, Api::Messages] {
            let all = with_facts(&job(api, true), "", events);
            for (_, data) in all.iter().filter(|(_, data)| data != "[DONE]") {
                parsed(data);
            }
            let text: String = all.iter().map(|(_, data)| data.as_str()).collect();
            assert!(text.contains(r#""odd \"$TEXT\"\n""#), "{api:?}: {text}");
        }
        for api in [
            Api::Chat,
            Api::Completions,
            Api::Responses,
            Api::Messages,
            Api::Embeddings,
            Api::CountTokens,
        ] {
            let text = with_facts(&job(api, false), "", |f| f.document());
            let doc = parsed(&String::from_utf8(text).expect("text"));
            let model = (api != Api::CountTokens).then_some("odd \"$TEXT\"\n");
            assert_eq!(doc["model"].as_str(), model, "{doc}");
        }
    }

    #[test]
    fn a_chat_stream_has_role_tokens_finish_usage_and_done() {
        let all = with_facts(&job(Api::Chat, true), "", events);
        assert_eq!(all.len(), 1 + 3 + 1 + 1 + 1 + 1);
        let docs: Vec<Value> = all[..6].iter().map(|(_, data)| parsed(data)).collect();
        assert_eq!(docs[0]["choices"][0]["delta"]["role"], "assistant");
        for (i, doc) in docs[1..4].iter().enumerate() {
            assert_eq!(doc["choices"][0]["delta"]["content"], format!("t{i} "));
            assert_eq!(doc["usage"]["completion_tokens"], i + 1);
            assert_eq!(doc["usage"]["total_tokens"], i + 3);
        }
        assert_eq!(docs[4]["choices"][0]["finish_reason"], "length");
        assert_eq!(docs[5]["choices"], Value::Array(Vec::new()));
        assert_eq!(docs[5]["usage"]["total_tokens"], 5);
        assert_eq!(all[6].1, "[DONE]");
        assert!(parsed(&all[7].1)["error"]["message"].is_string());
    }

    #[test]
    fn the_faults_leave_out_usage_and_the_protocols_end() {
        for (api, done) in [
            (Api::Chat, "[DONE]"),
            (Api::Completions, "[DONE]"),
            (Api::Messages, "message_stop"),
            (Api::Responses, "response.completed"),
        ] {
            let plain = format!("{:?}", with_facts(&job(api, true), "", events));
            assert!(
                plain.contains(done) && plain.contains("usage"),
                "{api:?}: {plain}"
            );
            let text = format!(
                "{:?}",
                with_facts(&job(api, true), "no-usage no-done", events)
            );
            assert!(
                !text.contains(done) && !text.contains("usage"),
                "{api:?}: {text}"
            );
            let whole = with_facts(&job(api, false), "no-usage", |f| f.document());
            assert!(
                !String::from_utf8_lossy(&whole).contains("usage"),
                "{api:?}"
            );
        }
    }

    #[test]
    fn an_anthropic_stream_names_its_events_and_says_its_usage_twice() {
        let all = with_facts(&job(Api::Messages, true), "", events);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let delta = "content_block_delta";
        assert_eq!(
            names,
            [
                "message_start",
                "content_block_start",
                delta,
                delta,
                delta,
                "content_block_stop",
                "message_delta",
                "message_stop",
                "error"
            ]
        );
        for (name, data) in &all {
            assert_eq!(parsed(data)["type"], **name);
        }
        assert_eq!(parsed(&all[0].1)["message"]["usage"]["input_tokens"], 2);
        assert_eq!(parsed(&all[6].1)["usage"]["output_tokens"], 3);
        assert_eq!(parsed(&all[6].1)["delta"]["stop_reason"], "max_tokens");
    }

    #[test]
    fn a_responses_stream_is_numbered_and_ends_with_the_whole_answer() {
        let all = with_facts(&job(Api::Responses, true), "", events);
        for (i, (name, data)) in all.iter().enumerate() {
            assert_eq!(parsed(data)["type"], **name);
            assert_eq!(parsed(data)["sequence_number"], i);
        }
        let (name, last) = &all[all.len() - 2];
        assert_eq!(name, "response.completed");
        let response = &parsed(last)["response"];
        assert_eq!(response["output"][0]["content"][0]["text"], "t0 t1 t2 ");
        assert_eq!(response["usage"]["output_tokens"], 3);
        let whole = with_facts(&job(Api::Responses, false), "", |f| f.document());
        assert_eq!(parsed(&String::from_utf8_lossy(&whole)), *response);
    }

    #[test]
    fn documents_hold_the_whole_text_and_the_usage() {
        let read = |api| {
            let text = with_facts(&job(api, false), "", |f| f.document());
            parsed(&String::from_utf8_lossy(&text))
        };
        let chat = read(Api::Chat);
        assert_eq!(chat["choices"][0]["message"]["content"], "t0 t1 t2 ");
        assert_eq!(chat["usage"]["completion_tokens"], 3);
        assert_eq!(read(Api::Completions)["choices"][0]["text"], "t0 t1 t2 ");
        assert_eq!(read(Api::Messages)["content"][0]["text"], "t0 t1 t2 ");
        assert_eq!(read(Api::CountTokens)["input_tokens"], 2);
        assert_eq!(read(Api::Embeddings)["data"][0]["embedding"][7], 0.25);
        assert_eq!(read(Api::Embeddings)["usage"]["prompt_tokens"], 2);
    }
}
