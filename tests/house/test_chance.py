"""The same request and draw get the same answer, the same try the same fault; and the rest does not."""

import anthropic
import openai
import pytest

from dubito.errors import UsageError
from dubito.house.faults import Faults
from dubito.house.server import House
from tests.house.kit import POLICY, Asker, answer_in, anthropic_at, openai_at

PROTOCOLS = ("responses", "messages")
HALF = Faults(rate_limit=0.25, server_error=0.25)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_answers_repeat_for_a_draw_and_differ_over_draws(ask: Asker, protocol: str) -> None:
    first = [ask(protocol, draw=draw) for draw in range(24)]
    with House(policy=POLICY) as other, Asker(other) as again:
        assert [again(protocol, draw=draw) for draw in range(24)] == first, "to the byte, in another house too"
    answers = [answer_in(body) for _, body in first]
    assert {True, False} == set(answers)
    assert len({body for _, body in first}) == 24, "every draw is a reply of its own"


def test_answers_differ_over_requests(ask: Asker) -> None:
    answers = [answer_in(ask(protocol, str(prompt))[1]) for protocol in PROTOCOLS for prompt in range(20)]
    assert 5 < sum(answers) < 35
    assert answers[:20] != answers[20:]


def test_the_order_of_keys_is_not_part_of_a_request(house: House) -> None:
    texts = (
        '{"model":"house-random","input":"?","store":false}',
        '{"store":false, "input":"?","model":"house-random"}',
    )
    with openai_at(house) as client:
        replies = [client.post("/responses", cast_to=object, content=text.encode()) for text in texts]
    assert replies[0] == replies[1]
    assert len({call.request for call in house.calls[-2:]}) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_try_changes_the_fault_and_never_the_answer(protocol: str) -> None:
    with House(policy=POLICY, faults=HALF) as house, Asker(house) as ask:
        tries = [ask(protocol, attempt=attempt) for attempt in range(1, 33)]
        assert [ask(protocol, attempt=attempt) for attempt in range(1, 33)] == tries
        others = [ask(protocol, attempt=attempt, draw=1)[0] for attempt in range(1, 33)]
    statuses = [status for status, _ in tries]
    assert {200, 429, 500} <= set(statuses) <= {200, 429, 500, 529}
    assert 8 < statuses.count(200) < 24
    assert len({body for status, body in tries if status == 200}) == 1, "the answer is the draw's, not the try's"
    assert others != statuses, "a draw has faults of its own"


def test_no_fault_goes_away_as_faults_get_likelier() -> None:
    limited = []
    for share in (0.1, 0.6):
        with House(policy=POLICY, faults=Faults(rate_limit=share)) as house, Asker(house) as ask:
            limited.append({draw for draw in range(50) if ask("responses", draw=draw)[0] == 429})
    assert limited[0] < limited[1]


def test_a_rate_limit_names_its_wait() -> None:
    with House(policy=POLICY, faults=Faults(rate_limit=1, retry_after=0.02)) as house:
        with openai_at(house) as client, pytest.raises(openai.RateLimitError) as caught:
            client.responses.create(model="house-random", input="?")
        assert (caught.value.code, caught.value.type) == ("rate_limit_exceeded", "requests")
        assert caught.value.response.headers["retry-after"] == "0.02"
        assert caught.value.response.headers["x-ratelimit-remaining-requests"] == "0"
        with anthropic_at(house) as other, pytest.raises(anthropic.RateLimitError) as limited:
            other.messages.create(model="house-random", max_tokens=9, messages=[{"role": "user", "content": "?"}])
        assert (limited.value.type, limited.value.response.headers["retry-after"]) == ("rate_limit_error", "0.02")
        assert limited.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"


def test_a_failing_server_fails_as_its_provider_does() -> None:
    with House(policy=POLICY, faults=Faults(server_error=1)) as house, Asker(house) as ask:
        assert {ask("responses", draw=draw) for draw in range(20)} == {(500, "server_error")}
        said = {ask("messages", draw=draw) for draw in range(20)}
    assert said == {(500, "api_error"), (529, "overloaded_error")}


def test_a_wrong_key_is_no_fault() -> None:
    with House(policy=POLICY, faults=Faults(rate_limit=1)) as house, Asker(house, "wrong-key") as ask:
        assert ask("responses")[0] == 401


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"rate_limit": 1.5}, "rate-limit is a probability from 0 to 1, not 1.5"),
        ({"server_error": -0.1}, "server-error is a probability from 0 to 1, not -0.1"),
        ({"server_error": float("nan")}, "server-error is a probability from 0 to 1, not nan"),
        ({"rate_limit": 0.6, "server_error": 0.6}, "rate-limit and server-error together are at most 1, not 1.2"),
        ({"retry_after": float("inf")}, "retry-after is a number of seconds from 0, not inf"),
    ],
)
def test_impossible_faults_are_refused(shares: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Faults(**shares)
    assert str(caught.value) == message
