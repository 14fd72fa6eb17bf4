"""Variation between groups: real variation is separated from chance, and the intervals have the right coverage."""

import math
from collections.abc import Sequence
from random import Random

import pytest

from dubito.stats.rates import Rate, Sums, Variation, design_effect, deviation, independent_difference, variation
from tests.conftest import in_gate
from tests.experiment.test_statistics import sums

ALIKE = [0.2] * 11
FAR = [0.02, 0.05, 0.05, 0.1, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.8]  # JustPutCards by its next player


def sample_variation(rng: Random, rates: Sequence[float], seats: int) -> Variation:
    sat = [rng.randint(seats // 2, 3 * seats // 2) for _ in rates]
    return variation([sum(rng.random() < rate for _ in range(n)) for n, rate in zip(sat, rates, strict=True)], sat)


@pytest.mark.parametrize("seats", in_gate([10, 60], 1))
@pytest.mark.parametrize(
    ("rates", "least"), in_gate([(ALIKE, 0.95), ([0.0] * 10 + [0.5], 0.88), (FAR, 0.92), ([0.15, 0.2, 0.25], 0.92)], 2)
)
def test_the_interval_covers_what_it_claims(rates: list[float], least: float, seats: int) -> None:
    """Coverage is higher if chance hides nearly everything, and slightly lower if one small group has all variation."""
    rng, true = Random(1), deviation(rates)
    assert true is not None
    found = [sample_variation(rng, rates, seats).beyond for _ in range(300)]
    assert sum(rate.low <= true <= rate.high for rate in found) / 300 >= least


@pytest.mark.parametrize("seats", [10, 60])
def test_equal_groups_show_only_chance(seats: int) -> None:
    rng = Random(2)
    found = [sample_variation(rng, ALIKE, seats) for _ in range(300)]
    assert sum(one.beyond.low == 0 for one in found) / 300 >= 0.95
    squares = [(one.seen or 0) ** 2 for one in found]
    expected = [(one.chance or 0) ** 2 for one in found]
    assert sum(squares) == pytest.approx(sum(expected), rel=0.1)


def test_true_variation_is_found_without_chance() -> None:
    rng, true = Random(3), deviation(FAR)
    found = [sample_variation(rng, FAR, 60) for _ in range(200)]
    assert sum(one.beyond.value or 0 for one in found) / 200 == pytest.approx(true, rel=0.02)
    assert all(one.beyond.low > 0 for one in found)


@pytest.mark.at_length
def test_side_is_named_if_it_matters_and_rarely_by_chance() -> None:
    rng = Random(4)
    named = {"alike": 0, "both": 0, "one": 0}
    for _ in range(200):
        for what, one, other in (("alike", ALIKE, ALIKE), ("both", FAR, FAR), ("one", FAR, ALIKE)):
            difference = independent_difference(
                sample_variation(rng, one, 60).beyond, sample_variation(rng, other, 60).beyond
            )
            named[what] += not difference.low <= 0 <= difference.high
    assert named["alike"] <= 6
    assert named["both"] <= 16
    assert named["one"] == 200


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_no_interval_is_a_point(rate: float) -> None:
    found = variation([round(4 * rate)] * 5, [4] * 5)
    assert (found.seen, found.beyond.value, found.beyond.low) == (0.0, 0.0, 0.0)
    assert found.beyond.high > 0.1


def test_one_seat_per_group_gives_no_estimate() -> None:
    for effect in (1.0, 3.0):
        found = variation([1, 0, 0, 0], [1] * 4, effect)
        assert found.beyond.low == 0
        assert found.beyond.high > 0.4
        assert found.chance is not None
        assert found.chance < 0.5, "this is the maximum variation of a rate"
    for little in (variation([3], [10]), variation([3, 0], [10, 0]), variation([], [])):
        assert little == Variation(None, None, Rate(None))


def test_variation_of_two_groups_matches_the_formula() -> None:
    """R = .1 and .3 with 100 seats each: Q = .02, p = 42/204, sum v = 2 (pq - t^2) / 100. Solve E Q = Q for t."""
    found = variation([10, 30], [100, 100])
    pq = 42 / 204 * (1 - 42 / 204)
    assert found.seen == pytest.approx(0.1)
    assert found.chance == pytest.approx(math.sqrt(pq / 200))
    assert found.beyond.value == pytest.approx(math.sqrt((0.02 - pq / 100) / (2 - 1 / 100)), abs=0.005)


def test_seats_that_repeat_each_other_do_not_narrow_the_interval() -> None:
    """Every deal is played three times with the same result, so the seats count as a third."""
    one = variation([10, 30, 20], [100, 100, 100])
    thrice = variation([30, 90, 60], [300, 300, 300], effect=3.0)
    assert thrice.seen == one.seen
    assert thrice.chance == pytest.approx(one.chance, rel=0.02)
    assert (thrice.beyond.low, thrice.beyond.high) == pytest.approx((one.beyond.low, one.beyond.high), rel=0.02)


def test_the_design_effect_is_how_much_seats_repeat_each_other() -> None:
    rng = Random(5)
    single = [(1, int(rng.random() < 0.3)) for _ in range(4000)]
    assert design_effect([Sums(*sums(single))]) == pytest.approx(1.0, abs=1e-9)
    tripled = [Sums(*sums([(3, 3 * y) for _, y in single[part::2]])) for part in (0, 1)]
    assert design_effect(tripled) == pytest.approx(3.0, rel=0.01)
    assert design_effect([Sums(*sums([(2, 1)] * 20))]) == 1.0, "the effect is at least 1"
    assert design_effect([Sums(1, 2, 4, 1, 1, 2), Sums(0, 0, 0, 0, 0, 0)]) == 1.0


def test_a_difference_has_the_interval_of_both() -> None:
    """Zou and Donner (2008): .5 [.4, .7] minus .2 [.15, .3] is .3, from .3 - |(.1, .1)| to .3 + |(.2, .05)|."""
    difference = independent_difference(Rate(0.5, 0.4, 0.7), Rate(0.2, 0.15, 0.3))
    assert (difference.value, difference.low, difference.high) == pytest.approx(
        (0.3, 0.3 - math.sqrt(0.02), 0.3 + math.sqrt(0.0425))
    )
    assert independent_difference(Rate(None), Rate(0.5)).value is None
