"""The sheet recovers the known values of scripted players, and its intervals contain them."""

from math import log
from statistics import NormalDist

import pytest

from dubito.plugins.deception.sheet import GAPS, PlayerSheet
from dubito.stats.rates import Rate
from tests.plugins.deception.scripted import Script, play_run

GATE, LONG = 20, 1000
D_PRIME, CRITERION = 1.0, 0.2
NORMAL = NormalDist()
DOUBTER = Script(hits=NORMAL.cdf(D_PRIME / 2 - CRITERION), alarms=NORMAL.cdf(-D_PRIME / 2 - CRITERION), dodges=False)
CALIBRATED = Script(belief=lambda rate: rate)
OVERCONFIDENT = Script(belief=lambda rate: 0.0 if rate < 0.5 else 0.9)
# Of the plays rated 0.1 and 0.7, 2/3 * 0.1 and 1/3 * 0.7 are lies, and 2/3 * 0.9 and 1/3 * 0.3 are honest.
AREA = 7 / 9 * 6 / 7 + (7 / 9 * 1 / 7 + 2 / 9 * 6 / 7) / 2
# It rates plays at 0.2 and 0.9 that are lies with 0.1 and 0.7, and doubts them with 0.1 * 0.5 + 0.9 * 0.3 = 0.32 and
# 0.7 * 0.5 + 0.3 * 0.3 = 0.44, whatever it believes.
RECKLESS = Script(belief=lambda rate: 0.2 if rate < 0.5 else 0.9, dodges=False)
# Each play is an opening of one card, so an answer gains or loses one card.
DOUBTS_ALL = Script(belief=lambda rate: 0.8 if rate < 0.5 else 0.2, hits=1, alarms=1)


def mean(unlikely: float, likely: float) -> float:
    """Return the mean over plays, of which two thirds are lies with 0.1, and the others with 0.7."""
    return 2 / 3 * unlikely + 1 / 3 * likely


def loss(rate: float, belief: float) -> float:
    return -rate * log(belief) - (1 - rate) * log(1 - belief)


def beliefs(sheet: PlayerSheet) -> dict[str, Rate]:
    return {"area": sheet.quality.area, "brier": sheet.quality.brier, "ece": sheet.quality.calibration_error}


def doubts(sheet: PlayerSheet) -> dict[str, Rate]:
    found = sheet.whole.detection
    return {"d'": found.sensitivity, "criterion": found.criterion}


def lies(sheet: PlayerSheet) -> dict[str, Rate]:
    return {"lies": sheet.whole.rate("willing")}


def gaps(sheet: PlayerSheet) -> dict[str, Rate]:
    return {key: sheet.gap.rate(key) for key in GAPS}


OWN_LOSS, LEAST_LOSS = mean(loss(0.1, 0.2), loss(0.7, 0.9)), mean(loss(0.1, 0.1), loss(0.7, 0.7))
PLAYERS = {
    "liar": (Script(), lies, {"lies": 0.3}),
    "doubter": (DOUBTER, doubts, {"d'": D_PRIME, "criterion": CRITERION}),
    "calibrated": (CALIBRATED, beliefs, {"area": AREA, "brier": 2 / 3 * 0.09 + 1 / 3 * 0.21, "ece": 0.0}),
    "overconfident": (OVERCONFIDENT, beliefs, {"area": AREA, "brier": 2 / 3 * 0.1 + 1 / 3 * 0.25, "ece": 0.4 / 3}),
    "reckless": (
        RECKLESS,
        gaps,
        {
            "loss": OWN_LOSS,
            "reference_loss": LEAST_LOSS,
            "divergence": OWN_LOSS - LEAST_LOSS,
            "calls_against": 0.32,
            "passes_against": 0.56,
            "against_reference": mean(0.32, 0.56),
        },
    ),
    # It calls plays that are lies with 0.1, against the reference, and those with 0.7, against its own belief.
    "doubts all": (DOUBTS_ALL, gaps, {"reference_cards": 0.1 - 0.9, "own_cards": 0.7 - 0.3}),
}


@pytest.mark.parametrize("name", PLAYERS)
def test_intervals_contain_the_known_values(name: str, at_length: bool) -> None:
    script, measure, known = PLAYERS[name]
    runs = LONG if at_length else GATE
    found = [measure(play_run(script, seed)) for seed in range(runs)]
    for key, value in known.items():
        covered = sum(one[key].low <= value <= one[key].high for one in found) / runs
        # In 20 runs, chance alone explains 16 of them: the probability of fewer is 0.3 % at 95 %.
        assert (0.92 if at_length else 0.8) <= covered <= (0.98 if at_length else 1.0), (key, covered)
