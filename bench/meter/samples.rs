//! Events as engines send them, and the calls they belong to.

use streamgate::api::Call;

pub struct Sample {
    pub name: &'static str,
    pub call: Call,
    pub event: String,
}

/// A chat chunk with all the members that vLLM and OpenAI send, and a short text.
pub fn chat() -> String {
    chat_with(" token")
}

pub fn chat_with(text: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-9f1c2d3e4f5a6b7c8d9e0f1a\",\"object\":\"chat.completion.chunk\",\
         \"created\":1700000000,\"model\":\"llama-3.1-8b\",\"choices\":[{{\"index\":0,\
         \"delta\":{{\"content\":\"{text}\"}},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null}}\n\n"
    )
}

pub fn all() -> Vec<Sample> {
    let sample = |name, call, event: &str| Sample {
        name,
        call,
        event: event.to_owned(),
    };
    vec![
        sample("chat", Call::Chat, &chat()),
        sample(
            "chat, the fewest members",
            Call::Chat,
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"}}]}\n\n",
        ),
        sample(
            "completions",
            Call::Completions,
            "data: {\"id\":\"cmpl-9f1c2d3e4f5a6b7c\",\"object\":\"text_completion\",\"created\":1700000000,\
             \"model\":\"llama-3.1-8b\",\"choices\":[{\"index\":0,\"text\":\" token\",\"logprobs\":null,\
             \"finish_reason\":null}]}\n\n",
        ),
        sample(
            "responses",
            Call::Responses,
            "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\
             \"sequence_number\":12,\"item_id\":\"msg_0123456789abcdef\",\"output_index\":0,\"content_index\":0,\
             \"delta\":\" token\",\"logprobs\":[]}\n\n",
        ),
        sample(
            "messages",
            Call::Messages,
            "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
             \"delta\":{\"type\":\"text_delta\",\"text\":\" token\"}}\n\n",
        ),
        sample(
            "chat, 9 KB of text",
            Call::Chat,
            &chat_with(&"lorem ipsum dolor ".repeat(500)),
        ),
    ]
}
