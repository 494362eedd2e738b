"""The official `anthropic` Python SDK with the simulator, which later stands behind the gateway's own route."""

import anthropic
import pytest


@pytest.fixture
def client(ground):
    url = f"http://{ground.sim_addr}"
    with anthropic.Anthropic(api_key="none", base_url=url, max_retries=0, timeout=20) as made:
        yield made


def ask(**more):
    return {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hello there"}], **more}


def test_the_simulator_streams_to_it(client):
    with client.messages.stream(**ask()) as stream:
        texts = list(stream.text_stream)
        message = stream.get_final_message()
    assert len(texts) == 8
    assert (message.usage.input_tokens, message.usage.output_tokens) == (2, 8)
    assert message.stop_reason


def test_the_simulator_answers_it_whole(client):
    message = client.messages.create(**ask())
    assert message.content[0].text
    assert message.usage.output_tokens == 8


def test_the_simulators_error_is_its_own_typed_error(client):
    with pytest.raises(anthropic.InternalServerError):
        client.messages.create(**ask(), extra_headers={"X-Sim": "status=503"})
