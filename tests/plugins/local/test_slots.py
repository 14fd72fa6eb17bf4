"""As many games are played at once as the server has slots, in deal order, and each game keeps its slot."""

from collections import deque
from itertools import groupby
from pathlib import Path

import pytest

from dubito.experiment.play import Lineup
from dubito.experiment.threads import GameQueue, QueuedGame
from dubito.llm.slots import GameSlots
from tests.cli.kit import Shell
from tests.plugins.local.kit import Call, calls_of

RUN = ("run", "--bots", "Sherlock,ClaudeBot", "--table-sizes", "3", "--max-turns", "9", "--output", "r")


def play(shell: Shell, *words: str) -> list[Call]:
    ran = shell(*RUN, *words)
    assert ran.code == 0, ran.err
    return [call for call in calls_of(shell.folder / "r", shell.folder / "m.gguf") if call.game >= 0]


def test_games_are_played_one_after_another_on_one_slot(
    shell: Shell, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dubito.plugins.local.server.core_count", lambda: 1)
    calls = play(shell, "--contenders", "local:m.gguf@plain", "--games", "8")
    order = [game for game, _ in groupby(call.game for call in calls)]
    assert order == sorted(order)
    assert len(order) > 4


def test_questions_of_a_game_stay_in_its_slot(shell: Shell, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dubito.plugins.local.server.core_count", lambda: 4)
    calls = play(shell, "--contenders", "local:m.gguf@plain", "--games", "12")
    slots = {game: {call.slot for call in calls if call.game == game} for game in {call.game for call in calls}}
    assert all(len(used) == 1 for used in slots.values()), slots
    assert {slot for used in slots.values() for slot in used} == {0, 1}


def test_slot_is_not_part_of_the_request(shell: Shell, model: Path) -> None:
    play(shell, "--contenders", "local:m.gguf@plain", "--games", "1")
    assert b"id_slot" not in (shell.folder / "r" / "run.db").read_bytes()


def queue(slots: GameSlots, needs: list[bool], max_open: int = 4) -> GameQueue:
    deals = [[QueuedGame((deal, Lineup(deal, [], None)), needs_slot=each)] for deal, each in enumerate(needs)]
    return GameQueue(deque(deals), lambda: 0.0, lambda: False, slots=slots, max_open=max_open)


def take(games: GameQueue) -> QueuedGame:
    taken = games.take()
    assert taken is not None
    return taken


def test_other_models_do_not_wait_for_a_slot() -> None:
    slots = GameSlots()
    slots.limit(1)
    games = queue(slots, [True, True, False, True, False])
    first, second = take(games), take(games)
    assert [each.game[0] for each in (first, second)] == [0, 2]
    assert (slots.find(0), slots.find(1)) == (0, None)
    games.finish(first)
    assert [take(games).game[0] for _ in range(2)] == [1, 4]
    assert slots.find(1) == 0
