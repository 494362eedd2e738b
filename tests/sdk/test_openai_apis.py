"""The official `openai` Python SDK through the gateway: text, tools and errors of each API, streamed and not."""

import json

import openai
import pytest
from ground import KEY
from scripted import ARGUMENTS

TEXT = "Hello 北京 😀"
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
BREAKS = ["reset", "torn", "fin", "no-end", "own-error"]


@pytest.fixture
def client(scripted):
    with openai.OpenAI(api_key=KEY, base_url=scripted.openai_url, max_retries=0, timeout=20) as made:
        yield made


def headers(script=None, request_id=None, broken=None):
    all_of = {"X-Script": script, "Idempotency-Key": request_id, "X-Break": broken}
    return {name: value for name, value in all_of.items() if value}


def chat(client, stream=False, **named):
    more = {"tools": [TOOL]} if named.get("script") == "tools" else {}
    messages = [{"role": "user", "content": "hello there"}]
    return client.chat.completions.create(
        model="scripted", messages=messages, stream=stream, extra_headers=headers(**named), **more
    )


def completions(client, stream=False, **named):
    return client.completions.create(model="scripted", prompt="hello", stream=stream, extra_headers=headers(**named))


def responses(client, stream=False, **named):
    tool = {"type": "function", "name": "weather", "parameters": {"type": "object", "properties": {}}, "strict": False}
    more = {"tools": [tool]} if named.get("script") == "tools" else {}
    return client.responses.create(model="scripted", input="hello", stream=stream, extra_headers=headers(**named), **more)


APIS = pytest.mark.parametrize("call", [chat, completions, responses])


def text_of(event):
    """The text of a stream's event, whatever its API."""
    if getattr(event, "type", None):
        return event.delta if event.type == "response.output_text.delta" else ""
    if not event.choices:
        return ""
    choice = event.choices[0]
    return (choice.text if hasattr(choice, "text") else choice.delta.content) or ""


@APIS
def test_text_streams(call, client, scripted, request_id):
    events = list(call(client, stream=True, request_id=request_id))
    assert "".join(map(text_of, events)) == TEXT
    record = scripted.ended(request_id)
    assert (record["api"], record["state"]) == (call.__name__, "COMPLETED"), record
    assert record["usage_source"] == ("upstream" if call is not completions else "counted"), record


def test_text_comes_whole(client):
    assert chat(client).choices[0].message.content == TEXT
    assert completions(client).choices[0].text == TEXT
    assert responses(client).output_text == TEXT


def test_a_tool_call_streams(client, scripted, request_id):
    pieces, names, reasons = [], [], []
    for part in chat(client, stream=True, script="tools", request_id=request_id):
        reasons += [part.choices[0].finish_reason] if part.choices[0].finish_reason else []
        for call in part.choices[0].delta.tool_calls or []:
            pieces.append(call.function.arguments or "")
            names += [call.function.name] if call.function.name else []
    assert (names, reasons) == (["weather"], ["tool_calls"])
    assert json.loads("".join(pieces)) == json.loads(ARGUMENTS)
    assert scripted.ended(request_id)["state"] == "COMPLETED"


def test_the_sdks_own_helper_puts_a_streamed_tool_call_together(client):
    stream = client.chat.completions.stream(
        model="scripted",
        messages=[{"role": "user", "content": "hello there"}],
        tools=[{**TOOL, "function": {**TOOL["function"], "strict": True}}],
        extra_headers=headers("tools"),
    )
    with stream as events:
        for _ in events:
            pass
        call = events.get_final_completion().choices[0].message.tool_calls[0]
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments) == json.loads(ARGUMENTS)


def test_a_tool_call_comes_whole(client):
    call = chat(client, script="tools").choices[0].message.tool_calls[0]
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", json.loads(ARGUMENTS))


def test_a_function_call_of_a_response_streams(client):
    events = list(responses(client, stream=True, script="tools"))
    deltas = [event.delta for event in events if event.type == "response.function_call_arguments.delta"]
    assert "".join(deltas) == ARGUMENTS
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.output[0].arguments == ARGUMENTS
    assert last.response.usage.output_tokens == 4


def test_a_function_call_of_a_response_comes_whole(client):
    assert responses(client, script="tools").output[0].arguments == ARGUMENTS


@APIS
@pytest.mark.parametrize("broken", BREAKS)
def test_a_stream_that_breaks_raises_the_sdks_own_error(call, broken, client, scripted, request_id):
    seen = ""
    with pytest.raises(openai.APIError) as raised:
        for event in call(client, stream=True, request_id=request_id, broken=broken):
            seen += text_of(event)
    assert not isinstance(raised.value, (openai.APIConnectionError, openai.APIStatusError)), raised.value
    assert seen == TEXT, "what was whole was shown"
    record = scripted.ended(request_id)
    assert (record["state"], record["ended_by"]) == ("FAILED", "upstream"), record


@APIS
def test_heartbeats_in_a_gap_are_nothing_to_it(call, client, scripted):
    beats = 'streamgate_heartbeats_total{pool="scripted"}'
    before = scripted.metric(beats)
    assert "".join(map(text_of, call(client, stream=True, broken="stall"))) == TEXT
    assert scripted.metric(beats) >= before + 3


@APIS
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "status, kind",
    [
        (400, openai.BadRequestError),
        (404, openai.NotFoundError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
def test_an_upstreams_status_is_its_typed_error(call, stream, status, kind, client):
    with pytest.raises(kind) as raised:
        call(client, stream=stream, script=str(status))
    assert raised.value.status_code == status
    assert "engine on fire" in str(raised.value)


def test_an_embeddings_call_of_a_missing_model_is_its_typed_error(client):
    with pytest.raises(openai.NotFoundError) as raised:
        client.embeddings.create(model="nope", input="hello")
    assert raised.value.code == "model_not_found"
