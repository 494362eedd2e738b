"""The official `openai` Python SDK through the gateway: streams, leaves, and gets its own typed errors."""

import asyncio

import openai
import pytest
from ground import KEY, OTHER_KEY

MESSAGES = [{"role": "user", "content": "hello there"}]


def client_for(ground, key=KEY, kind=openai.OpenAI):
    """A client that shows each error at once instead of trying again."""
    return kind(api_key=key, base_url=ground.openai_url, max_retries=0, timeout=20)


@pytest.fixture
def client(ground):
    with client_for(ground) as made:
        yield made


def ask(client, request_id=None, fault=None, **more):
    headers = {}
    if request_id:
        headers["Idempotency-Key"] = request_id
    if fault:
        headers["X-Sim"] = fault
    members = {"model": "m", "messages": MESSAGES, "max_tokens": 8, **more}
    return client.chat.completions.create(extra_headers=headers, **members)


def texts(stream):
    return [c.choices[0].delta.content for c in stream if c.choices and c.choices[0].delta.content]


def test_a_stream_arrives_whole(client, ground, request_id):
    assert len(texts(ask(client, request_id, stream=True))) == 8
    record = ground.ended(request_id)
    assert (record["state"], record["generated_units"], record["delivered_units"]) == ("COMPLETED", 8, 8), record


def test_usage_comes_where_it_is_asked_for_and_only_there(client):
    options = {"include_usage": True}
    asked = [c.usage for c in ask(client, stream=True, stream_options=options) if c.usage]
    assert [(u.prompt_tokens, u.completion_tokens) for u in asked] == [(2, 8)]
    assert all(c.usage is None and c.choices for c in ask(client, stream=True))


def test_an_answer_that_is_not_streamed(client, ground, request_id):
    answer = ask(client, request_id)
    assert answer.choices[0].message.content
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (2, 8)
    assert answer._request_id == request_id
    record = ground.ended(request_id)
    assert (record["generated_units"], record["usage_source"]) == (8, "upstream"), record


def test_closing_a_stream_cancels_it(client, ground, request_id):
    stream = ask(client, request_id, stream=True, max_tokens=2000)
    for _ in range(5):
        next(stream)
    stream.close()
    record = ground.ended(request_id)
    assert (record["state"], record["ended_by"]) == ("CANCELLED", "client_closed"), record
    assert 0 < record["charged_units"] < record["reserved_units"], record


def test_leaving_the_with_block_cancels_a_stream(client, ground, request_id):
    with ask(client, request_id, stream=True, max_tokens=2000) as stream:
        next(iter(stream))
    assert ground.ended(request_id)["ended_by"] == "client_closed"


def test_a_cancelled_task_cancels_its_stream(ground, request_id):
    async def talk():
        async with client_for(ground, kind=openai.AsyncOpenAI) as client:
            started = asyncio.Event()

            async def read():
                async for _ in await ask(client, request_id, stream=True, max_tokens=2000):
                    started.set()

            task = asyncio.create_task(read())
            await asyncio.wait_for(started.wait(), 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(talk())
    assert ground.ended(request_id)["ended_by"] == "client_closed"


def test_a_time_out_before_the_first_byte_cancels_the_request(client, ground, request_id):
    with pytest.raises(openai.APITimeoutError):
        ask(client.with_options(timeout=0.3), request_id, fault="header-delay=30s")
    assert ground.ended(request_id)["ended_by"] == "client_closed"


def test_heartbeats_in_a_silence_are_nothing_to_the_sdk(client):
    assert len(texts(ask(client, stream=True, fault="stall=600ms@3"))) == 8


@pytest.mark.parametrize("fault", ["torn@3", "reset@3", "fin@3", "no-done", "error@3"])
def test_a_stream_that_breaks_raises_instead_of_completing(client, fault):
    seen = []
    with pytest.raises(openai.APIError) as raised:
        for chunk in ask(client, stream=True, fault=fault):
            seen += [chunk] if chunk.choices and chunk.choices[0].delta.content else []
    assert not isinstance(raised.value, (openai.APIConnectionError, openai.APIStatusError)), raised.value
    assert len(seen) == (8 if fault == "no-done" else 3)


def test_a_stream_cancelled_by_id_raises(client, ground, request_id):
    stream = ask(client, request_id, stream=True, max_tokens=2000)
    next(stream)
    client.post(f"{ground.url}/generations/{request_id}/cancel", cast_to=object)
    with pytest.raises(openai.APIError) as raised:
        for _ in stream:
            pass
    assert raised.value.code == "cancelled"
    assert ground.ended(request_id)["ended_by"] == "cancel_api"


def test_a_wrong_key_is_an_authentication_error(ground):
    with client_for(ground, key="sk-test-nobody-9999") as client, pytest.raises(openai.AuthenticationError) as raised:
        ask(client)
    assert (raised.value.status_code, raised.value.code) == (401, "invalid_api_key")
    assert raised.value.request_id


def test_an_unknown_model_is_a_not_found_error(client):
    with pytest.raises(openai.NotFoundError) as raised:
        ask(client, model="nope", stream=True)
    assert (raised.value.code, raised.value.type) == ("model_not_found", "invalid_request_error")


def test_anothers_model_is_a_permission_denied_error(ground):
    with client_for(ground, key=OTHER_KEY) as client, pytest.raises(openai.PermissionDeniedError) as raised:
        ask(client, model="n")
    assert raised.value.code == "model_not_allowed"


def test_no_free_slot_is_a_rate_limit_error_that_says_when_to_come_again(ground, request_id):
    with client_for(ground, key=OTHER_KEY) as client:
        with ask(client, request_id, stream=True, max_tokens=2000) as stream:
            next(iter(stream))
            with pytest.raises(openai.RateLimitError) as raised:
                ask(client)
        assert raised.value.code == "tenant_slots_full"
        assert int(raised.value.response.headers["retry-after"]) >= 1
        ground.ended(request_id, key=OTHER_KEY)
        assert ask(client).choices


def test_with_its_retries_the_sdk_gets_the_slot_in_the_end(ground, request_id):
    with client_for(ground, key=OTHER_KEY) as client:
        stream = ask(client, request_id, stream=True, max_tokens=20)
        next(stream)
        answer = ask(client.with_options(max_retries=5))
        assert answer.choices[0].message.content
        stream.close()


def test_a_bad_member_is_a_bad_request_error(client):
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, max_tokens=-1)
    assert raised.value.code == "invalid_request"


def test_an_id_that_was_shown_is_a_conflict_error_that_is_not_tried_again(client, ground, request_id):
    texts(ask(client, request_id, stream=True))
    ground.ended(request_id)
    with pytest.raises(openai.ConflictError) as raised:
        ask(client.with_options(max_retries=5), request_id, stream=True)
    assert raised.value.code == "request_already_shown"
    assert raised.value.response.headers["x-should-retry"] == "false"


def test_an_upstream_error_keeps_its_type(client):
    with pytest.raises(openai.InternalServerError) as raised:
        ask(client, fault="status=500")
    assert raised.value.status_code == 500


def test_the_models_are_listed(client, ground):
    assert sorted(model.id for model in client.models.list()) == ["m", "n"]
    with client_for(ground, key=OTHER_KEY) as other:
        assert [model.id for model in other.models.list()] == ["m"]
