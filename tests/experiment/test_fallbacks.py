"""Bounds for fallbacks: recounted, independent of grouping, and absent without fallbacks."""

from dataclasses import replace
from random import Random

import pytest

from dubito.game import Measure
from dubito.games.dubito.engine import RESULTS
from dubito.stats.players import fallback_share
from dubito.stats.ranking import Contender, contender_pairs, contender_ranking, ranking
from dubito.stats.relation import describe_limits
from dubito.stats.tally import Outcome, Tally, add_contender_deals, fallback_sums, sum_deals
from tests.experiment.kit import experiment, outcomes

BOTS = ["StefaBot", "ClaudeBot", "MrDoubt"]
CONTENDERS = ["ClaudeBot", "RandomBoi"]
NAMES = [*BOTS, "RandomBoi"]
POINTS = (1, 0.5, 0, 0)
HARD, LOSS = 0, 2

RETURNS = replace(
    RESULTS,
    measures=(Measure("payoff", "payoff", "Payoff", count="payoff", scale=8, span=(-4, 4)),),
    headline=("payoff",),
)

Game = tuple[Outcome, frozenset[int]]


@pytest.fixture(scope="module")
def deals() -> list[list[Game]]:
    """Return 60 deals of two games in which random seats had a fallback."""
    rng = Random(3)
    played = outcomes(experiment(bots=BOTS, contenders=CONTENDERS, games=120, table_sizes=[3, 5]))
    games = [(game, frozenset(s for s in range(len(game.seats)) if rng.random() < 0.3)) for game in played]
    return [games[k : k + 2] for k in range(0, 120, 2)]


def summed(deals: list[list[Game]]) -> Tally:
    """Return the sums of these deals."""
    touched = (seats for games in deals for _, seats in games)
    return sum_deals([[outcome for outcome, _ in games] for games in deals], RESULTS, touched)


def rescored(seats: list[tuple[Outcome, frozenset[int], int]], touched_as: int) -> tuple[float, float]:
    results = [touched_as if seat in touched else game.buckets(RESULTS)[seat] for game, touched, seat in seats]
    return sum(POINTS[result] for result in results) / len(seats), results.count(HARD) / len(seats)


def test_bounds_of_a_player_cover_all_its_seats(deals: list[list[Game]]) -> None:
    for row in ranking(summed(deals), NAMES, RESULTS):
        player = NAMES.index(row.name)
        seats = [(g, t, s) for games in deals for g, t in games for s, who in enumerate(g.seats) if who == player]
        worst, best = rescored(seats, LOSS), rescored(seats, HARD)
        assert row.bounds.touched == sum(seat in touched for _, touched, seat in seats) > 0
        assert row.bounds.seats == len(seats)
        assert row.bounds.rates["score"] == pytest.approx((worst[0], best[0]))
        assert row.bounds.rates["hard_wins"] == pytest.approx((worst[1], best[1]))
        assert worst[0] < (row.rates["score"].value or 0) < best[0], "the headline counts games as played"


def test_bounds_of_a_contender_cover_only_its_seat(deals: list[list[Game]]) -> None:
    rows = contender_ranking(summed(deals), [Contender(name) for name in CONTENDERS], RESULTS)
    assert len(rows) == 2
    for row in rows:
        place = CONTENDERS.index(row.contender.name)
        seats = [(*games[place], games[place][0].contender_seat or 0) for games in deals]
        assert row.bounds.touched == sum(seat in touched for _, touched, seat in seats) > 0
        for end, result in enumerate((LOSS, HARD)):
            score, hard = rescored(seats, result)
            assert (row.bounds.rates["score"][end], row.bounds.rates["hard_wins"][end]) == pytest.approx((score, hard))


def test_chunks_add_up_in_any_grouping(deals: list[list[Game]]) -> None:
    whole = summed(deals).to_json()
    for cut in (1, 20, 59):
        assert (summed(deals[:cut]) + summed(deals[cut:])).to_json() == whole
    assert Tally.from_json(whole, RESULTS).to_json() == whole


def test_player_without_games_has_no_bounds() -> None:
    (row,) = ranking(Tally(), ["a"], RESULTS)
    assert (row.bounds.touched, row.bounds.rates["score"]) == (0, (0.0, 1.0))


def test_fallback_share_is_of_all_decisions() -> None:
    outcomes = {"model": 6, "model_after_reask": 2, "fallback:refused": 1, "fallback:malformed": 1}
    assert fallback_share(outcomes) == pytest.approx(0.2)
    assert fallback_share({"model": 3}) == fallback_share({}) == 0.0


def test_verdict_counts_fallback_games_both_ways(deals: list[list[Game]]) -> None:
    """The worst case for a player: its games with a fallback are losses, and those of the other are hard wins."""
    contenders = [Contender(name) for name in CONTENDERS]
    (pair,) = contender_pairs(summed(deals), contenders, RESULTS)
    places = [CONTENDERS.index(each.name) for each in (pair.one, pair.other)]
    own, other = ([(*games[place], games[place][0].contender_seat or 0) for games in deals] for place in places)
    worst = rescored(own, LOSS)[0] - rescored(other, HARD)[0]
    best = rescored(own, HARD)[0] - rescored(other, LOSS)[0]
    found = pair.differences["score"]
    assert (found.worst, found.best) == pytest.approx((worst, best))
    assert worst < 0 < best
    assert found.is_significant, "ClaudeBot plays against RandomBoi"
    assert (found.outcome, found.withheld, found.more_games) == ("withheld", "fallbacks", None)
    shares = [sum(seat in touched for _, touched, seat in seats) / 60 for seats in (own, other)]
    assert found.fallback_shares == pytest.approx(shares), "of games, not of decisions"


@pytest.mark.parametrize(("touched", "has_fallbacks"), [(0, False), (1, False), (2, True)])
def test_fallbacks_count_above_two_percent_of_games(touched: int, has_fallbacks: bool) -> None:
    contenders = [Contender("a"), Contender("b")]
    (pair,) = contender_pairs(payoffs(*[(6, 2)] * 50, touched=(*range(touched),)), contenders, RETURNS)
    assert pair.differences["payoff"].has_fallbacks == has_fallbacks


def payoffs(*deals: tuple[int, int], touched: tuple[int, ...]) -> Tally:
    """Return deals of two contenders with these payoffs, at one seat each.

    The second had a fallback in some of them.
    """
    tally = Tally()
    add_contender_deals(tally, [[((one,),), ((other,),)] for one, other in deals], RETURNS)
    for deal in touched:
        tally.add("touched_contenders", (1,), fallback_sums((deals[deal][1],), RETURNS))
    return tally


@pytest.mark.parametrize(("touched", "outcome"), [(2, "better"), (13, "better"), (14, "withheld"), (18, "withheld")])
def test_the_worst_case_of_a_payoff_is_on_its_own_scale(touched: int, outcome: str) -> None:
    """Payoffs from -4 to 4 are stored as 0 to 8. The second has 2 of 8 in games with a fallback."""
    deals = [(6, 2)] * 18 + [(8, 0), (4, 4)]
    contenders = [Contender("a"), Contender("b")]
    (pair,) = contender_pairs(payoffs(*deals, touched=(*range(touched),)), contenders, RETURNS)
    found = pair.differences["payoff"]
    assert found.difference.value == pytest.approx(4.0)
    assert (found.worst, found.best) == pytest.approx((4 - 0.3 * touched, 4 + 0.1 * touched))
    assert (found.worst > 0, found.outcome) == (outcome == "better", outcome)
    assert describe_limits(RETURNS) == "the lowest or the highest Payoff"
