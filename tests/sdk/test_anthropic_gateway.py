"""The official `anthropic` Python SDK through the gateway: text, tools and errors, streamed and not."""

import json

import anthropic
import pytest
from ground import KEY
from scripted import ARGUMENTS

TEXT = "Hello 北京 😀"
TOOL = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
BREAKS = ["reset", "torn", "fin", "no-end"]


def client_for(scripted, key=KEY):
    return anthropic.Anthropic(api_key=key, base_url=scripted.url, max_retries=0, timeout=20)


@pytest.fixture
def client(scripted):
    with client_for(scripted) as made:
        yield made


def ask(model="claude-scripted", script=None, request_id=None, broken=None, **more):
    headers = {"X-Script": script, "Idempotency-Key": request_id, "X-Break": broken}
    if script == "tools":
        more["tools"] = [TOOL]
    messages = [{"role": "user", "content": "hello there"}]
    set_headers = {name: value for name, value in headers.items() if value}
    return {"model": model, "max_tokens": 8, "messages": messages, "extra_headers": set_headers, **more}


def test_the_simulator_streams_to_it_through_the_gateway(client, scripted, request_id):
    with client.messages.stream(**ask("claude", request_id=request_id)) as stream:
        texts = list(stream.text_stream)
        message = stream.get_final_message()
    assert len(texts) == 8
    assert (message.usage.input_tokens, message.usage.output_tokens) == (2, 8)
    record = scripted.ended(request_id)
    assert (record["api"], record["state"]) == ("messages", "COMPLETED"), record
    assert (record["input_units"], record["generated_units"]) == (2, 8), record


def test_text_streams(client, scripted, request_id):
    with client.messages.stream(**ask(request_id=request_id)) as stream:
        assert "".join(stream.text_stream) == TEXT
        message = stream.get_final_message()
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 4)
    record = scripted.ended(request_id)
    assert (record["state"], record["usage_source"]) == ("COMPLETED", "upstream"), record
    assert (record["input_units"], record["generated_units"]) == (9, 4), record


def test_text_comes_whole(client):
    message = client.messages.create(**ask())
    assert message.content[0].text == TEXT
    assert message.usage.output_tokens == 4


def test_a_tool_use_streams(client):
    with client.messages.stream(**ask(script="tools")) as stream:
        message = stream.get_final_message()
    assert (message.stop_reason, message.content[0].name) == ("tool_use", "weather")
    assert message.content[0].input == json.loads(ARGUMENTS)


def test_a_tool_use_comes_whole(client):
    message = client.messages.create(**ask(script="tools"))
    assert message.content[0].input == json.loads(ARGUMENTS)


@pytest.mark.parametrize("broken", BREAKS)
def test_a_stream_that_breaks_raises_the_sdks_own_error(broken, client, scripted, request_id):
    seen = ""
    with pytest.raises(anthropic.APIStatusError) as raised:
        with client.messages.stream(**ask(request_id=request_id, broken=broken)) as stream:
            for text in stream.text_stream:
                seen += text
    assert raised.value.body["error"]["type"] == "api_error", raised.value.body
    assert raised.value.body["error"]["code"] == "upstream_broken", raised.value.body
    assert seen == TEXT, "what was whole was shown"
    record = scripted.ended(request_id)
    assert (record["state"], record["ended_by"]) == ("FAILED", "upstream"), record


def test_the_engines_own_error_in_a_stream_is_told_as_it_is(client, scripted, request_id):
    with pytest.raises(anthropic.APIStatusError) as raised:
        with client.messages.stream(**ask(request_id=request_id, broken="own-error")) as stream:
            list(stream.text_stream)
    assert raised.value.body["error"] == {"type": "overloaded_error", "message": "engine on fire"}
    assert scripted.ended(request_id)["state"] == "FAILED"


def test_pings_in_a_gap_are_nothing_to_it(client, scripted):
    beats = 'streamgate_heartbeats_total{pool="claude-scripted"}'
    before = scripted.metric(beats)
    with client.messages.stream(**ask(broken="stall")) as stream:
        assert "".join(stream.text_stream) == TEXT
        assert stream.get_final_message().stop_reason == "end_turn"
    assert scripted.metric(beats) >= before + 3


def test_leaving_the_with_block_cancels_a_stream(client, scripted, request_id):
    with client.messages.stream(**ask("claude", request_id=request_id, max_tokens=2000)) as stream:
        next(iter(stream.text_stream))
    assert scripted.ended(request_id)["ended_by"] == "client_closed"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "status, kind",
    [
        (400, anthropic.BadRequestError),
        (404, anthropic.NotFoundError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
        (529, anthropic.InternalServerError),
    ],
)
def test_an_upstreams_status_is_its_typed_error(stream, status, kind, client):
    with pytest.raises(kind) as raised:
        client.messages.create(**ask(script=str(status)), stream=stream)
    assert raised.value.status_code == status
    assert raised.value.body["error"]["message"] == "engine on fire"


def test_a_wrong_key_is_an_authentication_error(scripted):
    with client_for(scripted, "sk-test-nobody-9999") as client, pytest.raises(anthropic.AuthenticationError) as raised:
        client.messages.create(**ask())
    assert raised.value.body["error"]["type"] == "authentication_error"
    assert raised.value.response.headers["x-request-id"]


def test_an_unknown_model_is_a_not_found_error(client):
    with pytest.raises(anthropic.NotFoundError) as raised:
        client.messages.create(**ask("nope"))
    assert raised.value.body["error"]["type"] == "not_found_error"


def test_a_bad_member_is_a_bad_request_error(client):
    with pytest.raises(anthropic.BadRequestError) as raised:
        client.messages.create(**ask(max_tokens=-1))
    assert raised.value.body["error"]["type"] == "invalid_request_error"


def test_an_id_that_was_shown_is_a_conflict_that_is_not_tried_again(client, scripted, request_id):
    client.messages.create(**ask(request_id=request_id))
    scripted.ended(request_id)
    with pytest.raises(anthropic.ConflictError) as raised:
        client.with_options(max_retries=5).messages.create(**ask(request_id=request_id))
    assert raised.value.response.headers["x-should-retry"] == "false"
