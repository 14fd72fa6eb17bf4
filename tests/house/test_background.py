"""The house's background responses, as the provider's own SDK sees them."""

from typing import Any

import openai
import pytest

from dubito.house.faults import Faults
from dubito.house.server import House
from tests.house.kit import openai_at

MODEL = "house-random"
ASKED: list[Any] = [{"role": "user", "content": "?"}]
WAITS: Any = {
    "model": MODEL,
    "input": ASKED,
    "background": True,
    "background_options": {"completion_window": "2h"},
    "metadata": {"dubito": "b-draw-request-1", "mine": "m"},
}


def test_a_background_response_is_answered_as_one_at_once() -> None:
    with House() as house, openai_at(house) as client:
        made = client.responses.create(**WAITS)
        assert (made.status, made.output, made.background) == ("queued", [], True)
        found = client.responses.retrieve(made.id)
        live = client.responses.create(
            model=MODEL, input=ASKED, store=False, metadata={"mine": "m"}, extra_headers={"x-dubito-draw": "draw"}
        )
        assert (found.status, found.output_text, found.usage) == ("completed", live.output_text, live.usage)
        assert (found.id, found.metadata, live.background) == (made.id, WAITS["metadata"], False)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve("resp_none")
        with pytest.raises(openai.BadRequestError, match="completion_window"):
            client.responses.create(**WAITS | {"background_options": {"completion_window": "1h"}})
    assert len({call.request for call in house.calls if call.status == 200}) == 1


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("late_response", ["queued", "queued", "queued", "completed"]),
        ("failed_response", ["failed"]),
        ("expired_response", ["failed"]),
        ("cut_off", ["incomplete"]),
        ("truncated_json", ["failed"]),
    ],
)
def test_what_becomes_of_one(fault: str, said: list[str]) -> None:
    with House(faults=Faults(**{fault: 1.0})) as house, openai_at(house) as client:
        made = client.responses.create(**WAITS)
        assert [client.responses.retrieve(made.id).status for _ in said] == said


def test_a_lost_id_and_a_post_that_is_made_again() -> None:
    with House(faults=Faults(lost_response=1.0, unavailable=0.5)) as house, openai_at(house) as client:
        refused = 0
        for _ in range(20):  # each is another try
            try:
                made = client.responses.create(**WAITS)
                break
            except openai.InternalServerError:
                refused += 1
        assert refused
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(made.id)
