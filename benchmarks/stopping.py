"""Simulate how a run with `stop: {within: 3}` decides: `python benchmarks/stopping.py [--comparisons N]`.

Each cell is 500 simulated comparisons of two contenders with a given true difference of Scores. Their difference per
deal is drawn from 1, 1/2, 0, -1/2 and -1, and is nonzero in 84, 42 or 6 of 100 deals. The mean number of deals is shown
next to the fixed length that has the same power to detect 3 points, which would have to be chosen in advance.
"""

import argparse
import math
import random
from collections.abc import Sequence
from statistics import NormalDist, mean

from dubito.stats.rates import Rate, paired_difference, variance_of
from dubito.stats.stopping import PairTest, anytime_difference

HALVES = (-2, -1, 0, 1, 2)  # of a Score
PAIRS = {
    "unlike": (0.21, 0.21, 0.16, 0.21, 0.21),
    "models": (0.11, 0.10, 0.58, 0.10, 0.11),
    "twins": (0.02, 0.01, 0.94, 0.01, 0.02),
}
POINTS = (0.0, 1.5, 3.0, 6.0, 12.0)
WITHIN = 0.06  # 3 points, in halves


def tilt_weights(weights: Sequence[float], points: float) -> list[float]:
    """Tilt these weights so that the mean difference has this many points."""
    low, high = -5.0, 20.0
    for _ in range(80):
        tilt = (low + high) / 2
        shares = [weight * math.exp(tilt * half) for weight, half in zip(weights, HALVES, strict=True)]
        average = sum(share * half for share, half in zip(shares, HALVES, strict=True)) / sum(shares)
        low, high = (tilt, high) if average < points / 50 else (low, tilt)
    return [share / sum(shares) for share in shares]


def simulate_test(weights: Sequence[float], rng: random.Random) -> PairTest:
    """Simulate one comparison until it is decided."""
    test = PairTest(WITHIN, 2)
    while test.verdict is None:
        for difference in rng.choices(HALVES, weights, k=10):
            test.add(difference)
    return test


def intervals(test: PairTest) -> tuple[Rate, Rate]:
    d = sum(half * count for half, count in test.seen.items())
    d2 = sum(half * half * count for half, count in test.seen.items())
    return anytime_difference(test.deals, d, d2, WITHIN, 2), paired_difference(test.deals, d, d2, 2)


def fixed_length(weights: Sequence[float], power: float) -> float:
    """Return how many deals a fixed run needs to detect 3 points with this power at 5 %."""
    expected = [round(1e6 * weight) for weight in weights]
    d = sum(half * count for half, count in zip(HALVES, expected, strict=True))
    d2 = sum(half * half * count for half, count in zip(HALVES, expected, strict=True))
    reach = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(power)
    return (reach / WITHIN) ** 2 * variance_of(sum(expected), d, d2)


def main() -> None:
    """Simulate and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=500, help="number of comparisons per cell")
    parser.add_argument("--points", type=float, nargs="*", default=POINTS, help="true differences in points")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print("pair, points: significant %, within 3 points %, undecided %; wrongly significant %;")
    print("  deals compared with a fixed length; coverage of the anytime interval % and of the fixed-length interval %")
    for name, weights in PAIRS.items():
        cells = {}
        for points in arguments.points:
            rng = random.Random(f"{arguments.seed} {name} {points}")
            cells[points] = [simulate_test(tilt_weights(weights, points), rng) for _ in range(arguments.comparisons)]
        apart = {points: [test for test in tests if test.verdict == "different"] for points, tests in cells.items()}
        length = fixed_length(weights, len(apart[3.0]) / arguments.comparisons) if 3.0 in apart else math.nan
        for points, tests in cells.items():
            shares = [
                100 * sum(test.verdict == verdict for test in tests) / len(tests)
                for verdict in ("different", "within", "undecided")
            ]
            wrong = 100 * sum(points == 0 or test.sign < 0 for test in apart[points]) / len(tests)
            held = [
                100 * mean(rate.low <= points / 100 <= rate.high for rate in rates)
                for rates in zip(*map(intervals, tests), strict=True)
            ]
            deals = mean(test.deals for test in tests)
            print(f"{name}, {points:g}: {shares[0]:.1f}, {shares[1]:.1f}, {shares[2]:.1f}; {wrong:.1f}; "
                  f"{deals:,.0f} = {100 * deals / length:.0f} % of {length:,.0f}; {held[0]:.1f}, {held[1]:.1f}",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
