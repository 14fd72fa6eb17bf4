"""`dubito estimate --detect`: the promised power, by simulation, and what is asked of the pilot run."""

import json
from random import Random

import pytest

from dubito.stats.rates import deals_to_detect, paired_difference, variance_of
from tests.cli.kit import Shell

SCALE = 2  # Scores are halves
VALUES = (-2, -1, 0, 1, 2)


def power_of(difference: float, studies: int, pilot_deals: int, seed: int) -> float:
    """Return the share of studies that find a true difference, each with the deals that its own pilot asks for."""
    chance, shift = Random(seed), difference / 2
    weights = [0.10 - shift / 2, 0.2 - shift / 2, 0.4, 0.2 + shift / 2, 0.10 + shift / 2]
    mean = sum(value * weight for value, weight in zip(VALUES, weights, strict=True)) / SCALE
    found = 0
    for _ in range(studies):
        pilot = chance.choices(VALUES, weights, k=pilot_deals)
        variance = variance_of(pilot_deals, sum(pilot), sum(value * value for value in pilot))
        deals = deals_to_detect(variance, mean * SCALE)
        study = chance.choices(VALUES, weights, k=deals)
        rate = paired_difference(deals, sum(study), sum(value * value for value in study), SCALE)
        found += rate.low > 0
    return found / studies


def test_the_promised_power_is_found() -> None:
    assert 0.76 <= power_of(0.1, studies=600, pilot_deals=100, seed=1) <= 0.84


@pytest.mark.at_length
@pytest.mark.parametrize("difference", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("pilot_deals", [30, 100])
def test_the_promised_power_is_found_for_all_differences(difference: float, pilot_deals: int) -> None:
    assert 0.76 <= power_of(difference, studies=3_000, pilot_deals=pilot_deals, seed=2) <= 0.84


def test_deals_are_estimated_from_a_pilot(shell: Shell) -> None:
    """Half the difference needs four times the deals. More pairs need more deals."""
    bots = "Sherlock,ClaudeBot,AdaptyBoi"
    assert shell("run", "--contenders", bots, "--games", "90", "--output", "pilot", "--quiet").code == 0
    (shell.folder / "b.yaml").write_text("contenders: [Sherlock, ClaudeBot]\n")
    result = shell("estimate", "b.yaml", "--detect", "5", "--from", "pilot")
    assert result.code == 0, result.err
    assert result.out.startswith("To detect a difference of 5 points of Score with a probability of 0.8: ")
    assert result.out.endswith("This is for Sherlock and ClaudeBot, from 30 deals of pilot.\n")
    needed = {}
    for points, contenders in (("5", bots), ("2.5", bots), ("5", "Sherlock,ClaudeBot")):
        result = shell(
            "estimate", "b.yaml", "--detect", points, "--from", "pilot", "--contenders", contenders, "--json"
        )
        document = json.loads(result.out)
        needed[points, contenders] = one = document["needed"]
        assert document["games"] == one["deals"] * len(contenders.split(","))
        assert one["range"][0] < one["deals"] < one["range"][1]
        assert (one["power"], one["pilot_deals"]) == (0.8, 30)
    assert needed["2.5", bots]["deals"] == pytest.approx(4 * needed["5", bots]["deals"], rel=0.01)
    assert needed["5", bots]["deals"] > needed["5", "Sherlock,ClaudeBot"]["deals"]


@pytest.mark.at_length
def test_with_conditions_the_effects_are_detected(shell: Shell) -> None:
    """Pairs of different players are more variable, but a study of conditions does not ask about them."""
    (shell.folder / "c.yaml").write_text(CONDITIONS)
    assert shell("run", "c.yaml", "--output", "pilot", "--quiet", "--no-report").code == 0
    result = shell("estimate", "c.yaml", "--detect", "10", "--from", "pilot")
    assert result.code == 0, result.err
    first = result.out.splitlines()[0]
    assert "with Holm's method for 6 pairs" in first
    assert first.endswith(
        "This is for house:house-random and house:house-random@plain+must-not-lie, the most variable effect of a "
        "condition, from 12 deals of pilot."
    )
    players = "house:house-honest,house:house-random"
    (shell.folder / "b.yaml").write_text("table_sizes: [3]\nrules: {ranks: 5, jokers: 0}\n")
    result = shell("estimate", "b.yaml", "--contenders", players, "--detect", "10", "--from", "pilot")
    assert "This is for house:house-honest and house:house-random, from 12 deals of pilot." in result.out


CONDITIONS = """
rules: {ranks: 5, jokers: 0}
table_sizes: [3]
bots: [StefaBot, UsualBot]
contenders: ["house:house-honest", "house:house-random"]
conditions: [silent, must-not-lie]
games: 48
"""


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "--detect needs a pilot run of the same contenders; add --from RUN"),
        (["--from", "short"], "the pilot short has 2 deals; at least 10 are needed"),
        (["--from", "short", "--contenders", "SusBoi,ClaudeBot"], "the pilot short has no contender SusBoi; it has "),
        (["--from", "short", "--contenders", "SusBoi"], "--detect estimates a fixed number of deals: it compares at "),
    ],
)
def test_impossible_pilot_is_reported_in_one_sentence(shell: Shell, words: list[str], sentence: str) -> None:
    assert shell("run", "--contenders", "Sherlock,ClaudeBot", "--games", "4", "--output", "short").code == 0
    (shell.folder / "b.yaml").write_text("contenders: [Sherlock, ClaudeBot]\n")
    result = shell("estimate", "b.yaml", "--detect", "5", *words)
    assert result.code == 2
    assert result.err.startswith(f"dubito: {sentence}"), result.err
    assert len(result.err.splitlines()) == 1
