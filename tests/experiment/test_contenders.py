"""Comparisons of contenders: recounted pairs, the number of further games, and the systems warning."""

from itertools import combinations
from math import sqrt
from statistics import mean, stdev, variance

import pytest

from dubito.games.dubito.engine import RESULTS
from dubito.stats.players import FallbackBounds
from dubito.stats.ranking import (
    Contender,
    ContenderRow,
    _count_to_remove,
    _PairSums,
    contender_pairs,
    contender_ranking,
    find_unequal_fallbacks,
    significant_pairs,
)
from dubito.stats.rates import normal_quantile
from dubito.stats.tally import Outcome, Tally, add_contender_deals, sum_deals
from tests.experiment.kit import experiment, outcomes

BOTS = ["StefaBot", "ClaudeBot", "AlwaysTruthful", "MrDoubt"]
CONTENDERS = ["MrDoubt", "ClaudeBot", "RandomBoi"]
HARD, SOFT, LOSS, UNFINISHED = range(len(RESULTS.buckets))


def score(game: Outcome) -> float:
    assert game.contender_seat is not None
    return (1, 0.5, 0, 0)[game.buckets(RESULTS)[game.contender_seat]]


def hard(game: Outcome) -> float:
    return float(score(game) == 1)


def summed(*deals: tuple[int, ...]) -> Tally:
    """Return a tally of these deals, each given as its contenders' results."""
    tally = Tally()
    by_bucket = RESULTS.values_by_bucket
    assert by_bucket is not None
    add_contender_deals(tally, [[(by_bucket[bucket],) for bucket in deal] for deal in deals], RESULTS)
    return tally


def make_contenders(*names: str) -> list[Contender]:
    return [Contender(name) for name in names]


def test_several_pairs_are_tested_by_holms_method() -> None:
    """With 20 deals, t = 2.5 is significant as a single pair and as the last of three, but not as the first."""

    def seen(t: float) -> _PairSums:
        d2 = 2000
        d = round(t * sqrt(20 * d2 / (19 + t * t)))
        return _PairSums(20, d, d2, 20, 1.0, 3, None, None, False, None)

    assert significant_pairs([seen(2.5)]) == {0}
    assert significant_pairs([seen(0.1), seen(2.5), seen(0.2)]) == set()
    assert significant_pairs([seen(2.5), seen(9), seen(-4)]) == {0, 1, 2}
    assert significant_pairs([seen(2.2), seen(2.2), seen(9)]) == {2}
    apart = seen(2.5).difference(False, 3)
    assert apart.difference.low > 0, "its own interval excludes 0"
    assert apart.more_games, "but the difference is not significant by Holm's test"


@pytest.mark.parametrize(
    ("seen", "gone"),
    [({2: 3, 1: 2, 0: 9, -1: 4}, 2), ({1: 5, -2: 1}, 3), ({-1: 3, 1: 3}, 0), ({2: 4}, 4), ({3: 1, -1: 2}, 1)],
)
def test_the_fewest_deals_that_decide_are_the_largest(seen: dict[int, int], gone: int) -> None:
    assert _count_to_remove(seen) == gone


def test_r33_every_pair_is_compared_on_its_own_seat() -> None:
    played = outcomes(experiment(bots=BOTS, contenders=CONTENDERS, games=600, table_sizes=[4]))
    by_name = {name: played[place::3] for place, name in enumerate(CONTENDERS)}
    tally = sum_deals([played[k : k + 3] for k in range(0, 600, 3)], RESULTS)
    rows = contender_ranking(tally, make_contenders(*CONTENDERS), RESULTS)
    assert [row.contender.name for row in rows] == ["ClaudeBot", "MrDoubt", "RandomBoi"]
    for row in rows:
        assert row.deals == 200
        assert row.rates["score"].value == pytest.approx(mean(map(score, by_name[row.contender.name])))
        assert row.rates["hard_wins"].value == pytest.approx(mean(map(hard, by_name[row.contender.name])))
    pairs = contender_pairs(tally, make_contenders(*CONTENDERS), RESULTS)
    best_first = combinations([row.contender.name for row in rows], 2)
    assert [(pair.one.name, pair.other.name) for pair in pairs] == [*best_first]
    for pair in pairs:
        for difference, measure in ((pair.differences["score"], score), (pair.differences["hard_wins"], hard)):
            games = zip(by_name[pair.one.name], by_name[pair.other.name], strict=True)
            expected = [measure(ours) - measure(theirs) for ours, theirs in games]
            half = 1.972 * stdev(expected) / sqrt(200)
            assert difference.difference.value == pytest.approx(mean(expected))
            assert difference.difference.low == pytest.approx(mean(expected) - half, abs=1e-4)
            assert difference.difference.high == pytest.approx(mean(expected) + half, abs=1e-4)
    assert {pair.differences["score"].more_games for pair in pairs[:2]} == {0}, (
        "the best bot is already significantly better"
    )


def test_number_of_games_to_a_significant_difference() -> None:
    """Of 20 deals, d is 1 in four and -1 in two, so the mean is 0.1. Needed are (2.8 / 0.1)^2 * variance deals."""
    deals = [(HARD, LOSS)] * 4 + [(LOSS, HARD)] * 2 + [(LOSS, LOSS)] * 14
    wanted = 2.8**2 / 0.1**2 * variance([1] * 4 + [-1] * 2 + [0] * 14)
    (pair,) = contender_pairs(summed(*deals), make_contenders("a", "b"), RESULTS)
    assert pair.differences["score"].difference.low < 0 < pair.differences["score"].difference.high
    assert pair.differences["score"].more_games == pytest.approx(2 * (wanted - 20), abs=4), "each deal is two games"
    assert pair.differences["hard_wins"] == pair.differences["score"], "there are no soft wins"
    four = contender_pairs(
        summed(*[(*deal, LOSS, LOSS) for deal in deals]), make_contenders("a", "b", "c", "d"), RESULTS
    )[0]
    of_six = wanted * ((normal_quantile(0.05 / 6) + 0.8416) / 2.8) ** 2 - 20
    assert four.differences["score"].more_games == pytest.approx(4 * of_six, abs=4), (
        "four contenders play a deal four times, and six pairs share the error"
    )
    apart = [Contender("a"), Contender("b", run=1), Contender("c", run=1), Contender("d", run=2)]
    over_runs = contender_pairs(summed(*[(*deal, LOSS, LOSS) for deal in deals]), apart, RESULTS)[0]
    assert over_runs.differences["score"].more_games == 0.75 * (four.differences["score"].more_games or 0), (
        "run 2 need not continue"
    )


def test_equal_players_never_become_significant() -> None:
    (pair,) = contender_pairs(summed((HARD, SOFT), (LOSS, SOFT)), make_contenders("a", "b"), RESULTS)
    assert (pair.differences["score"].difference.value, pair.differences["score"].more_games) == (0.0, None)
    assert pair.differences["hard_wins"].more_games is not None, (
        "the difference in hard wins may still become significant"
    )


def test_single_contender_has_no_pair() -> None:
    assert contender_pairs(summed((HARD,), (LOSS,)), make_contenders("a"), RESULTS) == []
    assert contender_ranking(Tally(), make_contenders("a", "b"), RESULTS) == []
    assert contender_pairs(Tally(), make_contenders("a", "b"), RESULTS) == []


def test_unequal_fallback_shares_compare_systems() -> None:
    def row(name: str, touched: int) -> ContenderRow:
        return ContenderRow(Contender(name), 100, {}, FallbackBounds(touched, 1000, {}), {})

    close = [row("a", 50), row("b", 35), row("c", 40)]
    assert find_unequal_fallbacks(close) is None
    two = find_unequal_fallbacks([*close, row("d", 0)])
    assert two is not None
    assert [one.contender.name for one in two] == ["a", "d"]
    assert find_unequal_fallbacks([]) is None
