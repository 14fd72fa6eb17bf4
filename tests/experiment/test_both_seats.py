"""Contenders at tables of two play both seats of each deal (docs/comparing.md)."""

import pytest

from dubito.errors import UsageError
from dubito.experiment.config import parse_config
from dubito.experiment.experiment import Experiment
from dubito.experiment.play import draw_lineups
from dubito.experiment.resolve import resolve
from dubito.game.streams import DealStreams
from dubito.stats.ranking import Contender, contender_pairs, contender_ranking
from dubito.stats.rates import clustered_rate, paired_difference
from dubito.stats.tally import Outcome, sum_deals
from tests.experiment.test_duels import DRAWN, LOST, RESULTS, WON, game
from tests.games.kit import registry_of


def experiment(games: int = 8) -> Experiment:
    config = {
        "game": "defuse",
        "games": games,
        "bots": ["Medium", "Scared", "Simple"],
        "contenders": ["Medium", "Sapper"],
    }
    return resolve(parse_config(config, "test"), registry_of("defuse")).experiment


def test_each_contender_plays_both_seats_against_the_same_opponent() -> None:
    whole = experiment()
    opponents = set()
    for deal in range(60):
        games = draw_lineups(whole, deal, DealStreams(0, deal))
        assert [one.game for one in games] == [*range(4 * deal, 4 * deal + 4)]
        assert [one.contender_seat for one in games] == [0, 1, 0, 1]
        for place, contender in ((0, 0), (2, 3)):  # Medium is also an opponent, Sapper is not
            first, second = games[place : place + 2]
            assert first.seats == second.seats[::-1]
            assert (first.seats[0], second.seats[1]) == (contender, contender)
            opponents.add((contender, first.seats[1]))
    assert opponents == {(contender, bot) for contender in (0, 3) for bot in (0, 1, 2)}, "Medium meets a copy of itself"


def test_games_are_counted_in_both_seats() -> None:
    assert (experiment().games_per_deal, experiment().deals) == (4, 2)
    with pytest.raises(
        UsageError, match=r"6 is not a multiple of 4 \(2 contenders, in both seats of every deal\); use 4 or 8"
    ):
        experiment(6)


def contended(ended: int, other: int, seat: int) -> Outcome:
    players = (3, other) if seat == 0 else (other, 3)
    one = game(*players, ended)
    one.contender_seat = seat
    return one


def test_rates_and_differences_are_per_game() -> None:
    """Three deals of two contenders. A win is worth 2 points and a draw 1, out of 2."""
    deals = [
        [contended(*how) for how in ((WON, 0, 0), (LOST, 0, 1), (LOST, 0, 0), (DRAWN, 0, 1))],  # 4 to 1
        [contended(*how) for how in ((WON, 1, 0), (WON, 1, 1), (WON, 1, 0), (WON, 1, 1))],  # 2 to 2
        [contended(*how) for how in ((WON, 2, 0), (DRAWN, 2, 1), (LOST, 2, 0), (WON, 2, 1))],  # 3 to 0
    ]
    tally, contenders = sum_deals(deals, RESULTS), [Contender(name, seats=2) for name in ("a", "b")]
    rows = contender_ranking(tally, contenders, RESULTS)
    assert [(row.contender.name, row.deals) for row in rows] == [("a", 3), ("b", 3)]
    assert rows[0].rates["points"] == clustered_rate(3, 6, 12, 9, 29, 18, 2)
    assert rows[0].rates["points"].value == pytest.approx(9 / 12)
    assert rows[0].bounds.seats == 6
    (pair,) = contender_pairs(tally, contenders, RESULTS)
    assert pair.differences["points"].difference == paired_difference(3, 6, 18, 4)
