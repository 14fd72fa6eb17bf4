"""Figures of detection: textbook values, and what scikit-learn computes."""

from collections import Counter
from statistics import NormalDist

import pytest

from dubito.stats.detection import (
    Belief,
    Signals,
    area_under_curve,
    calibration_error,
    curve_of,
    detection,
)


def test_sensitivity_and_criterion_of_a_textbook() -> None:
    """Macmillan and Creelman's example has 20 and 10 yes among 25 old and new items: d' 1.095 without correction.

    With the log-linear correction, the rates are 20.5 / 26 and 10.5 / 26.
    """
    found = detection(Counter([Signals(25, 20, 25, 10)]))
    z = NormalDist().inv_cdf
    assert found.sensitivity.value == pytest.approx(z(20.5 / 26) - z(10.5 / 26))
    assert found.sensitivity.value == pytest.approx(1.095, abs=0.06)
    assert found.criterion.value == pytest.approx(-(z(20.5 / 26) + z(10.5 / 26)) / 2)


def test_extreme_rates_are_finite() -> None:
    deals = Counter({Signals(5, 5, 5, 0): 4})
    found = detection(deals)
    assert found.sensitivity.value == pytest.approx(2 * NormalDist().inv_cdf(20.5 / 21))
    assert 1 < found.sensitivity.low < found.sensitivity.high < 6
    assert detection(Counter([Signals(0, 0, 5, 2)])).sensitivity.value is None


def test_deals_that_vary_more_have_wider_intervals() -> None:
    same = detection(Counter({Signals(2, 1, 2, 1): 49, Signals(2, 1, 2, 0): 1})).sensitivity
    vary = detection(Counter({Signals(2, 2, 2, 0): 25, Signals(2, 0, 2, 2): 24, Signals(2, 0, 2, 1): 1})).sensitivity
    assert same.value == vary.value
    assert vary.high - vary.low > 5 * (same.high - same.low)


def test_area_under_curve_matches_a_textbook() -> None:
    """Fawcett's (2006) example, figure 3: ten positives and ten negatives, of which 68 of 100 pairs are in order."""
    scores = [90, 80, 70, 60, 55, 54, 53, 52, 51, 50.5, 40, 39, 38, 37, 36, 35, 34, 33, 30, 10]
    truth = [1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0]
    beliefs = [Belief(n, score / 100, bool(so)) for n, (score, so) in enumerate(zip(scores, truth, strict=True))]
    area = area_under_curve(beliefs)
    assert area.value == pytest.approx(0.68)
    assert 0.35 < area.low < 0.68 < area.high < 0.9


def test_area_counts_ties_half_and_has_an_interval_when_perfect() -> None:
    assert area_under_curve([Belief(n, 0.5, n < 5) for n in range(10)]).value == 0.5
    perfect = area_under_curve([Belief(n, float(n < 5), n < 5) for n in range(10)])
    assert (perfect.value, perfect.high) == (1, 1)
    assert perfect.low < 0.7
    assert area_under_curve([Belief(0, 0.5, True)]).value is None


def test_calibration_error_is_the_mean_distance() -> None:
    """Of 800 statements of 0.25, a quarter are lies; of 200 of 0.95, 120 are: 0.2 * 0.35."""
    stated = [Belief(n, 0.25, n % 4 == 0) for n in range(800)] + [Belief(n, 0.95, n % 5 < 3) for n in range(200)]
    error = calibration_error(stated)
    assert error.value == pytest.approx(0.07)
    assert 0 < error.low < 0.07 < error.high
    calibrated = calibration_error(stated[:800])
    assert (calibrated.value, calibrated.low) == (0, 0)
    assert calibrated.high > 0.005


def test_on_a_curve_the_sensitivity_is_equal() -> None:
    z = NormalDist().inv_cdf
    assert [z(hits) - z(alarms) for alarms, hits in curve_of(2)] == pytest.approx([2] * 25)


@pytest.mark.at_length
def test_scikit_learn_computes_the_same() -> None:
    calibration = pytest.importorskip("sklearn.calibration")
    metrics = pytest.importorskip("sklearn.metrics")
    beliefs = [Belief(n, (n * 37 % 101) / 101, n * 29 % 97 < n * 37 % 101) for n in range(500)]
    stated, truth = [one.stated for one in beliefs], [one.is_true for one in beliefs]
    assert area_under_curve(beliefs).value == pytest.approx(metrics.roc_auc_score(truth, stated))
    shares, means = calibration.calibration_curve(truth, stated, n_bins=10)
    sizes = Counter(int(10 * p) for p in sorted(stated)).values()
    error = sum(n * abs(share - mean) for n, share, mean in zip(sizes, shares, means, strict=True)) / 500
    assert calibration_error(beliefs).value == pytest.approx(error)
