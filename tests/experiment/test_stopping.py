"""The stopping test: its formulas, sparse differences, and its error rate in simulations."""

import math
from collections import Counter
from random import Random

import pytest

from dubito.stats.rates import paired_difference
from dubito.stats.stopping import PairTest, StopTest, anytime_difference, log_likelihoods, split_at_looks

HALVES = (-2, -1, 0, 1, 2)  # possible differences of Scores in a deal, in halves
THREE = 0.06  # three points, in halves


def compared(weights: tuple[float, ...], seed: int, comparisons: int, within: float = THREE) -> list[PairTest]:
    rng, tests = Random(seed), []
    for _ in range(comparisons):
        test = PairTest(within, 2)
        while test.verdict is None:
            for difference in rng.choices(HALVES, weights, k=10):
                test.add(difference)
        tests.append(test)
    return tests


def test_ratio_matches_normal_differences() -> None:
    seen = Counter({2: 20, 1: 25, -1: 15, -2: 10, 0: 10})
    n, s, q = 80, 40 + 25 - 15 - 20, 80 + 25 + 15 + 40
    s2 = (q - s * s / n) / (n - 1)
    expected = [0.06 * (2 * side - n * 0.06) / (2 * s2) for side in (s, -s)]
    assert log_likelihoods(seen, 0.06, 2) == pytest.approx(expected)


def test_exact_ratio_uses_the_likeliest_distributions() -> None:
    """With 8 deals won, 2 lost and 190 equal, compare with all distributions on a grid."""
    wins, losses, alike, mean = 8, 2, 190, 0.05

    def best(mean: float) -> float:
        steps = (k / 20_000 for k in range(1, 4000))
        return max(
            wins * math.log(q + mean) + losses * math.log(q) + alike * math.log(1 - mean - 2 * q)
            for q in steps
            if q + mean > 0 and mean + 2 * q < 1
        )

    more, less = log_likelihoods({1: wins, -1: losses, 0: alike}, mean, 1)
    assert more == pytest.approx(best(mean) - best(0.0), abs=1e-3)
    assert less < -5


def test_equal_pair_is_not_declared_close_immediately() -> None:
    """Thirty equal deals do not exclude a difference of 3 points. The formula would, since their variance is 0."""
    test = PairTest(THREE, 2)
    for _ in range(30):
        test.add(0)
    assert test.verdict is None
    for _ in range(20):
        test.add(0)
    assert test.verdict == "within"


def test_first_look_is_after_30_deals_then_every_10() -> None:
    assert [*split_at_looks(range(57))] == [range(30), range(30, 40), range(40, 50), range(50, 57)]
    assert [*split_at_looks(range(1000, 1015))] == [range(1000, 1010), range(1010, 1015)]
    test = PairTest(THREE, 2)
    verdicts = []
    for _ in range(31):
        test.add(2)
        verdicts.append(test.verdict)
    assert verdicts == [None] * 29 + ["different"] * 2
    assert (test.deals, test.sign, test.way) == (30, 1, 1.0), "a verdict does not change"


def test_pairs_share_the_error_rate_and_all_must_be_decided() -> None:
    three = StopTest(3, THREE, 2)
    assert three.pairs[0, 2].bounds[0] == pytest.approx(math.log(0.7 / (0.025 / 3)))
    for _ in range(30):
        three.add([4, 2, 2])
    assert (three.rows(), three.decided) == ({(0, 1): [30, 1], (0, 2): [30, 1]}, False)
    for _ in range(40):
        three.add([4, 2, 2])
    assert (three.rows(), three.decided) == ({(0, 1): [30, 1], (0, 2): [30, 1], (1, 2): [40, 0]}, True)


@pytest.mark.parametrize(
    ("weights", "difference", "interval"),
    [
        ((0.2, 0.2, 0.2, 0.2, 0.2), 0, (0, 0.1)),
        ((0.02, 0.01, 0.94, 0.01, 0.02), 0, (0, 0.1)),
        ((0.01, 0.01, 0.93, 0.01, 0.04), 3, (0.6, 0.95)),
        ((0.08, 0.05, 0.45, 0.22, 0.2), 20.5, (1, 1)),
    ],
)
def test_equal_players_rarely_differ_and_unequal_mostly_do(
    weights: tuple[float, ...], difference: float, interval: tuple[float, float]
) -> None:
    """A small version of `benchmarks/stopping.py`, which simulates 500 comparisons per cell."""
    tests = compared(weights, 4, 60, within=2 * THREE if difference == 0 else THREE)
    apart = [test for test in tests if test.verdict == "different"]
    assert interval[0] <= len(apart) / len(tests) <= interval[1]
    if difference:
        assert all(test.sign == 1 for test in apart)
    held = 0
    for test in tests:
        d = sum(value * count for value, count in test.seen.items())
        d2 = sum(value * value * count for value, count in test.seen.items())
        at_any_time, usual = anytime_difference(test.deals, d, d2, THREE, 2), paired_difference(test.deals, d, d2, 2)
        assert at_any_time.low <= usual.low
        assert usual.high <= at_any_time.high
        held += at_any_time.low <= difference / 100 <= at_any_time.high
    assert held >= len(tests) - 1


def test_anytime_interval_matches_its_formula() -> None:
    n, d, d2 = 400, 60, 520
    s2 = (n * d2 - d * d) / (n * (n - 1))
    n0 = (2.8**2) * s2 / 0.06**2
    r = (-2 * math.log(0.05) + math.log(-2 * math.log(0.05)) + 1) / n0
    half = math.sqrt(s2) * math.sqrt(2 * (n * r + 1) / (n * n * r) * math.log(math.sqrt(n * r + 1) / 0.05))
    rate = anytime_difference(n, d, d2, 0.06, 2)
    assert (rate.value, rate.low, rate.high) == pytest.approx((0.075, 0.075 - half / 2, 0.075 + half / 2))
    assert anytime_difference(20, 0, 0, 0.06, 2).high == pytest.approx(0.15), (
        "the rule of three applies if all are equal"
    )


def test_test_gives_up_after_three_times_the_deals() -> None:
    """With a true difference between 0 and 3 points, neither bound is reached for a long time."""
    test, n = PairTest(THREE, 2), 0
    while test.verdict is None:
        total = sum(value * count for value, count in test.seen.items())
        test.add(2 if total < 0.03 * n else -2)
        n += 1
    assert test.verdict == "undecided"
    assert n == math.ceil(3 * (2.8**2) * test.spread / THREE**2 / 10) * 10
