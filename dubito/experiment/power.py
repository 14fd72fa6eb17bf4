"""Estimate how many deals a comparison needs to detect a given difference, from a pilot run.

A difference D between two contenders is found with power 0.8 over n deals if n = (z(1 - a/2) + z(0.8))^2 V / D^2. V is
the variance of a deal's difference in the pilot. The error a is 5 % divided by the number of pairs, as in the first
step of Holm's method. If contenders differ only in a condition, only such pairs are asked about; Holm's method still
covers all pairs. The 95 % range of n follows from V's, by the chi-squared distribution with the pilot's deals
minus 1 degrees of freedom; its quantiles are Wilson and Hilferty's (Abramowitz and Stegun, 26.4.17).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from dubito.errors import UsageError, join_names
from dubito.experiment.compare import list_effects
from dubito.experiment.estimate import Figure
from dubito.experiment.experiment import Experiment
from dubito.experiment.stored import Run, list_contenders
from dubito.stats.rates import ERROR, Z95, deals_to_detect, variance_of
from dubito.stats.relation import MIN_DEALS
from dubito.stats.stopping import scale_difference

POWER: Final = 0.8


@dataclass(frozen=True, slots=True)
class DealsNeeded:
    """The deals that the pair with the most variable difference needs."""

    difference: float  # in points, or in the measure's units
    pair: tuple[str, str]
    pairs: int
    effects: int  # pairs that differ only in a condition; if there are any, `pair` is one of them
    deals: Figure
    pilot_deals: int


def estimate_deals(difference: float, planned: Experiment, pilot: Run) -> DealsNeeded:
    """Return how many deals detect this difference between any two contenders, or as the effect of any condition.

    Raises UsageError.
    """
    names, known = [player.name for player in planned.contenders], list_contenders(pilot.planned)
    if len(names) < 2 or planned.stop:
        why = (
            "the config has `stop`, which chooses the number" if planned.stop else "it compares at least two contenders"
        )
        raise UsageError(f"--detect estimates a fixed number of deals: {why}")
    if pilot.planned.game != planned.game:
        raise UsageError(f"the pilot {pilot} is a run of {pilot.planned.game}, not of {planned.game}")
    places = {contender.name: place for place, contender in enumerate(known)}
    if missing := [name for name in names if name not in places]:
        raise UsageError(f"the pilot {pilot} has no contender {join_names(missing)}; it has {join_names([*places])}")
    if pilot.deals < MIN_DEALS:
        raise UsageError(f"the pilot {pilot} has {pilot.deals} deals; at least {MIN_DEALS} are needed")
    pairs, measures = [*combinations(names, 2)], pilot.game.results.measures
    unit = scale_difference(difference, measures[0], known[0].seats)
    variances, effects = [], [pair for pair in list_effects(pilot) if {*pair} <= {*names}]
    for one, other in effects or pairs:
        n, *sums = pilot.tally.tables["pairs"][min(places[one], places[other]), max(places[one], places[other])]
        variances.append((variance_of(n, sums[0], sums[len(measures)]), (one, other)))
    variance, pair = max(variances)
    if not variance:
        raise UsageError(f"the contenders played identically in the pilot {pilot}, so nothing can be estimated")
    bounds = _variance_bounds(variance, pilot.deals - 1)
    low, typical, high = (
        max(MIN_DEALS, deals_to_detect(value, unit, ERROR / len(pairs))) for value in (bounds[0], variance, bounds[1])
    )
    return DealsNeeded(difference, pair, len(pairs), len(effects), Figure(low, typical, high), pilot.deals)


def _variance_bounds(variance: float, df: int) -> Sequence[float]:
    """Return the 95 % interval of a variance with these degrees of freedom."""
    spread = math.sqrt(2 / (9 * df))
    return [variance / max(0.01, 1 - 2 / (9 * df) + z * spread) ** 3 for z in (Z95, -Z95)]
