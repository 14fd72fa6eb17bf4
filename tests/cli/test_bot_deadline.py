"""`--bot-deadline`: a bot in an endless loop is reported instead of blocking the run."""

from pathlib import Path

import pytest
import yaml

from tests.cli.kit import Shell

LOOPING = '''
from time import sleep
from bots.base import BotBase
class Looping(BotBase):
    """Loops for ever at one question of one game."""
    def bluff_first_hand(self, p): return False
    def should_doubt(self, p):
        while self._seating.game == GAME and self.id == 0 and p.me.turns == 1:
            sleep(0.01)
        return False
    def bluff_regular(self, p): return False
'''
RUN = ("run", "--bots", "Looping", "--table-sizes", "3", "--max-turns", "6", "--quiet", "--output", "out")
LATE = "turn 4: node C (should_doubt) took longer than 2 s (looping.py, line 9)"


@pytest.mark.parametrize(("games", "workers"), [(10, 1), (1010, 2)])
def test_looping_bot_stops_the_run_by_name(shell: Shell, games: int, workers: int) -> None:
    game = games - 5
    shell.bot("looping.py", LOOPING.replace("GAME", f"{game}"))
    result = shell(*RUN, "--games", f"{games}", "--workers", f"{workers}", "--bot-deadline", "2")
    assert result.code == 3
    assert f" failed in game {game}, deal {game}, {LATE}; {game:,} of {games:,} games are saved in out" in result.err
    assert "bot_deadline" not in Path("out/manifest.yaml").read_text(), "finished runs do not depend on it"


def test_fallback_plays_the_turn_and_is_replayed(shell: Shell) -> None:
    shell.bot("looping.py", LOOPING.replace("GAME", "5"))
    fallback = (*RUN, "--games", "10", "--on-bot-error", "fallback")
    result = shell(*fallback, "--bot-deadline", "2")
    assert result.code == 0
    assert result.err.splitlines() == [
        "note: games in which a bot exceeds bot_deadline are not repeatable, since speed depends on the machine",
        "note: Looping only plays against itself; add another bot to compare it",
    ]
    assert "warning: The fallback played 1 turn for Looping after bot errors." in result.out
    assert f"failed in game 5, deal 5, {LATE}" in result.out
    assert yaml.safe_load(Path("out/manifest.yaml").read_text())["identity"]["bot_deadline"] == 2
    replayed = shell("replay", "out")
    assert (replayed.code, replayed.out.split()[0]) == (0, "identical:"), replayed
    other = shell(*fallback, "--bot-deadline", "3")
    assert (other.code, "bot_deadline" in other.err) == (2, True)


def test_one_game_has_a_deadline_too(shell: Shell) -> None:
    shell.bot("looping.py", LOOPING.replace("GAME", "0"))
    result = shell("watch", "Looping", "Looping", "Looping", "--bot-deadline", "2")
    assert result.code == 3
    assert result.err.endswith("node C (should_doubt) took longer than 2 s (looping.py, line 9)\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--bot-deadline", "0"), "dubito: --bot-deadline: must be greater than 0, not 0\n"),
        (("--bot-deadline", "1e9"), "dubito: --bot-deadline: must be at most 86400, not 1000000000.0\n"),
        (("--bot-deadline", "soon"), "dubito: --bot-deadline: must be a number, not 'soon'\n"),
    ],
)
def test_deadline_of_zero_is_refused(shell: Shell, words: tuple[str, ...], sentence: str) -> None:
    result = shell("run", *words)
    assert (result.code, result.err) == (2, sentence)


def test_run_with_models_refuses_a_deadline(shell: Shell) -> None:
    result = shell("run", "--bots", "StefaBot,house:house-honest", "--bot-deadline", "1")
    assert result.code == 2
    assert result.err.startswith("dubito: bot_deadline: games with models or programs run in threads")
    assert not Path("runs").exists()
