"""One request warms a provider's cache before others with the same beginning are sent."""

import threading
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import pytest

from dubito.errors import Interrupted
from dubito.llm.limiter import Timing
from dubito.llm.warm_up import PromptPrefixes, prefix_digest
from tests.llm.kit import Clock, Incoming, Response, Server, ask, player_at, respond, run_games, small

AT_ONCE: Final = 6


class WritingServer:
    """Like providers, writes a beginning to its cache for each request that arrives before the first reply."""

    def __init__(self) -> None:
        self.written = Counter[str]()
        self._kept, self._changed = set[str](), threading.Condition()
        self.failing: set[str] = set()  # beginnings whose first request is rejected

    def __call__(self, request: Incoming) -> Response:
        start = request.conversation[0]["content"]
        with self._changed:
            if start in self.failing:
                self.failing.remove(start)
                return Response(500, "{}")
            if start not in self._kept:
                self.written[start] += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self.written[start] > 1, 0.2)  # wait for further requests
                self._kept.add(start)
        return respond("responses")


def play(server: Server, folder: Path, **more: Any) -> Any:
    of = small(player_at(server, **more), games=AT_ONCE, turns=6)
    return run_games(of, folder, in_flight=AT_ONCE, preflight=False)


def test_each_prefix_is_cached_once_with_many_calls_in_flight(tmp_path: Path) -> None:
    writing = WritingServer()
    with Server(writing) as server:
        run = play(server, tmp_path / "run")
    assert run.failure is None
    assert len(writing.written) == 3, "one write per seat"
    assert set(writing.written.values()) == {1}
    assert len(server.requests) > 2 * AT_ONCE


def test_failed_first_request_releases_the_rest(tmp_path: Path) -> None:
    writing = WritingServer()
    with Server(writing) as server:
        writing.failing = {"x"}
        play(server, tmp_path / "once")
        writing.failing, writing.written = {*writing.written}, Counter()
        run = play(server, tmp_path / "run", sample=1)
    assert run.failure is None
    assert not writing.failing
    assert run.models["asker"].outcomes == {"model": run.models["asker"].decisions}


def beginnings(clock: Clock, stops: bool = False) -> PromptPrefixes:
    timing = Timing(1e9, clock.sleep, lambda why: nullcontext(), clock, lambda: stops)
    return PromptPrefixes(timing)


def is_alone(of: PromptPrefixes, number: int) -> bool:
    with of.turn(ask(number).request):
        return not of._known[prefix_digest(ask(number).request)].ready.is_set()


def test_expired_prefix_is_warmed_up_again() -> None:
    clock = Clock()
    of = beginnings(clock)
    assert is_alone(of, 1)
    clock.now = 299
    assert not is_alone(of, 1)
    clock.now = 599
    assert not is_alone(of, 1), "each use extends its lifetime"
    clock.now = 900
    assert is_alone(of, 1)


def test_stop_interrupts_the_wait_for_the_first_request() -> None:
    of = beginnings(Clock(), stops=True)
    with of.turn(ask().request), pytest.raises(Interrupted), of.turn(ask(5).request):
        pytest.fail("the first call has not ended")


def test_unshared_prefixes_are_forgotten() -> None:
    of = beginnings(Clock())
    for number in range(3_000):
        request = ask(model=f"m{number}").request
        with of.turn(request):
            pass
    assert len(of._known) <= 1_000
