"""Every fault of the built-in server and its effect, through the real SDKs and the whole pipeline.

A new fault that is missing from these tables fails a test.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pytest

from dubito.house.faults import CONTENT_FAULTS, TRANSPORT_FAULTS, Faults
from dubito.house.server import House
from dubito.llm.request import AccountFault
from dubito.model_settings import Api
from tests.conftest import in_gate
from tests.hostile.kit import Desk
from tests.llm.kit import PROTOCOLS

MODEL: Final = ("model", None)
AROUND: Final = ("malformed", "there is text or a code fence before or after the JSON object")
NO_JSON: Final = ("malformed", "it is not JSON")
NO_BOOL: Final = ("malformed", "`answer` is neither true nor false (without quotes)")
NO_TEXT: Final = ("malformed", "it has no text")
OTHERS: Final = ("malformed", "it has fields other than `answer`")
CUT_OFF: Final = ("truncated", "was cut off before the answer. Think less this time")
REFUSED: Final = ("refused", "\n\nThis is a card game among programs; bluffing is part of its rules")
TWINS: Final = ("malformed", "a key appears twice")
NO_REPLY: Final = ("unreachable", None)
MISSING: Final = ("malformed", "the field `answer` is missing")

REPLIES: Final[Mapping[str, tuple[str, str | None]]] = {  # fault -> outcome or cause, and words of the re-ask
    "fenced": AROUND,
    "prose": AROUND,
    "escapes": AROUND,
    "wrong_string": NO_BOOL,
    "wrong_number": NO_BOOL,
    "wrong_null": NO_BOOL,
    "nan": NO_JSON,
    "deep": NO_JSON,
    "surrogate": NO_JSON,
    "no_answer": MISSING,
    "duplicate_keys": TWINS,
    "extra_fields": OTHERS,
    "empty_text": NO_TEXT,
    "no_output": NO_TEXT,
    "reasoning_only": ("malformed", "no text"),
    "reasoning_cut": CUT_OFF,
    "cut_off": CUT_OFF,
    "refusal": REFUSED,
    "content_filter": REFUSED,
    "unknown_fields": MODEL,
    "huge": MODEL,
    "no_usage": MODEL,
    "bad_usage": MODEL,
    "deep_body": NO_REPLY,
    "truncated_json": NO_REPLY,
    "broken_json": NO_REPLY,
    "wrong_shape": NO_REPLY,
    "empty_body": NO_REPLY,
    "html": NO_REPLY,
}

TRIES: Final[Mapping[str, str]] = {  # transport fault -> kind of failure, in every protocol
    "rate_limit": "rate_limit",
    "rate_limit_bare": "rate_limit",
    "rate_limit_ms": "rate_limit",
    "rate_limit_date": "rate_limit",
    "rate_limit_garbled": "rate_limit",
    "rate_limit_long": "rate_limit",
    "server_error": "server",
    "bad_gateway": "server",
    "unavailable": "server",
    "overloaded": "server",
    "reset": "connection",
    "dropped": "connection",
    "cut_headers": "connection",
    "cut_body": "connection",
    "stall": "deadline",
    "stall_body": "deadline",
    "trickle": "deadline",
}
STRUCK: Final = {  # the gate takes one of those that are parsed the same way
    *("fenced", "wrong_string", "nan", "extra_fields", "reasoning_only", "reasoning_cut", "refusal", "no_usage"),
    *("deep_body", "html", "rate_limit", "rate_limit_long", "server_error", "dropped", "cut_body", "stall_body"),
}
ENDLESS: Final = {name for name, kind in TRIES.items() if kind == "deadline"}


@pytest.fixture(scope="module")
def struck(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Open a pipeline to a built-in server that always has one fault."""
    shares: dict[str, Any] = {request.param: 1.0}
    with (
        House(faults=Faults(retry_after=0.25, **shares)) as house,
        Desk(tmp_path_factory.mktemp("desk"), lambda api, _: house.base_url(api), patience=60) as desk,
    ):
        yield desk


def test_the_tables_have_every_fault_of_the_house() -> None:
    assert set(REPLIES) == set(CONTENT_FAULTS)
    assert set(TRIES) == set(TRANSPORT_FAULTS)


def pairs(faults: Iterable[str]) -> list[Any]:
    taken = [fault for fault in faults if fault in STRUCK]
    kept = [(PROTOCOLS[number % 3], fault) for number, fault in enumerate(taken)]
    return in_gate([(protocol, fault) for protocol in PROTOCOLS for fault in faults], kept)


@pytest.mark.parametrize(("protocol", "struck"), pairs(CONTENT_FAULTS), indirect=["struck"])
def test_content_fault_is_answered_or_has_a_cause(struck: Desk, protocol: Api, request: pytest.FixtureRequest) -> None:
    """The reply is an answer or has a cause, and the re-ask states what was wrong and what is expected."""
    fault = request.node.callspec.params["struck"]
    expected, words = REPLIES[fault]
    decided = struck.decide(protocol)
    if expected == "unreachable":
        assert (decided.outcome, decided.answer, decided.asked_again) == ("fallback:unreachable", None, None)
        assert len(decided.tries) >= 3
        assert set(decided.tries) == {"server"}, "it is retried and never used as a reply"
        return
    if words is None:
        assert (decided.outcome, decided.tries, decided.asked_again) == (expected, ("received",), None)
        assert type(decided.answer) is bool
    else:
        assert (decided.outcome, decided.answer) == (f"fallback:{expected}", None)
        assert decided.tries == ("received", "received"), "a complete reply leads to a re-ask, not a retry"
        assert decided.asked_again is not None
        assert words in decided.asked_again
        assert '{"answer": true} or {"answer": false}' in decided.asked_again
    assert set(decided.assumed) == {not CONTENT_FAULTS[fault].has_usage}, "the cost is either known or assumed"
    assert struck.clock.slept == []


@pytest.mark.parametrize(("protocol", "struck"), pairs(TRANSPORT_FAULTS), indirect=["struck"])
def test_a_transport_fault_that_does_not_end(struck: Desk, protocol: Api, request: pytest.FixtureRequest) -> None:
    """Each try fails with its own kind, and the request ends as unreachable.

    Giving up takes 14 tries instead of 12 with `tries: 3`, because probes are answered from the third try on. Rate
    limits use up no tries.
    """
    fault = request.node.callspec.params["struck"]
    before = struck.clock.now
    settings: dict[str, Any] = {"tries": 3, "retry_after_cap": 7, "deadline": 0.05 if fault in ENDLESS else 20}
    if TRIES[fault] == "rate_limit":
        with pytest.raises(AccountFault, match=r"cannot be reached: no answer for|asks to wait"):
            struck.decide(protocol, **settings)
        return
    decided = struck.decide(protocol, **settings)
    assert decided.outcome == "fallback:unreachable"
    assert set(decided.tries) == {TRIES[fault]}
    assert len(decided.tries) == 14 or fault in ENDLESS, "probes have the same short deadline and can exceed it"
    assert decided.asked_again is None, "an unreachable model cannot be asked again"
    billed = TRIES[fault] in ("connection", "deadline")
    assert set(decided.assumed) == {billed}, "the request was sent and may have been answered"
    if fault not in ENDLESS:
        # Maximum seconds between tries (full jitter), and before each probe.
        between, probes = 0.5 + 1 + 2 + 10 * 4, 11 * 0.5
        assert struck.clock.now - before <= between + probes
