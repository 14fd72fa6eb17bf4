"""The list of faults, their syntax, and the parts of a storm."""

from collections import Counter
from functools import cache

import pytest

from dubito.errors import UsageError
from dubito.house.faults import CONTENT_FAULTS, MIXES, SLOW, TRANSPORT_FAULTS, Faults
from dubito.house.request import HouseRequest

MANY = 6_000


@cache
def make_request(draw: int) -> HouseRequest:
    headers = {"x-dubito-draw": str(draw), "x-dubito-try": "1"}
    return HouseRequest.parse("chat", "/v1", "/v1/chat/completions", headers, b'{"model":"m"}')


def of_tries(faults: Faults) -> list[str | None]:
    struck = [faults.find_for_try(make_request(draw)) for draw in range(MANY)]
    return [None if one is None else one[0] for one in struck]


def of_replies(faults: Faults) -> list[str | None]:
    return [faults.find_for_reply(make_request(draw)) for draw in range(MANY)]


def test_no_call_fails_without_faults() -> None:
    assert set(of_tries(Faults())) == set(of_replies(Faults())) == {None}


def test_each_fault_has_its_share() -> None:
    faults = Faults(rate_limit=0.1, cut_body=0.2, prose=0.3, refusal=0.1)
    tries, replies = Counter(of_tries(faults)), Counter(of_replies(faults))
    shares = [tries["rate_limit"], tries["cut_body"], replies["prose"], replies["refusal"]]
    assert shares == pytest.approx([0.1 * MANY, 0.2 * MANY, 0.3 * MANY, 0.1 * MANY], rel=0.13)
    assert set(tries) == {None, "rate_limit", "cut_body"}
    assert set(replies) == {None, "prose", "refusal"}


def test_faults_of_tries_and_replies_are_independent() -> None:
    faults = Faults(dropped=0.5, prose=0.5)
    both = sum(a is not None and b is not None for a, b in zip(of_tries(faults), of_replies(faults), strict=True))
    assert both == pytest.approx(0.25 * MANY, rel=0.1)


def test_storm_affects_two_thirds_tries_and_one_third_replies() -> None:
    faults = Faults(storm=0.3)
    tries, replies = Counter(of_tries(faults)), Counter(of_replies(faults))
    assert MANY - tries[None] == pytest.approx(0.2 * MANY, rel=0.1)
    assert MANY - replies[None] == pytest.approx(0.1 * MANY, rel=0.1)
    assert set(tries) - {None} == set(TRANSPORT_FAULTS) - SLOW
    assert set(replies) - {None} == set(CONTENT_FAULTS)


def test_mix_can_be_alone_or_added_to_other_faults() -> None:
    assert None not in of_tries(Faults(transport=1))
    assert None not in of_replies(Faults(content=1))
    more = Counter(of_tries(Faults(transport=0.13, dropped=0.5)))
    assert more["dropped"] == pytest.approx(0.51 * MANY, rel=0.1)
    assert all(sum(mix.values()) == pytest.approx(1) for mix in MIXES.values())


def test_faults_are_spelled_as_names_and_numbers() -> None:
    spelled = Faults.parse("rate_limit:0.5, retry_after:0.02,size:1e6,prose:1")
    struck = {str(spelled.find_for_try(make_request(draw))) for draw in range(50)}
    assert struck == {"None", str(Faults(rate_limit=1, retry_after=0.02).find_for_try(make_request(0)))}
    assert (spelled.find_for_reply(make_request(0)), spelled.parameters.size) == ("prose", 1_000_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("storm", "write faults as NAME:SHARE, such as storm:0.3 or rate_limit:0.1,server_error:0.1, not 'storm'"),
        ("storm:0.1,", "write faults as NAME:SHARE, such as storm:0.3 or rate_limit:0.1,server_error:0.1, not ''"),
        ("storms:0.3", "unknown fault 'storms': did you mean 'storm'?"),
        ("prose:0.1,prose:0.2", "the fault 'prose' appears twice"),
        ("rate_limit:1.5", "rate_limit must be a probability from 0 to 1, not 1.5"),
        ("server_error:nan", "server_error must be a probability from 0 to 1, not nan"),
        ("rate_limit:0.6,dropped:0.6", "the shares of faults of tries must add up to at most 1, not 1.2"),
        ("content:0.6,prose:0.6", "the shares of faults of replies must add up to at most 1, not 1.2"),
        ("retry_after:inf", "retry_after must be a non-negative number, not inf"),
    ],
)
def test_impossible_faults_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Faults.parse(text)
    assert str(caught.value) == message
