"""Rules of games as flags, including those of a user's own game."""

import subprocess
from pathlib import Path

import httpx2
import pytest
import yaml

from tests.cli.kit import REPO, Shell, start

ORCHARD = """
from typing import Literal
from pydantic import BaseModel, ConfigDict, Field
from dubito.game import Game
from dubito.games.defuse.game import DefuseGame


class Rules(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    most_apples: int = Field(default=3, ge=1, description="Apples a tree bears.")
    wind: float = 0.5
    windfalls: bool = False
    season: Literal["summer", "autumn"] = Field(default="summer", description="When apples are picked.")
    owner: str = "5"
    rows: list[int] = [2, 3]
    worm: int | None = None
    seed: int = 1


class OrchardGame(DefuseGame):
    name, package, rules_of_run = "orchard", "games.orchard", Game.rules_of_run

    def rules(self, **settings):
        return Rules(**settings)


GAME = OrchardGame()
"""
BOTS = ("--bots", "Medium,Scared", "--games", "2", "--quiet", "--output", "r")


@pytest.fixture
def orchard(shell: Shell) -> Shell:
    """Write a user's game with rules of every kind."""
    folder = Path("games/orchard")
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "game.py").write_text(ORCHARD)
    bots = Path("bots/manual/orchard")
    bots.mkdir(parents=True)
    for file in (REPO / "bots/manual/defuse").glob("*.py"):
        (bots / file.name).write_bytes(file.read_bytes())
    return shell


def read_rules(folder: str = "r") -> dict[str, object]:
    rules: dict[str, object] = yaml.safe_load(Path(folder, "manifest.yaml").read_text())["identity"]["rules"]
    return rules


@pytest.mark.parametrize(
    ("words", "rules"),
    [
        (("--jokers", "1", "--max-turns", "9"), {"jokers": 1, "win_rule": "immediate", "max_turns": 9}),
        (("--game", "bs", "--max-rounds", "5"), {"max_rounds": 5}),
        (("--max-rounds", "5", "bs.yaml"), {"max_rounds": 5}),
        (("bs.yaml",), {"max_rounds": 7}),
        (("--seed", "4", "bs.yaml", "--max-rounds", "8"), {"max_rounds": 8}),
    ],
)
def test_run_accepts_the_rules_of_its_game(shell: Shell, words: tuple[str, ...], rules: dict[str, object]) -> None:
    Path("bs.yaml").write_text("game: bs\nrules: {max_rounds: 7}\n")
    assert shell("run", *words, "--games", "4", "--quiet", "--output", "r").err == ""
    assert read_rules() == rules


def test_rules_of_every_kind_are_flags(orchard: Shell) -> None:
    rules = ("--most-apples", "4", "--wind", "0.25", "--windfalls", "--season", "autumn", "--owner", "7")
    result = orchard("run", "--game", "orchard", *BOTS, *rules, "--rows", "4,5", "--worm", "6", "--seed", "3")
    assert result.err == ""
    assert read_rules() == {
        "most_apples": 4,
        "wind": 0.25,
        "windfalls": True,
        "season": "autumn",
        "owner": "7",
        "rows": [4, 5],
        "worm": 6,
        "seed": 1,
    }
    orchard("run", "--game", "orchard", *BOTS, "--output", "s", "--no-windfalls")
    assert read_rules("s")["windfalls"] is False
    assert orchard("watch", "--game", "orchard", "Medium", "Scared", *rules).code == 0
    assert orchard("watch", "--game", "orchard", "Medium", "Scared", "--most-apples", "0").err == (
        "dubito: --most-apples: must be at least 1, not 0\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--game", "orchard", "--jokers", "1"), "--jokers: orchard has no such rule; choose from most_apples, "),
        (("--game", "bs", "--season", "autumn"), "--season: bs has no such rule; choose from max_rounds\n"),
        (("--game", "defuse", "--max-rounds", "5"), "--max-rounds: defuse has no configurable rules; remove it\n"),
        (("--game", "bs", "--max-rounds", "0"), "--max-rounds: must be at least 1, not 0\n"),
        (("--game", "bs", "--max-rounds", "5.0"), "--max-rounds: must be a whole number, not '5.0'\n"),
        (("--game", "bs", "--max-round", "5"), "No such option '--max-round'. (Did you mean one of: '--max-output', "),
        (("--game", "orchard", "--season", "May"), "--season: must be 'summer' or 'autumn', not 'May'\n"),
    ],
)
def test_invalid_rule_is_reported_in_one_sentence(orchard: Shell, words: tuple[str, ...], sentence: str) -> None:
    Path("bs.yaml").write_text("game: bs\n")
    result = orchard("run", *words)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith(f"dubito: {sentence}")


@pytest.mark.parametrize("command", ["run", "play", "watch", "web"])
def test_help_shows_the_rules_of_the_game(orchard: Shell, command: str) -> None:
    for words in (("--help", "--game", "bs"), ("--game=bs", "-h")):
        shown = " ".join(orchard(command, *words).out.split())
        assert "--max-rounds N Rounds after which the game ends without a winner. [default: 1000]" in shown
        assert "--jokers" not in shown
    shown = " ".join(orchard(command, "--help").out.split())
    assert "--jokers N Jokers in the deck, 0 to 2. [default: 2]" in shown
    assert "--win-rule immediate|contested" in shown
    assert "--max-rounds" not in shown
    shown = " ".join(orchard(command, "--help", "--game", "orchard").out.split())
    assert "--windfalls / --no-windfalls" in shown
    assert "--season summer|autumn When apples are picked. [default: summer]" in shown


def test_a_person_plays_by_the_rules_of_the_game(shell: Shell) -> None:
    words = ("play", "--game", "bs", "--max-rounds", "3", "--seed", "1")
    with start(shell.folder, *words, stdin=subprocess.PIPE) as process:
        output = process.communicate("rules\n", timeout=60)[0]
    assert "If nobody has won after 3 rounds" in output


def test_browser_table_uses_the_given_rules(shell: Shell) -> None:
    with start(shell.folder, "web", "--port", "0", "--jokers", "1", "--max-turns", "77") as process:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("Play at ").strip()
        lobby = httpx2.get(address, timeout=60).text
        asked = {"bots": ["StefaBot", "MrDoubt"], "rules": {"jokers": 2, "win_rule": "contested"}, "seed": 1}
        origin = {"Origin": address.rstrip("/")}
        opened = httpx2.post(f"{address}api/table", json=asked, headers=origin, timeout=60).text
    assert lobby.count('data-value="1"') == 1
    assert 'data-value="0"' not in lobby
    assert "77" in opened
