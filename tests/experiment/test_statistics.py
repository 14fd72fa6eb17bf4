"""Intervals: worked examples, coverage in simulations, and edge cases."""

from random import Random

import pytest

from dubito.games.dubito.cards import Hand
from dubito.games.dubito.engine import RESULTS, Rules, State
from dubito.stats.rates import (
    Rate,
    Sums,
    clustered_rate,
    deals_to_significance,
    deviation,
    paired_difference,
    sampled_rate,
    student_quantile,
    wilson,
)
from tests.cli.kit import REPO
from tests.conftest import in_gate


def sums(clusters: list[tuple[int, int]]) -> tuple[int, int, int, int, int, int]:
    """Return deals, seats, m2, y, y2 and ym of these (m, y) pairs."""
    return (
        len(clusters),
        sum(m for m, _ in clusters),
        sum(m * m for m, _ in clusters),
        sum(y for _, y in clusters),
        sum(y * y for _, y in clusters),
        sum(m * y for m, y in clusters),
    )


def test_wilson_matches_the_published_example() -> None:
    """Newcombe (1998), table I: for 81 of 263 the interval is .2553 to .3662, for 0 of 20 it is 0 to .1611."""
    rate = wilson(81 / 263, 263)
    assert (round(rate.low, 4), round(rate.high, 4)) == (0.2553, 0.3662)
    none = wilson(0, 20)
    assert (none.low, round(none.high, 4)) == (0.0, 0.1611)


def test_one_seat_per_deal_is_a_plain_proportion() -> None:
    clustered = clustered_rate(*sums([(1, 1)] * 300 + [(1, 0)] * 700))
    plain = wilson(0.3, 999, student_quantile(999))
    assert clustered.low == pytest.approx(plain.low, abs=1e-12)
    assert clustered.high == pytest.approx(plain.high, abs=1e-12)


def test_seats_that_repeat_each_other_do_not_narrow_the_interval() -> None:
    single = clustered_rate(*sums([(1, 1)] * 300 + [(1, 0)] * 700))
    tripled = clustered_rate(*sums([(3, 3)] * 300 + [(3, 0)] * 700))
    assert tripled.value == single.value
    assert tripled.low == pytest.approx(single.low, abs=1e-9)
    assert tripled.high == pytest.approx(single.high, abs=1e-9)


@pytest.mark.parametrize(("y", "value"), [(0, 0.0), (1, 1.0)])
def test_no_interval_is_a_point(y: int, value: float) -> None:
    rate = clustered_rate(*sums([(1, y)] * 50))
    assert rate.value == value
    assert rate.high - rate.low > 0.05


def test_no_data_has_no_rate() -> None:
    assert clustered_rate(0, 0, 0, 0, 0, 0).value is None
    assert paired_difference(0, 0, 0).value is None


def test_a_score_in_halves_is_scaled() -> None:
    rate = clustered_rate(*sums([(1, 2)] * 20 + [(1, 1)] * 40 + [(1, 0)] * 40), scale=2)
    assert rate.value == pytest.approx(0.4)
    assert rate.low < 0.4 < rate.high
    assert rate.high - rate.low < 0.2, "a score varies less than a coin with the same mean"


@pytest.mark.parametrize(("deals", "statements"), [(150, 4), (5, 15), (20, 15)])
def test_the_interval_covers_what_it_claims_when_seats_cluster(deals: int, statements: int) -> None:
    """Simulate 800 runs of as few as 5 deals whose seats share their luck.

    About 95 % of the intervals cover the rate.
    """
    rng = Random(1)
    covered = 0
    for _ in range(800):
        clusters = []
        for _ in range(deals):
            luck, m = rng.choice((0.1, 0.5)), rng.randint(1, statements)
            clusters.append((m, sum(rng.random() < luck for _ in range(m))))
        rate = clustered_rate(*sums(clusters))
        covered += rate.low <= 0.3 <= rate.high
    assert 0.92 <= covered / 800 <= 0.98


@pytest.mark.parametrize("clusters", [[(2, 1), (1, 0), (3, 2), (1, 1), (2, 2)] * 40, [(2, 0)] * 200, [(1, 1)] * 200])
def test_repeated_sample_gives_the_full_interval(clusters: list[tuple[int, int]]) -> None:
    """If the deals repeat fifty times, the interval is that of one repetition, except for small-sample corrections."""
    exact = clustered_rate(*sums(clusters * 50))
    known = sampled_rate(50 * sum(y for _, y in clusters), 50 * sum(m for m, _ in clusters), Sums(*sums(clusters)))
    assert known.value == exact.value
    assert (known.low, known.high) == pytest.approx((exact.low, exact.high), abs=2e-4)


def test_unsampled_data_has_a_rate_without_interval() -> None:
    nothing, alike = Sums(0, 0, 0, 0, 0, 0), Sums(*sums([(2, 0)] * 30))
    assert sampled_rate(3, 10, nothing) == Rate(0.3, 0.0, 1.0)
    assert sampled_rate(0, 0, nothing).value is None
    assert sampled_rate(6, 600, alike) == wilson(0.01, 300), "a deal counts as one seat"


@pytest.mark.parametrize(("deals", "sampled"), in_gate([(600, 30), (1500, 150)], 1))
def test_an_interval_known_from_a_sample_covers_what_it_claims(deals: int, sampled: int) -> None:
    """Simulate 500 runs whose seats share their luck. The variance is estimated from the first deals only."""
    rng = Random(2)
    covered = 0
    for _ in range(500):
        clusters = []
        for _ in range(deals):
            luck, m = rng.choice((0.1, 0.5)), rng.randint(1, 6)
            clusters.append((m, sum(rng.random() < luck for _ in range(m))))
        _, seats, _, y, _, _ = sums(clusters)
        rate = sampled_rate(y, seats, Sums(*sums(clusters[:sampled])))
        covered += rate.low <= 0.3 <= rate.high
    assert 0.92 <= covered / 500 <= 0.98


@pytest.mark.parametrize(
    ("df", "point"),
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (10, 2.228), (23, 2.069), (120, 1.980), (10**6, 1.960)],
)
def test_student_matches_the_published_table(df: int, point: float) -> None:
    assert student_quantile(df) == pytest.approx(point, abs=0.004)


def test_paired_difference_has_a_t_interval() -> None:
    """D is 1, 1, 1, -1 and twelve times 0.

    The mean is 1/8, the variance 0.25, the standard error 1/8, and t(15) = 2.131.
    """
    rate = paired_difference(16, 2, 4)
    assert rate.value == 0.125
    assert (rate.low, rate.high) == pytest.approx((0.125 * (1 - 2.1314), 0.125 * (1 + 2.1314)), abs=1e-4)
    halves = paired_difference(16, 4, 16, scale=2)
    assert (halves.value, halves.low, halves.high) == pytest.approx((rate.value, rate.low, rate.high))
    assert paired_difference(4, 2, 4).low == -1.0, "differences are at most 1"


def test_equal_differences_use_the_rule_of_three() -> None:
    twins = paired_difference(300, 0, 0)
    assert (twins.value, twins.low, twins.high) == (0.0, -0.01, 0.01)
    always = paired_difference(10, 10, 10)
    assert (always.value, always.low, always.high) == pytest.approx((1.0, 0.7, 1.0))


def test_number_of_deals_to_significance() -> None:
    """statistics.md, section 3: with sd .41, d = .05 takes about 530 pairs, .10 about 130, and .20 about 33."""
    for d, pairs in ((0.05, 530), (0.10, 130), (0.20, 33)):
        n = 10**6
        total = round(n * d)
        squares = round((0.41**2 + d * d) * n)
        assert deals_to_significance(n, total, squares) == pytest.approx(pairs, rel=0.03)
    assert deals_to_significance(16, 2, 4) == deals_to_significance(16, -4, 16) == 126, (
        "(2.8 / .125)^2 * .25 in any unit"
    )
    for alike in ((16, 0, 4), (16, 16, 16), (1, 1, 1), (0, 0, 0)):
        assert deals_to_significance(*alike) is None


def test_constant_result_has_an_interval() -> None:
    """All seven seats of every deal have .81. Nothing varies, so a deal counts as one seat."""
    deals, y = 20_000, 7 * 81 * 10**10
    rate = clustered_rate(deals, 7 * deals, 49 * deals, y * deals, y * y * deals, 7 * y * deals, scale=10**12)
    plain = wilson(0.81, deals)
    assert (rate.value, rate.low, rate.high) == pytest.approx((plain.value, plain.low, plain.high))


def test_deviation_uses_the_true_values() -> None:
    assert deviation([0.2, 0.4]) == pytest.approx(0.1)
    assert deviation([0.2]) is None


@pytest.mark.parametrize("n", range(3, 9))
def test_chance_levels_add_up_to_the_tables_total(n: int) -> None:
    share = RESULTS.chance_level(n)
    game = State(Rules(), [Hand([1])] * n)
    assert game.n_players == n
    assert share["hard_wins"] * n == pytest.approx(1)
    assert share["losses"] * n == pytest.approx(2)
    assert share["soft_wins"] * n == pytest.approx(n - 3)
    assert share["score"] == pytest.approx(share["hard_wins"] + share["soft_wins"] / 2)


def test_examples_of_the_methods_page_are_right() -> None:
    page = (REPO / "docs" / "methods.md").read_text()
    rate = clustered_rate(*sums([(5, 2), (3, 0), (6, 4), (4, 1)]))
    difference = paired_difference(10, 4, 6)
    assert f"give p = {rate.value:.3f} and an interval of {rate.low:.3f} to\n{rate.high:.3f}" in page
    assert f"give {difference.value}, from {difference.low:.3f} to {difference.high:.3f}" in page
    assert f"needs {deals_to_significance(10, 4, 6)} deals" in page
