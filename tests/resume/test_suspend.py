"""`provider_errors: suspend`: games without a reachable model are requeued, without a fallback."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dubito.experiment.experiment import Experiment
from dubito.experiment.model_players import check_models
from dubito.experiment.progress import ModelProgress
from dubito.experiment.run import play
from tests.conftest import in_gate
from tests.experiment.kit import experiment, means, resolved
from tests.llm.kit import PROBE, Incoming, Response, Server, contender, outcomes_of, respond, rows
from tests.resume.kit import go, read_results

ANSWERED, GIVES_UP = 6, 13  # answered questions, then failures of one while probes succeed


class Hurried(ModelProgress):
    """Advances its clock by ten seconds each time it is read, never sleeps, and records the reasons for waits."""

    def __init__(self) -> None:
        seconds = count(0, 10)
        super().__init__(clock=lambda: float(next(seconds)))
        self.whys: list[str] = []

    def sleep(self, seconds: float, why: str) -> None:
        """Return at once."""

    def begin_wait(self, why: str) -> None:
        self.whys.append(why)
        super().begin_wait(why)


def failing(sequence: int) -> Response:
    return [Response(500, "{}"), Response(503, "{}"), Response(lost=None)][sequence % 3]


def config(address: str, together: bool = False, **more: Any) -> Experiment:
    """Return a config for four games of two model players with two tries per call, in turn or at one table."""
    one = contender("one", "m", base_url=f"{address}/v1", tries=2)
    two = contender("two", "m", "AnthropicBot", base_url=address, tries=2)
    base: dict[str, Any] = {
        "table_sizes": [3],
        "bots": ["StefaBot", "UsualBot"],
        "rules": {"max_turns": 8},
        "games": 4,
    }
    seated: dict[str, Any] = {"bots": [one, two]} if together else {"contenders": [one, two]}
    return experiment(**base | {"provider_errors": "suspend"} | seated | more)


def test_requeued_games_have_the_same_result(tmp_path: Path) -> None:
    asked: dict[bytes, int] = {}

    def every_request_fails_three_times(request: Incoming) -> Response:
        asked[request.raw] = asked.get(request.raw, 0) + 1
        if request.protocol == "responses" and asked[request.raw] <= 3:
            return failing(asked[request.raw])
        return respond(request.protocol)

    watch = Hurried()
    with Server(every_request_fails_three_times) as server:
        run = go(config(server.address), tmp_path / "run", watch=watch, in_flight=3)
        whole = go(config(server.address), tmp_path / "whole", watch=Hurried(), in_flight=1)
    assert run.failure is None
    assert outcomes_of(tmp_path / "run").keys() == {"model"}
    assert (run.results_digest, read_results(tmp_path / "run")) == (
        whole.results_digest,
        read_results(tmp_path / "whole"),
    )
    assert any("cannot be reached" in why for why in watch.whys)
    assert all("AnthropicBot" not in why for why in watch.whys)
    assert not any(watch.waiting.values()), "no call is waiting any more"
    numbers = rows(
        tmp_path / "run", "SELECT max(try) FROM tries WHERE player = 'one' GROUP BY game, seat, decision, attempt"
    )
    assert {number for (number,) in numbers} == {4}, "try numbers continue when a game is resumed"


def test_other_games_continue_while_one_waits(tmp_path: Path) -> None:
    """One player's server fails until the other player's games have all ended."""
    ended = [0]

    def answer(request: Incoming) -> Response:
        if request.protocol == "responses" and ended[0] < 2:
            return Response(503, "{}")
        return respond(request.protocol)

    with Server(answer) as server:
        of = config(server.address)

        def progress(games: int) -> None:
            ended[0] = games

        how = replace(means(tmp_path / "run", in_flight=1, progress=progress), model_progress=Hurried())
        run = play(check_models(resolved(of), how.calls), tmp_path / "run", how)
    assert run.failure is None
    assert run.tally.games == 4
    assert outcomes_of(tmp_path / "run").keys() == {"model"}


def test_outage_stops_the_run_which_can_resume(tmp_path: Path) -> None:
    down = [True]
    with Server(lambda request: Response(500, "{}") if down[0] else respond(request.protocol)) as server:
        cut = go(config(server.address), tmp_path / "run", watch=Hurried(), patience=600)
        assert "cannot be reached: no answer for " in str(cut.failure)
        assert cut.tally.games == 0
        down[0] = False
        run = go(config(server.address), tmp_path / "run", watch=Hurried())
    assert (run.failure, run.tally.games) == (None, 4)
    assert outcomes_of(tmp_path / "run").keys() == {"model"}


@pytest.mark.parametrize("together", in_gate([True, False], 1))
def test_under_fallback_games_of_an_outage_are_asked_again(tmp_path: Path, together: bool) -> None:
    """A question fails until it is given up while probes succeed; then all calls fail.

    If both play together, the other model is still asked in the game in which a fallback has played.
    """
    asked, down = [0], [True]

    def answer(request: Incoming) -> Response:
        if request.protocol != "messages" or not down[0]:
            return respond(request.protocol)
        probe = PROBE in request.raw
        asked[0] += not probe
        fails = asked[0] >= ANSWERED + GIVES_UP if probe else asked[0] > ANSWERED
        return Response(500, "{}") if fails else respond(request.protocol)

    with Server(answer) as server:
        of = config(server.address, together, provider_errors="fallback")
        cut = go(of, tmp_path / "run", watch=Hurried(), in_flight=1, patience=300)
        assert "cannot be reached: no answer for " in str(cut.failure)
        assert rows(tmp_path / "run", "SELECT count(*) FROM attempts WHERE cause = 'unreachable'") == [(0,)]
        assert outcomes_of(tmp_path / "run").keys() <= {"model"}, "requeued games have no decisions"
        assert asked[0] > ANSWERED + GIVES_UP, "it was given up, and the next question was asked"
        down[0] = False
        run = go(of, tmp_path / "run", watch=Hurried(), in_flight=1)
    assert (run.failure, run.tally.games) == (None, 4)
    assert outcomes_of(tmp_path / "run").keys() == {"model"}
