"""Stated bluff probabilities in runs: recorded at C, counted, and without effect on the game."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dubito.experiment.run import RunResult
from tests.llm.kit import Incoming, Response, Server, player_at, respond, rows, run_games, small

Stated = Callable[[int], Any]  # request number -> stated value; Ellipsis omits the field


def at_c(request: Incoming) -> bool:
    return '"p_bluff"' in json.dumps(request.body.get("text"))


def saying(stated: Stated) -> Callable[[Incoming], Response]:
    """Return a model that never doubts, always bluffs, and states this probability."""

    def answer(request: Incoming) -> Response:
        text: dict[str, Any] = {"reasoning": "So.", "answer": not at_c(request)}
        if at_c(request) and (value := stated(len(request.raw))) is not ...:
            text["p_bluff"] = value
        return respond("responses", json.dumps(text))

    return answer


def run_of(folder: Path, stated: Stated, **settings: Any) -> RunResult:
    with Server(saying(stated)) as server:
        # The cache is beside the run, and the next server may get the same port.
        return run_games(small(player_at(server, prompt="reasoned", **settings), games=1, turns=20), folder / "run")


def decisions(run: RunResult) -> list[tuple[Any, ...]]:
    return rows(run.folder, "SELECT game, seat, decision, turn, node, answer, outcome FROM decisions ORDER BY 1, 2, 3")


def stated_in(run: RunResult) -> list[float | None]:
    return [value for (value,) in rows(run.folder, "SELECT p_bluff FROM decisions WHERE node = 'C'")]


def test_p_bluff_is_recorded_only_at_c(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", lambda _: 0.37)
    assert set(stated_in(run)) == {0.37}
    elsewhere = rows(run.folder, "SELECT DISTINCT p_bluff FROM decisions WHERE node != 'C'")
    assert elsewhere == [(None,)]
    assert {node for *_, node, _, _ in decisions(run)} == set("ABCDE")


def test_stated_probability_does_not_change_play(tmp_path: Path, at_length: bool) -> None:
    games = "SELECT outcome, record FROM games"
    other = run_of(tmp_path / "other", lambda _: 0.37)
    text = [(None, None), (1, 1.0), (1.5, None), (0, 0.0), (-1, None), ("0.4", None), (True, None), ([0.4], None)]
    for number, (stated, kept) in enumerate(text if at_length else text[2:3]):
        run = run_of(tmp_path / f"{number}", lambda _, stated=stated: stated)  # type: ignore[misc]
        assert set(stated_in(run)) == {kept}, stated
        assert decisions(run) == decisions(other)
        assert {outcome for *_, outcome in decisions(run)} == {"model"}
        assert rows(run.folder, games) == rows(other.folder, games)
