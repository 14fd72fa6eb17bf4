"""Bots for OpenSpiel's games: supported games, and their strength compared with exact values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dubito.errors import UsageError
from dubito.experiment.config import parse_config
from dubito.experiment.resolve import resolve
from dubito.experiment.run import RunOptions, RunResult, play
from dubito.game.find import find_bots, find_game
from dubito.report.run_tables import Duels
from dubito.stats.ranking import contender_pairs
from tests.cli.kit import REPO
from tests.experiment.kit import means
from tests.plugins.openspiel.policy.kit import versus

pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is an extra: pip install 'dubito[openspiel]'")

from dubito.plugins.openspiel.policy.solver import solve  # noqa: E402
from dubito.plugins.openspiel.policy.tree import Tree, uniform  # noqa: E402

KUHN = "openspiel:kuhn_poker"


def play_in(folder: Path, game: str, config: Mapping[str, Any]) -> RunResult:
    """Run hand-written bots in this folder."""
    registry = find_bots(REPO, game)
    experiment = resolve(parse_config({"game": game, **config}, "test"), registry)
    how = means(folder)
    run = play(experiment, folder / "run", RunOptions(1, how.calls, how.stop))
    assert run.failure is None
    return run


@pytest.fixture(autouse=True)
def _games_with_bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solved_against_uniform_gets_the_computed_value(tmp_path: Path) -> None:
    engine = pyspiel.load_game("kuhn_poker")
    tree = Tree(engine)
    exact = versus(tree, solve(engine).table, uniform(tree))
    run = play_in(tmp_path, KUHN, {"games": 5000, "bots": ["Solved", "UniformRandom"]})
    duels = Duels(run.tally, run.game.results, run.game.results.measures[0])
    solved = run.experiment.names.index("Solved")
    for seat in (0, 1):
        rate = duels.rate(solved, run.experiment.names.index("UniformRandom"), seat)
        assert rate.value is not None
        assert rate.low < exact[seat] < rate.high
        assert 0.02 < (rate.high - rate.low) / 2 < 0.06  # the interval is in units of the game's return
    assert run.bot_notes["Solved"].startswith("cfr+, 1,000 iterations: nash_conv 0.000")


@pytest.mark.at_length
def test_contenders_differ_by_the_computed_value(tmp_path: Path) -> None:
    """Two contenders play the same deals in both seats. Nearly all of 20 intervals contain the exact difference."""
    engine = pyspiel.load_game("kuhn_poker")
    tree = Tree(engine)
    table, level = solve(engine).table, uniform(tree)
    exact = sum(versus(tree, table, level)) / 2 - sum(versus(tree, level, level)) / 2
    held = 0
    for seed in range(20):
        config = {
            "games": 240,
            "seed": seed,
            "bots": ["UniformRandom"],
            "contenders": ["Solved", {"bot": "UniformRandom", "name": "level"}],
        }
        run = play_in(tmp_path / f"{seed}", KUHN, config)
        (pair,) = contender_pairs(run.tally, run.contenders, run.game.results)
        rate = pair.differences["return"].difference
        assert rate.value is not None
        sign = 1 if pair.one.name == "Solved" else -1
        held += rate.low <= sign * exact <= rate.high
    assert held >= 17


def test_the_simple_gin_bot_wins_nearly_always(tmp_path: Path) -> None:
    run = play_in(tmp_path, "openspiel:gin_rummy", {"games": 40, "bots": ["SimpleGin", "UniformRandom"]})
    duels = Duels(run.tally, run.game.results, run.game.results.measures[0])
    assert (duels.rate(run.experiment.names.index("SimpleGin")).value or 0) > 40
    wins = run.tally.tables["seats"][run.experiment.names.index("SimpleGin"), 2, 0][0]
    assert wins >= 39


@pytest.mark.parametrize(
    ("game", "bot", "message"),
    [
        ("openspiel:gin_rummy", "Solved", "Solved cannot play this game: gin_rummy has no information state strings"),
        ("openspiel:liars_dice", "Solved", "more than 2,000 information states"),
        (KUHN, "SimpleGin", "SimpleGin plays openspiel:gin_rummy only; choose from"),
    ],
)
def test_bot_that_cannot_play_a_game_gives_the_reason(game: str, bot: str, message: str) -> None:
    registry = find_bots(REPO, game)
    assert bot not in [one.name for one in registry.hand_written()]
    with pytest.raises(UsageError, match=message):
        registry.find(bot)


def test_three_at_kuhn_poker_have_an_equal_share(tmp_path: Path) -> None:
    run = play_in(tmp_path, "openspiel:kuhn_poker(players=3)", {"games": 300, "bots": ["UniformRandom", "FirstLegal"]})
    game = find_game("openspiel:kuhn_poker(players=3)", REPO)
    assert game.results.measures[0].span == (-2.0, 4.0)
    assert game.results.chance_level(3) == {"return": 0.0}
    assert not game.has_neighbours
    assert not game.is_duel
    sums = [run.tally.tables["clusters"][player,][2] for player in range(2)]
    seats = [sum(run.tally.tables["seats"].get((player, 3, b), [0])[0] for b in range(3)) for player in range(2)]
    assert sum(seats) == 900
    assert sum(sums) == 2000 * 900  # returns add up to 0; each is stored in thousandths above the minimum of -2
