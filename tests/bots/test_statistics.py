"""Repeat the source's published result on a small scale: 3 players, drawn with replacement, default rules.

Each tolerance is four standard errors of this run, clustered by game (a bot may have two seats), plus 0.6 points, by
which a faithful engine may differ from the source's according to the rulings.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import sqrt
from statistics import fmean, pstdev, stdev

import pytest

from dubito.game.streams import DealStreams
from dubito.game.table import Entrant, play_game
from dubito.games.dubito.engine import Rules, deal_table
from tests.bots.kit import REGISTRY

pytestmark = pytest.mark.at_length  # the gate plays frozen games of these bots instead
GAMES = 12_000
SEED = 2024
ALLOWED = 0.006
ERRORS = 4

PUBLISHED = {  # percent of games with a hard win, in 42,000 games of the source's commit 4fd08cf (standard error 0.4)
    "ClaudeBot": 52.5,
    "AdaptyBoi": 43.6,
    "StefaBot": 42.9,
    "UsualBot": 37.7,
    "MrNoDoubt": 34.4,
    "SusBoi": 31.9,
    "AlwaysTruthful": 27.2,
    "MrDoubt": 26.8,
    "RiskCounter": 26.7,
    "JustPutCards": 26.6,
    "RandomBoi": 15.6,
}


@dataclass(frozen=True, slots=True)
class Rate:
    """A share of hard wins with its standard error."""

    share: float
    error: float


@dataclass
class Tally:
    """Appearances and hard wins per game."""

    games: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, game: int, won: bool) -> None:
        seats_and_wins = self.games[game]
        seats_and_wins[0] += 1
        seats_and_wins[1] += won

    def rate(self) -> Rate:
        seats = sum(n for n, _ in self.games.values())
        share = sum(wins for _, wins in self.games.values()) / seats
        return Rate(share, sqrt(sum((wins - share * n) ** 2 for n, wins in self.games.values())) / seats)


@dataclass
class Run:
    """The results of this file's games."""

    hard_wins: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    by_next: dict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    by_prev: dict[tuple[str, str], Tally] = field(default_factory=lambda: defaultdict(Tally))
    turns: list[int] = field(default_factory=list)
    all_turns: list[int] = field(default_factory=list)


@pytest.fixture(scope="module")
def run() -> Run:
    counted = Run()
    for number, names, winner, turns, free_turns in games(GAMES):
        for seat, name in enumerate(names):
            won = seat == winner
            counted.hard_wins[name].add(number, won)
            counted.by_next[name, names[(seat + 1) % 3]].add(number, won)
            counted.by_prev[name, names[(seat + 2) % 3]].add(number, won)
        counted.turns.append(turns)
        counted.all_turns.append(turns + free_turns)
    return counted


def games(many: int) -> Iterator[tuple[int, list[str], int | None, int, int]]:
    """Yield each game's number, bots, winning seat, turns and free turns."""
    field_of_bots = [Entrant(name, REGISTRY.bots[name].cls) for name in PUBLISHED]
    for number in range(many):
        streams = DealStreams(SEED, number)
        table = streams.seating().choices(field_of_bots, k=3)
        game = play_game(deal_table(table, Rules(), streams))
        winner = game.places.index(1) if 1 in game.places else None
        yield number, [entrant.name for entrant in table], winner, game.turns, game.free_turns


@pytest.mark.parametrize("name", PUBLISHED)
def test_hard_win_rates_match_the_published_ones(run: Run, name: str) -> None:
    rate = run.hard_wins[name].rate()
    assert rate.error < 0.01
    assert rate.share == pytest.approx(PUBLISHED[name] / 100, abs=ALLOWED + ERRORS * rate.error)


def test_all_rates_together_fit_the_published_ones(run: Run) -> None:
    """Test all rates together, since each single test tolerates one deviating bot."""
    misses = []
    for name, published in PUBLISHED.items():
        rate = run.hard_wins[name].rate()
        misses.append((rate.share - published / 100) / sqrt(rate.error**2 + ALLOWED**2))
    assert sqrt(fmean(miss**2 for miss in misses)) < 1.8, (
        "a chi-squared with 11 degrees of freedom exceeds this once in 5,000"
    )


@pytest.mark.parametrize(("free", "published"), [(False, 36.7), (True, 43.1)])
def test_r32_turns_per_game_match_the_source(run: Run, free: bool, published: float) -> None:
    turns = run.all_turns if free else run.turns
    assert fmean(turns) == pytest.approx(published, abs=ERRORS * stdev(turns) / sqrt(len(turns)))


def deviation(tallies: Iterable[Tally]) -> Rate:
    """Return the standard deviation of the true rates over the eleven neighbours, and its error.

    Measured rates also vary by chance, so their errors are subtracted from the variance. If one rate changes by a small
    x, the deviation changes by x * (rate - mean) / (11 * deviation).
    """
    rates = [tally.rate() for tally in tallies]
    assert len(rates) == len(PUBLISHED)
    shares = [rate.share for rate in rates]
    found = sqrt(max(pstdev(shares) ** 2 - fmean(rate.error**2 for rate in rates), 0))
    mean = fmean(shares)
    slopes = [(rate.share - mean) / (len(rates) * found) for rate in rates]
    return Rate(found, sqrt(sum((slope * rate.error) ** 2 for slope, rate in zip(slopes, rates, strict=True))))


@pytest.mark.parametrize(
    ("name", "by_next", "by_prev"),
    [("JustPutCards", 0.34, 0.11), ("MrDoubt", 0.10, 0.30)],
)
def test_aggressive_bots_vary_with_next_and_passive_ones_with_prev(
    run: Run, name: str, by_next: float, by_prev: float
) -> None:
    for tallies, published in ((run.by_next, by_next), (run.by_prev, by_prev)):
        found = deviation(tallies[name, other] for other in PUBLISHED)
        assert found.error < 0.012
        assert found.share == pytest.approx(published, abs=ALLOWED + ERRORS * found.error)


def test_the_error_is_clustered_by_game() -> None:
    """Two seats that always win and lose together provide no more evidence than one."""
    alone, twice = Tally(), Tally()
    for game in range(100):
        alone.add(game, game % 2 == 0)
        twice.add(game, game % 2 == 0)
        twice.add(game, game % 2 == 0)
    assert alone.rate() == Rate(0.5, 0.05)
    assert twice.rate() == alone.rate()
