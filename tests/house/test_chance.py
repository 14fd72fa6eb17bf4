"""Equal requests and draws get equal answers, equal tries get equal faults, and others differ."""

import pytest

from dubito.house.faults import Faults
from dubito.house.server import House
from tests.conftest import in_gate
from tests.house.kit import POLICY, PROTOCOLS, Asker, answer_in, openai_at

HALF = Faults(rate_limit=0.25, server_error=0.25)


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["responses"]))
def test_answers_repeat_for_a_draw_and_differ_over_draws(ask: Asker, protocol: str) -> None:
    first = [ask(protocol, draw=draw) for draw in range(24)]
    with House(policy=POLICY) as other, Asker(other) as again:
        assert [again(protocol, draw=draw) for draw in range(24)] == first, "another server returns the same bytes"
    answers = [answer_in(body) for _, body in first]
    assert {True, False} == set(answers)
    assert len({body for _, body in first}) == 24, "every draw has a different reply"


def test_answers_differ_over_requests(ask: Asker) -> None:
    answers = [answer_in(ask(protocol, str(prompt))[1]) for protocol in PROTOCOLS for prompt in range(20)]
    assert 10 < sum(answers) < 50
    assert answers[:20] != answers[20:40] != answers[40:], "the protocol is part of the request"


def test_the_order_of_keys_is_not_part_of_a_request(house: House) -> None:
    texts = (
        '{"model":"house-random","input":"?","store":false}',
        '{"store":false, "input":"?","model":"house-random"}',
    )
    with openai_at(house) as client:
        replies = [client.post("/responses", cast_to=object, content=text.encode()) for text in texts]
    assert replies[0] == replies[1]
    assert len({call.request for call in house.calls[-2:]}) == 1


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["messages"]))
def test_a_try_changes_the_fault_and_never_the_answer(protocol: str) -> None:
    with House(policy=POLICY, faults=HALF) as house, Asker(house) as ask:
        tries = [ask(protocol, attempt=attempt) for attempt in range(1, 33)]
        assert [ask(protocol, attempt=attempt) for attempt in range(1, 33)] == tries
        others = [ask(protocol, attempt=attempt, draw=1)[0] for attempt in range(1, 33)]
    statuses = [status for status, _ in tries]
    assert {200, 429, 500} == set(statuses)
    assert 8 < statuses.count(200) < 24
    assert len({body for status, body in tries if status == 200}) == 1, "the answer depends on the draw, not on the try"
    assert others != statuses, "faults depend on the draw"


def test_faults_only_increase_with_their_probability() -> None:
    limited = []
    for share in (0.3, 0.6):
        with House(policy=POLICY, faults=Faults(rate_limit=share)) as house, Asker(house) as ask:
            limited.append({draw for draw in range(25) if ask("responses", draw=draw)[0] == 429})
    assert set() < limited[0] < limited[1]


@pytest.mark.parametrize("protocol", in_gate(PROTOCOLS, ["chat"]))
def test_content_fault_belongs_to_the_reply(protocol: str) -> None:
    with House(policy=POLICY, faults=Faults(prose=0.5)) as house, Asker(house) as ask:
        replies = [[ask(protocol, draw=draw, attempt=attempt) for attempt in (1, 2)] for draw in range(20)]
        struck = [call.fault for call in house.calls[::2]]
    assert all(reply == tries[0] for tries in replies for reply in tries)
    assert 3 < struck.count("prose") < 17, "faults depend on the draw"


def test_a_try_that_passes_gets_the_same_reply_under_any_faults() -> None:
    content = {"fenced": 0.3, "refusal": 0.3}
    replies = []
    for transport in ({}, {"dropped": 0.3, "server_error": 0.3}):
        with House(policy=POLICY, faults=Faults(**content, **transport)) as house, Asker(house) as ask:
            replies.append({draw: ask("chat", draw=draw) for draw in range(40)})
    passed = {draw for draw, (status, _) in replies[1].items() if status == 200}
    assert 5 < len(passed) < 30
    assert all(replies[0][draw] == replies[1][draw] for draw in passed)


def test_wrong_key_is_refused_before_faults() -> None:
    with House(policy=POLICY, faults=Faults(rate_limit=1)) as house, Asker(house, "wrong-key") as ask:
        assert ask("responses")[0] == 401
