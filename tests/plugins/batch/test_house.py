"""The built-in model server's batches through the providers' SDKs."""

import json
from typing import Any

import anthropic
import openai
import pytest

from dubito.house.faults import Faults
from dubito.house.server import House
from tests.house.kit import anthropic_at, openai_at

MODEL = "house-random"
NAMES = [f"b-draw{number}-request-1" for number in range(3)]
ASKED: list[Any] = [{"role": "user", "content": "?"}]


def handed_in(client: openai.OpenAI, *bodies: dict[str, Any]) -> str:
    """Submit a batch of these bodies and return its id."""
    lines = [
        {"custom_id": name, "method": "POST", "url": "/v1/responses", "body": body}
        for name, body in zip(NAMES, bodies, strict=False)
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    file = client.files.create(file=("some.jsonl", content), purpose="batch")
    batch = client.batches.create(
        input_file_id=file.id, endpoint="/v1/responses", completion_window="24h", metadata={"a": "b"}
    )
    assert (batch.status, batch.metadata) == ("in_progress", {"a": "b"})
    assert batch.request_counts is not None
    assert batch.request_counts.total == len(bodies)
    return batch.id


def test_batched_responses_match_single_ones() -> None:
    good = {"model": MODEL, "input": ASKED}
    with House() as house, openai_at(house) as client:
        made = handed_in(client, good, {"model": "nobody", "input": ASKED}, good)
        batch = client.batches.retrieve(made)
        assert batch.status == "completed"
        assert batch.output_file_id is not None
        assert batch.error_file_id is not None
        replies = [json.loads(line) for line in client.files.content(batch.output_file_id).text.splitlines()]
        assert [reply["custom_id"] for reply in replies] == [NAMES[0], NAMES[2]]
        for reply in replies:
            draw = {"x-dubito-draw": reply["custom_id"].split("-")[1]}
            live = client.responses.with_raw_response.create(model=MODEL, input=ASKED, extra_headers=draw).http_response
            assert reply["response"]["body"] == live.json() | {"service_tier": "batch"}
        (refused,) = [json.loads(line) for line in client.files.content(batch.error_file_id).text.splitlines()]
        assert (refused["custom_id"], refused["response"]["status_code"]) == (NAMES[1], 404)
        others = [handed_in(client, good) for _ in range(2)]
        assert [each.id for each in client.batches.list(limit=1)] == [*reversed(others), made]
        with pytest.raises(openai.NotFoundError):
            client.batches.retrieve("batch_none")
    digests = [call.request for call in house.calls if call.status == 200]
    assert len(set(digests)) == 1, "requests in a batch equal live requests"


def test_house_answers_a_batch_of_messages() -> None:
    params: Any = {"model": MODEL, "max_tokens": 100, "messages": ASKED}
    hour: Any = {"type": "ephemeral", "ttl": "1h"}
    system: Any = [{"type": "text", "text": "Be.", "cache_control": hour}]
    with House() as house, anthropic_at(house) as client:
        requests: Any = [
            {"custom_id": NAMES[0], "params": params | {"system": system}},
            {"custom_id": NAMES[1], "params": params | {"model": "nobody"}},
        ]
        made = client.messages.batches.create(requests=requests)
        assert (made.processing_status, made.request_counts.processing) == ("in_progress", 2)
        batch = client.messages.batches.retrieve(made.id)
        assert (batch.processing_status, batch.request_counts.succeeded, batch.request_counts.errored) == (
            "ended",
            1,
            1,
        )
        good, bad = client.messages.batches.results(made.id)
        assert good.result.type == "succeeded"
        assert good.result.message.usage.service_tier == "batch"
        assert bad.result.type == "errored"
        assert bad.result.error.error.type == "not_found_error"
        assert [each.id for each in client.messages.batches.list(limit=1)] == [made.id]
        with pytest.raises(anthropic.NotFoundError):
            client.messages.batches.retrieve("msgbatch_none")
        del hour["ttl"]
        client.messages.create(**params, system=system)
    at_once, in_batch = house.calls[-1], house.calls[0]
    assert at_once.request == in_batch.request, "the request equals the live one"


def test_failed_batch_states_the_reason() -> None:
    with House(faults=Faults(failed_batch=1)) as house, openai_at(house) as client:
        batch = client.batches.retrieve(handed_in(client, {"model": MODEL, "input": ASKED}))
        assert (batch.status, batch.output_file_id, batch.error_file_id) == ("failed", None, None)
        assert batch.errors is not None
        assert batch.errors.data
    assert house.calls == []
