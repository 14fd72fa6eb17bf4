"""A stopped run waits only briefly for calls in flight. A run with another key variable is the same run."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from dubito.experiment.model_players import check_models
from dubito.experiment.run import play
from tests.experiment.kit import means, resolved
from tests.llm.kit import Incoming, NoWait, Response, Server, player_at, respond, rows, run_games, small


class Hangs:
    """Answers, but holds calls from number `first` on until it is released; then it sets `reached`."""

    def __init__(self, first: int, stop: threading.Event) -> None:
        self._first, self._stop = first, stop
        self.calls, self.released, self._lock = 0, threading.Event(), threading.Lock()

    def __call__(self, request: Incoming) -> Response:
        with self._lock:
            self.calls += 1
            holds = self.calls >= self._first
        if holds and not self.released.is_set():
            self._stop.set()
            self.released.wait(60)
        return respond(request.protocol)


@pytest.mark.parametrize("preflight", [False, True])
def test_hanging_calls_are_abandoned_at_the_worst_price(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, preflight: bool
) -> None:
    monkeypatch.setattr("dubito.llm.threads.STOP_GRACE_SECONDS", 0.1)
    folder, text = tmp_path / "run", list[str]()
    how = means(folder, in_flight=3, preflight=preflight, cache=tmp_path / "c1")
    assert isinstance(how.stop, threading.Event)
    hangs = Hangs(1 if preflight else 5, how.stop)
    with Server(hangs) as server:
        of = small(player_at(server), games=3, turns=6)
        cut = play(
            check_models(resolved(of), how.calls), folder, replace(how, model_progress=NoWait(notify=text.append))
        )
        open_calls = rows(folder, "SELECT count(*), sum(assumed), min(tokens) > 8192 FROM tries WHERE state = 'open'")
        hangs.released.set()
        resumed = run_games(of, folder, cache=tmp_path / "c2")
        whole = run_games(of, tmp_path / "whole", cache=tmp_path / "c3")
    assert cut.interrupted
    assert cut.failure is None
    count = open_calls[0][0]
    assert count > 0
    assert open_calls == [(count, count, 1)]
    assert preflight or "were abandoned and counted at their highest possible price" in text[-1]
    assert resumed.results_digest == whole.results_digest
    assert resumed.models["asker"].assumed == count


def test_added_api_key_variable_is_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANOTHER_KEY", "any")
    with Server(lambda request: respond(request.protocol)) as server:
        first, keyed = (small(player_at(server, api_key_env=name), games=2) for name in (None, "ANOTHER_KEY"))
        begun = run_games(first, tmp_path / "run")
        calls = len(server.requests)
        resumed = run_games(keyed, tmp_path / "run")
        assert len(server.requests) == calls
    assert resumed.results_digest == begun.results_digest
    assert resumed.experiment.digest() == begun.experiment.digest()
