"""How often a forge recognizes a better bot and names an overfitted one, in simulated results.

A bot's Score in a deal is drawn at random: 1, 1/2 or 0. The bots' results in a deal are independent here. Real ones are
positively correlated, so real forges recognize more.
"""

from collections.abc import Sequence
from random import Random

import pytest

from dubito.plugins.forge.forge import Round, Score, rank_scores
from dubito.plugins.forge.reply import WrittenBot
from dubito.stats.rates import Rate, paired_difference

TRAINING, HELD_OUT = 100, 200  # the defaults of `dubito forge`
WEAKEST, WRITTEN = 0.25, 0.40  # mean Score


@pytest.fixture
def forges(at_length: bool) -> int:
    return 2000 if at_length else 200


def draw(chance: Random, mean: float, deals: int) -> list[int]:
    """Draw a bot's results in units of half a win. A fifth of the games are soft wins."""
    return [2 if (at := chance.random()) < mean - 0.1 else int(at < mean + 0.1) for _ in range(deals)]


def mean_of(own: Sequence[int]) -> Rate:
    return paired_difference(len(own), sum(own), sum(one * one for one in own), 2)


def gain_of(own: Sequence[int], other: Sequence[int]) -> Rate:
    return mean_of([one - two for one, two in zip(own, other, strict=True)])


def draw_scores(chance: Random, means: Sequence[tuple[float, float]]) -> tuple[list[Score], list[list[int]]]:
    """Return the scores of bots with these means in training and on held-out deals, and their held-out results."""
    weakest = [draw(chance, WEAKEST, deals) for deals in (TRAINING, HELD_OUT)]
    scores, results = list[Score](), list[list[int]]()
    for number, both in enumerate(means, 1):
        training, held_out = (draw(chance, mean, len(other)) for mean, other in zip(both, weakest, strict=True))
        gains = gain_of(training, weakest[0]), gain_of(held_out, weakest[1])
        scores.append(Score(Round(number, WrittenBot("x"), []), mean_of(training), mean_of(held_out), *gains))
        results.append(held_out)
    return scores, results


def test_a_better_bot_is_chosen_and_its_lead_is_significant(forges: int) -> None:
    chance, better, chosen, significant = Random(1), WRITTEN + 0.15, 0, 0
    for _ in range(forges):
        scores, results = draw_scores(chance, [(WRITTEN, WRITTEN), (better, better), (WRITTEN, WRITTEN)])
        first, second = rank_scores(scores)[:2]
        chosen += first.round.number == 2
        lead = gain_of(*(results[one.round.number - 1] for one in (first, second)))
        significant += first.round.number == 2 and lead.low > 0
    assert chosen >= 0.99 * forges
    assert significant >= 0.8 * forges


def test_an_overfitted_bot_is_named_and_others_rarely(forges: int) -> None:
    chance, named, wrongly = Random(2), 0, 0
    for _ in range(forges):
        overfitted, sound = draw_scores(chance, [(WRITTEN + 0.25, WRITTEN), (WRITTEN, WRITTEN)])[0]
        named += overfitted.is_overfitted
        wrongly += sound.is_overfitted
    assert named >= 0.9 * forges
    assert wrongly <= 0.05 * forges


def test_a_bot_that_is_only_good_in_training_is_not_chosen(forges: int) -> None:
    chance, chosen = Random(3), 0
    for _ in range(forges):
        scores, _ = draw_scores(chance, [(WRITTEN + 0.4, WEAKEST), (WRITTEN, WRITTEN)])
        chosen += rank_scores(scores)[0].round.number == 2
    assert chosen >= 0.99 * forges
