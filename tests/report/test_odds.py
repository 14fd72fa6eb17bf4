"""The odds at each turn come from playouts with different endings, and can be repeated."""

import itertools
import re
from functools import partial
from pathlib import Path

import pytest

from dubito.errors import UsageError
from dubito.experiment.stored import open_recorded_run
from dubito.report import share, share_run
from dubito.show import odds
from tests.chromium import Chrome
from tests.cli.kit import Shell
from tests.report.kit import Page

FEW = ("--games", "2", "--quiet", "--max-turns", "24", "--jokers", "0")


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odds, "PLAYOUTS", 3)


def load_run_odds(folder: str, game: int = 0) -> odds.Playouts:
    with open_recorded_run(Path(folder)) as run:
        return odds.load_odds(run, game)


@pytest.mark.usefixtures("three")
def test_playouts_end_with_a_winner_and_repeat(shell: Shell) -> None:
    assert (
        shell(
            "run", "--bots", "StefaBot,RandomBoi,UsualBot", "--games", "1", "--seed", "1", "--quiet", "--output", "r"
        ).code
        == 0
    )
    found = load_run_odds("r")
    assert [sum(row) for row in found.won] == [3] * len(found.won), "each playout has one winner"
    assert len({*map(tuple, found.won)}) > 2
    assert {*found.won[-1]} == {0, 3}, "the result is certain after the last move"
    kept = Path("r/odds/0.json")
    assert load_run_odds("r") == found
    kept.write_text(kept.read_text().replace("[[", "[[[", 1))
    assert load_run_odds("r") == found, "damaged odds are recomputed"
    kept.unlink()
    assert load_run_odds("r") == found


@pytest.mark.usefixtures("three")
def test_bot_replaces_a_model_in_playouts_and_is_named(shell: Shell, chrome: Chrome) -> None:
    players = "--contenders", "house:house-random@plain", "--bots", "StefaBot,RandomBoi", "--table-sizes", "3"
    assert shell("run", *players, *FEW, "--max-turns", "200", "--output", "m").code == 0  # the games end
    assert load_run_odds("m", 1).substitute == "ClaudeBot"
    assert shell("share", "m", "--game", "1").code == 0
    page = Path("game-1.html")
    (game,) = Page(page).json
    assert len(game["odds"]["won"]) == len(game["turns"]) + 1
    chrome.open(page.resolve(), "#turn-3")
    assert chrome.run("document.querySelectorAll('#strip polyline').length") == 6
    here = [f"{name} {100 * won / 3:.0f} %" for name, won in zip(game["names"], game["odds"]["won"][3], strict=True)]
    assert chrome.text("#strip .chances") == f"At this turn: {', '.join(here)}."
    assert re.search(
        "3 playouts from this turn, with the same cards and ClaudeBot instead of models", chrome.text("#strip")
    )


def test_failed_playouts_report_the_reason(shell: Shell, chrome: Chrome) -> None:
    """A shared page does not mention the failure."""
    assert shell("run", "--game", "defuse", "--bots", "Simple,Sapper", "--games", "1", "--output", "d").code == 0
    assert shell("report", "d", "--games", "0", "--odds", "--output", "pages").code == 0
    (game,) = Page(Path("pages/games/0.html")).json
    assert game["odds"]["why"].startswith("game 0 cannot be played on from its turns: cannot pickle ")
    assert not Path("d/odds").exists()
    chrome.open(Path("pages/games/0.html"))
    assert "Winning chances are not shown: game 0 cannot be played on " in chrome.text("#strip")
    assert shell("share", "d", "--game", "0", "--output", "s.html").code == 0
    chrome.open(Path("s.html"))
    assert "Winning chances" not in chrome.text("#strip")


def test_longer_games_get_fewer_playouts() -> None:
    assert odds.choose_playouts(60, 1) == odds.PLAYOUTS
    often = [odds.choose_playouts(moves, 1) for moves in range(0, 240, 20)]
    assert often == sorted(often, reverse=True)
    for moves in (500, 3000, 10**6):
        with pytest.raises(UsageError, match=rf"^the game is too long \({moves:,} moves\)$"):
            odds.choose_playouts(moves, 1)


def test_slower_bots_get_fewer_playouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odds, "PLAYOUTS", 40)
    often = [odds.choose_playouts(60, weight) for weight in (2, 4, 8)]
    assert often == sorted({*often}, reverse=True)
    with pytest.raises(UsageError, match=r"^the game is too long \(60 moves\)$"):
        odds.choose_playouts(60, 64)


def test_odds_are_the_same_on_a_slow_machine(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake clock advances by 10 ms each time it is read."""
    assert shell("run", "--bots", "StefaBot,RandomBoi,UsualBot", *FEW, "--output", "r").code == 0
    fast = load_run_odds("r")
    Path("r/odds/0.json").unlink()
    monkeypatch.setattr(odds, "monotonic", partial(next, itertools.count(step=0.01)))
    assert load_run_odds("r") == fast


def test_slow_bots_are_given_up_after_a_number_of_calls(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counting calls instead of seconds makes the odds independent of the machine."""
    assert shell("run", "--bots", "StefaBot,RandomBoi,UsualBot", *FEW, "--output", "r").code == 0
    monkeypatch.setattr(odds, "_MAX_TRIAL_CALLS", 500)
    monkeypatch.setattr(odds, "monotonic", lambda: 0.0)
    with pytest.raises(UsageError, match=r"^game 0 cannot be played on from its turns: the bots are too slow$"):
        load_run_odds("r")


def test_work_of_bots_is_counted(shell: Shell) -> None:
    assert shell("run", "--bots", "StefaBot,RandomBoi,UsualBot", *FEW, "--output", "r").code == 0
    assert shell("run", "--bots", "Sherlock", "--table-sizes", "3", *FEW, "--output", "s").code == 0
    weights = []
    for folder in ("r", "s"):
        with open_recorded_run(Path(folder)) as run:
            weights.append(odds._measure_work(odds._table_at_start(run, 0)[0]))
    usual, heavy = weights
    assert usual == 1
    assert heavy >= 8


def test_endless_playouts_are_abandoned(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell("run", "--bots", "StefaBot,RandomBoi,UsualBot", *FEW, "--output", "r").code == 0
    monkeypatch.setattr(odds, "_MAX_EXCESS", 0)
    with pytest.raises(UsageError, match=r"^game 0 cannot be played on from its turns: the playouts would take too"):
        load_run_odds("r")


def test_too_large_game_is_refused_before_playouts(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shell("run", "--bots", "StefaBot,RandomBoi,UsualBot", *FEW, "--output", "r").code == 0
    monkeypatch.setattr(share_run, "_MAX_MOVES", 5)
    result = shell("share", "r", "--game", "0")
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(
        r"dubito: the game does not fit into one page of 300 kB \(more than 5 moves\); share its run with .*\n",
        result.err,
    )
    assert not Path("r/odds").exists()
    monkeypatch.setattr(share, "MAX_PAGE_BYTES", 1000)
    assert shell("watch", "StefaBot", "RandomBoi", "UsualBot", "--save", "g.json").code == 0
    result = shell("share", "g.json")
    assert result.err.endswith("kB; send the file itself; `dubito web` shows it under Saved games\n")
