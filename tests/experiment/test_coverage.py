"""Intervals of paired differences have the stated coverage on real differences."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from dubito.experiment.config import parse_config
from dubito.experiment.play import ChunkPlayer
from dubito.experiment.resolve import resolve
from dubito.game.find import find_bots
from dubito.games.dubito.engine import RESULTS
from dubito.stats.rates import paired_difference
from dubito.stats.tally import unpack_outcome

TWIN = '''
from bots.manual.random_boi import RandomBoi
class Twin(RandomBoi):
    """RandomBoi on a stream of its own, as a model is: its twin of another sample plays the same deal anew."""
    def __init__(self, id, sample=0):
        super().__init__(id)
        self.rng.seed(f"{self.rng.random()} {sample}")
'''
TWINS = ({"bot": "Twin", "name": "one"}, {"bot": "Twin", "name": "two", "sample": 1})
FIELD = ["StefaBot", "UsualBot", "ClaudeBot", "RandomBoi"]


def differences(folder: Path, contenders: tuple[Any, ...], **config: Any) -> list[int]:
    """Return the second contender's Score minus the first's, in halves, for 1,000 deals."""
    (folder / "bots" / "manual").mkdir(parents=True, exist_ok=True)
    (folder / "bots" / "manual" / "twin.py").write_text(TWIN)
    registry = find_bots(folder)
    run = resolve(parse_config({"bots": FIELD, "games": 2000, "contenders": [*contenders], **config}, "test"), registry)
    scores = []
    for row in ChunkPlayer(run).play(range(run.experiment.deals), lambda: False).outcomes:
        outcome = unpack_outcome(row, RESULTS)
        assert outcome.contender_seat is not None
        scores.append(outcome.measure_seats(RESULTS)[outcome.contender_seat][0])
    return [two - one for one, two in zip(scores[::2], scores[1::2], strict=True)]


pytestmark = pytest.mark.at_length  # the gate tests intervals with random numbers (test_statistics.py)


@pytest.fixture(scope="module", params=["twins", "a strong and a weak bot"])
def population(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """Return the differences to draw from."""
    folder = tmp_path_factory.mktemp("twins")
    if request.param == "twins":
        return differences(folder, TWINS, table_sizes=[4])
    return differences(folder, ("ClaudeBot", "RandomBoi"), table_sizes=[4])


@pytest.mark.parametrize("deals", [5, 20, 50, 200])
def test_95_of_100_intervals_cover_the_true_difference(population: list[int], deals: int) -> None:
    """Simulate 1,500 runs whose deals are drawn from 1,000. With only five deals the coverage may exceed 95 %."""
    true = sum(population) / len(population) / 2
    rng = Random(deals)
    covered = 0
    for _ in range(1500):
        run = rng.choices(population, k=deals)
        rate = paired_difference(deals, sum(run), sum(d * d for d in run), scale=2)
        covered += rate.low <= true <= rate.high
    assert 0.935 <= covered / 1500 <= (0.965 if deals > 5 else 1.0)


def test_intervals_of_identical_players_include_zero(tmp_path: Path) -> None:
    """Fifty runs of 20 deals are really played."""
    population = differences(tmp_path, TWINS, table_sizes=[3])
    assert len({*population}) > 1, "twins play different games"
    contain = 0
    for start in range(0, 1000, 20):
        run = population[start : start + 20]
        rate = paired_difference(20, sum(run), sum(d * d for d in run), scale=2)
        contain += rate.low <= 0 <= rate.high
    assert contain >= 45
