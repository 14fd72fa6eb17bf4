"""Runs against servers with limits have no fallbacks and the same digest as an unlimited run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.model_settings import Api
from tests.conftest import in_gate
from tests.foreign.kit import play_at
from tests.foreign.limits import Bucket, Window
from tests.foreign.server import Answer, Foreign, Habits, by_the_question
from tests.llm.kit import error_body, outcomes_of, rows

SCALE: Final = 30.0  # acceleration of both clocks
QUICK: Final = (0.2, 0.6)  # seconds per answer
GAMES: Final = 8
A_CALL: Final = 11_000.0  # approximate tokens, including the maximum output

LIMITED: Final[dict[str, Callable[[], Habits]]] = {
    "small bursts": lambda: Habits([Bucket(90, 4)], headers="openai", retry_after="ms", latency=QUICK, scale=SCALE),
    "large bursts": lambda: Habits([Bucket(90, 20)], headers="openai", retry_after="exact", latency=QUICK, scale=SCALE),
    "whole seconds": lambda: Habits([Bucket(90, 4)], retry_after="whole", latency=QUICK, scale=SCALE),
    "no limits stated": lambda: Habits([Bucket(90, 4)], latency=QUICK, scale=SCALE),
    "moments": lambda: Habits([Bucket(60, 5)], headers="anthropic", retry_after="whole", latency=QUICK, scale=SCALE),
    "tokens": lambda: Habits(tokens=[Bucket(90 * A_CALL, 4 * A_CALL)], headers="openai", latency=QUICK, scale=SCALE),
    "a fixed minute": lambda: Habits([Window(20, 12.0)], retry_after="whole", latency=QUICK, scale=SCALE),
}


@pytest.fixture(scope="module")
def unlimited(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the results digest of a run without a rate limit."""
    with Foreign(Habits(latency=QUICK, scale=SCALE)) as server:
        run = play_at(server, tmp_path_factory.mktemp("free") / "run", 32, games=GAMES)
    assert run.failure is None
    return run.results_digest


@pytest.mark.parametrize(
    ("limits", "in_flight"),
    in_gate(
        [("small bursts", 1), ("no limits stated", 1), *((limits, many) for many in (32, 128) for limits in LIMITED)],
        [("no limits stated", 128), ("moments", 32), ("a fixed minute", 32)],
    ),
)
def test_rate_limit_does_not_change_results(tmp_path: Path, unlimited: str, limits: str, in_flight: int) -> None:
    with Foreign(LIMITED[limits]()) as server:
        run = play_at(server, tmp_path / "run", in_flight, games=GAMES)
    assert run.failure is None
    assert outcomes_of(tmp_path / "run").keys() == {"model"}
    assert run.results_digest == unlimited
    if limits == "no limits stated" and in_flight > 1:
        assert server.count(429) > 0, "the limit must be reached"


@pytest.mark.parametrize(
    ("seconds", "in_flight"),
    in_gate([(seconds, many) for many in (1, 32) for seconds in (1, 3, 8, 20)], [(8, 1), (20, 32)]),
)
def test_burst_of_errors_causes_no_fallback(tmp_path: Path, unlimited: str, seconds: int, in_flight: int) -> None:
    habits = Habits(latency=QUICK, overloaded=(10, seconds), scale=SCALE)
    with Foreign(habits) as server:
        run = play_at(server, tmp_path / "run", in_flight, games=GAMES)
    assert server.count(529) > 0
    assert run.failure is None
    assert outcomes_of(tmp_path / "run").keys() == {"model"}
    assert run.results_digest == unlimited


def test_exhausted_daily_limit_stops_the_run_which_can_resume(tmp_path: Path, unlimited: str) -> None:
    day = Window(20, 86_400.0)
    with Foreign(Habits([day], retry_after="whole", latency=QUICK, scale=SCALE)) as server:
        cut = play_at(server, tmp_path / "run", 8, games=GAMES)
        assert "asks to wait" in str(cut.failure)
        assert "`patience` is 30 min" in str(cut.failure)
        assert server.count(429) <= 8, "no calls are sent during the wait"
        day.limit = 10**6
        run = play_at(server, tmp_path / "run", 8, games=GAMES)
    assert run.failure is None
    assert run.results_digest == unlimited


def test_filter_that_declines_some_questions_does_not_stop_the_run(tmp_path: Path) -> None:
    def filtered(protocol: object, body: dict[str, object]) -> dict[str, object] | Answer:
        response = by_the_question("chat", body)
        if sum(str(body).encode()) % 15 == 0:
            return Answer(400, error_body("chat", "content_policy_violation", "Your request was rejected."))
        return response

    with Foreign(Habits(latency=QUICK, scale=SCALE), filtered) as server:
        run = play_at(server, tmp_path / "run", 32, games=GAMES)
    assert run.failure is None
    assert server.count(400) > 0
    found = outcomes_of(tmp_path / "run")
    assert found.keys() <= {"model", "model_after_reask", "fallback:refused"}
    assert rows(tmp_path / "run", "SELECT DISTINCT kind FROM tries WHERE state = 'failed'") == [("refused",)]


SICK: Final[dict[str, tuple[float, int, dict[str, Any]]]] = {  # share of failing calls, games in flight, habits
    "three of ten": (0.3, 32, {"failures": ("502", "reset")}),
    "six of ten": (0.6, 32, {"failures": ("502", "reset")}),
    "six of ten, a game at a time": (0.6, 1, {}),
    "nine of ten": (0.9, 32, {}),
    "no answer": (0.3, 32, {"failures": ("silence",)}),
}


@pytest.mark.parametrize("sick", in_gate(SICK, ["six of ten", "six of ten, a game at a time"]))
def test_random_failures_cause_no_fallback(tmp_path: Path, unlimited: str, sick: str) -> None:
    share, in_flight, how = SICK[sick]
    with Foreign(Habits(latency=QUICK, scale=10 * SCALE, sick=share, **how)) as server:
        run = play_at(server, tmp_path / "run", in_flight, games=GAMES, deadline=2.0)
    assert run.failure is None
    assert outcomes_of(tmp_path / "run").keys() == {"model"}
    assert run.results_digest == unlimited


@pytest.mark.at_length
def test_questions_never_answered_end_as_unreachable(tmp_path: Path) -> None:
    """Six of ten calls fail, but only the questions that never get an answer are unreachable.

    Each run has the same ones.
    """

    def poisoned(protocol: Api, body: dict[str, Any]) -> dict[str, Any] | Answer:
        if len(str(body)) % 10 == 0:
            return Answer(500, error_body(protocol, "server_error", "The server had an error while processing it."))
        return by_the_question(protocol, body)

    runs = []
    for in_flight in (1, 32):
        with Foreign(Habits(latency=QUICK, scale=10 * SCALE, sick=0.6), poisoned) as server:
            runs.append(play_at(server, tmp_path / f"{in_flight}", in_flight, games=GAMES))
        found = outcomes_of(tmp_path / f"{in_flight}")
        assert found.keys() == {"model", "fallback:unreachable"}
        assert server.count(500) <= 100 * found["fallback:unreachable"]
    assert [run.failure for run in runs] == [None, None]
    assert runs[0].results_digest == runs[1].results_digest
